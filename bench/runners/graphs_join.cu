/*
 * Owns the empty kernel that joins edges of graphs. Launched by graphs.cpp as a node; does nothing.
 */
#include "graphs_join.h"

namespace bench {

ACS_DUAL void graph_join_thread(const graph_join_args &, unsigned)
{
}

ACS_DUAL_KERNEL(graph_join, graph_join_args, 32)

} // namespace bench
