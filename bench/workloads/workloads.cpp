/*
 * Owns the list of workloads. Called by acs-workloads; makes nothing itself.
 */
#include "workload.h"

namespace bench {

uint64_t sizes::operator[](const char *name) const
{
    const auto found = value_.find(name);
    require(found != value_.end(), "a workload asks for a size that it did not declare");
    return found->second;
}

sizes sizes_of_preset(const workload &w, const std::string &preset)
{
    sizes chosen;
    for (const parameter &p : w.parameters)
        chosen.set(p.name, preset == "tiny" ? p.tiny : (preset == "normal" ? p.normal : p.paper));
    return chosen;
}

const std::vector<workload> &workloads()
{
    static const std::vector<workload> list = [] {
        std::vector<workload> all;
        add_huntktm(all);
        add_polybench(all);
        add_solvers(all);
        add_factorizations(all);
        add_dynamic_networks(all);
        add_static_networks(all);
        return all;
    }();
    return list;
}

} // namespace bench
