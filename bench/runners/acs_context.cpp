/*
 * Opens contexts (acs_context.h) for the runners of acs-bench, acs-workloads and acs-jobs, and the ways of acs-memory.
 */
#include "acs_context.h"

#include <cstdio>

#include "spread.h"

namespace bench {

std::string acs_error_text(const char *what)
{
    acs_error e = {};
    e.size = sizeof e;
    return std::string(what) + ": " + (acs_last_error(&e) != ACS_OK ? e.text : "failed");
}

acs_options acs_options_for(const machine &m)
{
    acs_options o;
    require(acs_options_init(&o, sizeof o) == ACS_OK, acs_error_text("ACS options").c_str());
    o.backend = m.gpu ? ACS_BACKEND_CUDA : ACS_BACKEND_HOST;
    return o;
}

acs_context *acs_open_for(const machine &m, acs_options &o)
{
    acs_context *context = nullptr;
    if (m.first_cpu >= 0 && o.cpus[0] == 0)
        snprintf(o.cpus, sizeof o.cpus, "%s", spread_list(m.first_cpu, cpu_count()).c_str());
    require(acs_open(&o, &context) == ACS_OK, acs_error_text("acs_open").c_str());
    return context;
}

} // namespace bench
