/*
 * Owns KNN: classes of feature vectors by a vote of their nearest neighbours among known ones, which lie on the device and
 * all jobs read. Many small kernels: one for each neighbour. Called by acs-jobs.
 */
#include "work.h"

#include <algorithm>

namespace bench {

enum { KNN_CLASSES = 4, KNN_BLOCK = 256, KNN_LEVELS = 8 };

/* Further than any vector, and than what was taken already. */
#define KNN_TAKEN 1e30f

/* distances(queries, known -> squares of distances, votes: none) */
struct knn_distances {
    enum { BLOCK = KNN_BLOCK };
    ACS_DUAL void thread(unsigned i, unsigned queries, unsigned known, unsigned features, const float *query,
                         const float *vectors, float *distance, unsigned *votes)
    {
        float sum = 0;
        if (i < queries * KNN_CLASSES)
            votes[i] = 0;
        if (i >= queries * known)
            return;
        for (unsigned k = 0; k < features; k++) {
            const float off = query[i / known * features + k] - vectors[i % known * features + k];
            sum += off * off;
        }
        distance[i] = sum;
    }
};

/* nearest(classes, distances, votes): a CTA for each query finds the nearest vector, counts its class, and takes it. */
struct knn_nearest {
    enum { BLOCK = KNN_BLOCK };
    struct shared {
        float distance[BLOCK];
        unsigned place[BLOCK];
    };

    ACS_DUAL int phases(unsigned, const unsigned *, float *, unsigned *) { return KNN_LEVELS + 2; }

    /* Of two that are equally near, the first. */
    ACS_DUAL void nearer(shared &s, unsigned thread, float distance, unsigned place)
    {
        if (distance < s.distance[thread] || (distance == s.distance[thread] && place < s.place[thread])) {
            s.distance[thread] = distance;
            s.place[thread] = place;
        }
    }

    ACS_DUAL void phase(int phase, unsigned block, unsigned thread, shared &s, unsigned known, const unsigned *classes,
                        float *distance, unsigned *votes)
    {
        float *const mine = distance + static_cast<size_t>(block) * known;
        if (phase == 0) {
            s.distance[thread] = 2 * KNN_TAKEN;
            s.place[thread] = 0;
            for (unsigned i = thread; i < known; i += BLOCK)
                nearer(s, thread, mine[i], i);
        } else if (phase <= KNN_LEVELS) {
            const unsigned half = static_cast<unsigned>(BLOCK) >> phase;
            if (thread < half)
                nearer(s, thread, s.distance[thread + half], s.place[thread + half]);
        } else if (thread == 0) {
            votes[block * KNN_CLASSES + classes[s.place[0]]]++;
            mine[s.place[0]] = KNN_TAKEN;
        }
    }
};

/* vote(votes -> label): the class with most votes; of several, the first */
struct knn_vote {
    enum { BLOCK = KNN_BLOCK };
    ACS_DUAL void thread(unsigned i, unsigned queries, const unsigned *votes, unsigned *label)
    {
        unsigned best = 0;
        if (i >= queries)
            return;
        for (unsigned c = 1; c < KNN_CLASSES; c++)
            if (votes[i * KNN_CLASSES + c] > votes[i * KNN_CLASSES + best])
                best = c;
        label[i] = best;
    }
};

static const auto distances = BENCH_PLAIN_KERNEL(knn_distances);
static const auto nearest = BENCH_PLAIN_BLOCK_KERNEL(knn_nearest);
static const auto vote = BENCH_PLAIN_KERNEL(knn_vote);

namespace {

class knn : public work {
public:
    knn(memory &m, unsigned queries, unsigned known, unsigned features, unsigned neighbours)
        : queries_(queries), known_(known), features_(features), neighbours_(neighbours), vectors_(known * features),
          classes_(known)
    {
        for (size_t i = 0; i < vectors_.size(); i++)
            vectors_[i] = digit(1234567, i);
        for (size_t i = 0; i < known; i++)
            classes_[i] = static_cast<unsigned>(KNN_CLASSES * random_unit(7654321, i));
        on_device_ = as<float>(m.allocate(vectors_.size() * 4));
        classes_on_device_ = as<unsigned>(m.allocate(classes_.size() * 4));
        m.upload(on_device_, vectors_.data(), vectors_.size() * 4);
        m.upload(classes_on_device_, classes_.data(), classes_.size() * 4);
    }

    std::vector<size_t> buffers() const override { return {in_bytes(), distance_bytes(), vote_bytes(), out_bytes()}; }
    size_t in_bytes() const override { return static_cast<size_t>(queries_) * features_ * 4; }
    size_t out_bytes() const override { return static_cast<size_t>(queries_) * 4; }
    unsigned ops() const override { return 4 + neighbours_; }

    void fill(uint64_t job, void *in) const override
    {
        for (size_t i = 0; i < static_cast<size_t>(queries_) * features_; i++)
            as<float>(in)[i] = digit(job, i);
    }

    void issue(job_sink &s, const buffer_set &d, const void *in, void *out) const override
    {
        float *const query = as<float>(d[0]), *const distance = as<float>(d[1]);
        unsigned *const votes = as<unsigned>(d[2]), *const label = as<unsigned>(d[3]);
        const acs_segment vectors = ACS_IN(on_device_, vectors_.size() * 4);
        const acs_segment classes = ACS_IN(classes_on_device_, classes_.size() * 4);

        s.copy(query, in, in_bytes());
        s.run(distances, static_cast<size_t>(queries_) * std::max<unsigned>(known_, KNN_CLASSES),
              {ACS_IN(query, in_bytes()), vectors, ACS_OUT(distance, distance_bytes()), ACS_OUT(votes, vote_bytes())},
              queries_, known_, features_, query, on_device_, distance, votes);
        for (unsigned n = 0; n < neighbours_; n++)
            s.run(nearest, static_cast<size_t>(queries_) * KNN_BLOCK,
                  {classes, ACS_INOUT(distance, distance_bytes()), ACS_INOUT(votes, vote_bytes())}, known_,
                  classes_on_device_, distance, votes);
        s.run(vote, queries_, {ACS_IN(votes, vote_bytes()), ACS_OUT(label, out_bytes())}, queries_, votes, label);
        s.copy(out, label, out_bytes());
    }

    /* By sorting; features are small whole numbers, so that distances are exact. */
    std::string check(const void *in, const void *out) const override
    {
        for (size_t q = 0; q < queries_; q++) {
            std::vector<std::pair<double, size_t>> all;
            for (size_t t = 0; t < known_; t++) {
                double sum = 0;
                for (size_t k = 0; k < features_; k++) {
                    const float off = as<float>(in)[q * features_ + k] - vectors_[t * features_ + k];
                    sum += static_cast<double>(off) * static_cast<double>(off);
                }
                all.push_back({sum, t});
            }
            std::sort(all.begin(), all.end());
            std::vector<unsigned> votes(KNN_CLASSES);
            for (size_t n = 0; n < neighbours_; n++)
                votes[classes_[all[n].second]]++;
            const auto expected = std::max_element(votes.begin(), votes.end()) - votes.begin();
            if (as<unsigned>(out)[q] != static_cast<unsigned>(expected))
                return "query " + std::to_string(q) + " is of class " + std::to_string(as<unsigned>(out)[q]) + ", not " +
                       std::to_string(expected);
        }
        return "";
    }

private:
    /* A whole number from 0 to 15. */
    static float digit(uint64_t seed, size_t i)
    {
        return static_cast<float>(static_cast<unsigned>(16 * random_unit(seed, i)));
    }
    size_t distance_bytes() const { return static_cast<size_t>(queries_) * known_ * 4; }
    size_t vote_bytes() const { return static_cast<size_t>(queries_) * KNN_CLASSES * 4; }

    const unsigned queries_, known_, features_, neighbours_;
    std::vector<float> vectors_;
    std::vector<unsigned> classes_;
    float *on_device_;
    unsigned *classes_on_device_;
};

} // namespace

std::unique_ptr<work> make_knn(memory &m, const std::string &size)
{
    return std::unique_ptr<work>(new knn(m, preset{5, 32, 128}.of(size), preset{70, 2048, 8192}.of(size),
                                         preset{6, 16, 16}.of(size), 5));
}

} // namespace bench
