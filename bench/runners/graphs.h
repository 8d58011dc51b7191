/*
 * Runs as CUDA graphs with explicit edges, one per stretch between reads, one after another in one stream.
 */
#ifndef BENCH_GRAPHS_H
#define BENCH_GRAPHS_H

#include <memory>
#include <string>
#include <vector>

#include <cuda_runtime_api.h>

#include "graphs_shape.h"
#include "plan_runner.h"

namespace bench {

enum graph_mode {
    GRAPH_BUILD,  /* built, instantiated, launched and destroyed in each run */
    GRAPH_UPDATE, /* built in each run to update the executable graph of the run before */
    GRAPH_REPLAY  /* instantiated when the run is prepared */
};

class graph_runner : public planned_runner {
public:
    graph_runner(const machine &m, graph_mode mode) : planned_runner(m), mode_(mode) {}
    ~graph_runner() override;

    /* Edges as the dag has them; with joins. */
    int variants() const override { return 2; }
    std::string setting() const override;
    std::string note() const override;

protected:
    std::string plan_run() override;
    void begin() override;
    void issue(size_t stretch) override;

private:
    bool build(size_t stretch);
    bool add(const graph_node &n);
    bool capture(const graph_node &n);
    void gather(const graph_node &n);
    bool instantiate(cudaGraphExec_t *exec);
    bool update(cudaGraphExec_t *exec);
    void run_graph(size_t stretch);
    void drop_graph();
    void drop_execs();
    std::string try_out();

    const graph_mode mode_;
    graph_shape shape_;
    std::vector<std::unique_ptr<slot>> slots_; /* the first one's stream takes the graphs; all capture library calls */
    cudaGraph_t graph_ = nullptr;              /* being built */
    std::vector<cudaGraphExec_t> execs_;       /* by stretch, kept from run to run; null: none yet */
    std::vector<cudaGraphNode_t> leaves_;      /* what a node of the shape ends in, one after another */
    std::vector<size_t> leaf_end_;             /* by node of the stretch: behind its own, in leaves_ */
    std::vector<cudaGraphNode_t> edges_;       /* upstream of the node being added */
    uint64_t updates_ = 0, rebuilds_ = 0;      /* in the last run */
};

/**
 * The bound for programs that decide: a replay of the whole run as one graph. Reads get the answers of the run that was
 * recorded, at once, so all decisions are known; a loop is a fixed number of iterations.
 */
class known_runner : public graph_runner {
public:
    explicit known_runner(const machine &m) : graph_runner(m, GRAPH_REPLAY) {}

    static constexpr const char *READS_NOTHING = "the program reads nothing: graph-replay is the bound";
    std::string prepare(const trace &t, const dag &d) override;
    void read(void *to, const void *from, size_t bytes) override;
    std::string finish() override;

private:
    std::shared_ptr<std::deque<std::vector<char>>> answers_; /* of the program's reads, in order */
    size_t next_ = 0;                                        /* the next one */
};

} // namespace bench

#endif
