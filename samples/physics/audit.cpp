/*
 * Owns the proof that footprints are complete and exact, which is all that ACS knows of a kernel. Called by main for
 * --audit. Slow: it copies a whole arena several times per kernel, so it wants few worlds.
 */
#include "audit.h"

#include <cstdio>

namespace {

/* A spoiled float is 0.186, a spoiled integer far too large: both change whatever is computed from them. */
enum : char { UNTOUCHED = 0, SPOILED = 0x3e };

/* What a footprint says of every byte of an arena: acs_access, 0 where it names nothing. */
std::vector<char> access_map(const op &o, const char *base, size_t bytes)
{
    std::vector<char> map(bytes, UNTOUCHED);
    for (uint32_t k = 0; k < o.segments; k++) {
        const size_t first = static_cast<size_t>(o.segment[k].base - reinterpret_cast<uintptr_t>(base));
        for (size_t i = 0; i < o.segment[k].row_bytes; i++)
            map[first + i] = static_cast<char>(map[first + i] | o.segment[k].access);
    }
    return map;
}

class audit_runner : public runner {
public:
    audit_runner(const simulation &s, decider d) : s_(s), decider_(d), plain_(make_inline_runner(false)) {}

    bool footprints() const override { return true; }
    decider decides() const override { return decider_; }
    void wait_copy(int, int) override {}
    void finish() override {}

    void launch(const op &o) override
    {
        const scene &one = *s_.scenes[static_cast<size_t>(o.scene)];
        char *const base = reinterpret_cast<char *>(one.at.m);
        const size_t bytes = one.image.size();
        if (!o.kernel) {
            plain_->launch(o);
            return;
        }
        const std::vector<char> map = access_map(o, base, bytes), before(base, base + bytes);
        plain_->launch(o);
        const std::vector<char> wanted(base, base + bytes);
        for (size_t k = 0; k < bytes; k++)
            if (wanted[k] != before[k] && !(map[k] & ACS_WRITE)) {
                complain(o, one, map[k], k);
                break;
            }
        for (size_t k = 0; k < bytes; k++)
            base[k] = (map[k] & ACS_READ) ? before[k] : static_cast<char>(SPOILED);
        plain_->launch(o);
        for (size_t k = 0; k < bytes; k++) {
            const char kept = (map[k] & ACS_READ) ? before[k] : static_cast<char>(SPOILED);
            if (base[k] != ((map[k] & ACS_WRITE) ? wanted[k] : kept)) {
                complain(o, one, map[k], k);
                break;
            }
        }
        memcpy(base, wanted.data(), bytes);
    }

    int wrong = 0;

private:
    void complain(const op &o, const scene &one, char access, size_t place)
    {
        if (wrong++ < 10)
            fprintf(stderr, "physics: scene %d (%s): %s: byte %zu of the arena, %s by its footprint, came out otherwise\n",
                    one.index, one.p->info.name, o.kernel->site.name, place,
                    (access & ACS_WRITE) ? "written" : "not written");
    }

    const simulation &s_;
    const decider decider_;
    std::unique_ptr<runner> plain_;
};

} // namespace

bool audit_footprints(simulation &s, int steps, decider d)
{
    audit_runner r(s, d);

    simulation_run(s, r, ORDER_SCENE, steps, "audit");
    return r.wrong == 0;
}
