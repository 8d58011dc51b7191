/*
 * acs-conco once: an inference of each network, the versions left to the runtime. It is the program that acs-tune runs to
 * measure the versions of all operators, so that the way `online` has a profile.
 */
#include <cstdio>

#include "session.h"

namespace variants {

int run_once(const settings &options)
{
    session s(options);
    const struct {
        const char *name;
        int batch;
    } all[] = {{"resnet-18", 1}, {"vgg-19", 1}, {"bert-small", 1}, {"dlrm", 512}, {"dlrm", 1024}, {"dlrm", 2048}};

    for (const auto &each : all) {
        network &n = s.find(each.name, each.batch, 1);
        const std::unique_ptr<issuer> by = issue_by_acs(s.online(), 1);
        by->run(0, n.at(0).ops, 0, n.at(0).ops.size(), s.plan_for(n, ONLINE), true);
        by->drain();
        printf("%s: %zu operators\n", n.label().c_str(), n.at(0).ops.size());
    }
    return 0;
}

} // namespace variants
