/*
 * Opens contexts (acs_context.h) for the runners of acs-bench, acs-workloads and acs-jobs, and the ways of acs-memory
 * and acs-tasks; launches kernels for them.
 */
#include "acs_context.h"

#include <cstdio>
#include <vector>

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
    if (m.gpu || o.backend != ACS_BACKEND_SIM)
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

static std::vector<const acs_executor_params *> g_executors;

void acs_use_executor(const acs_executor_params *executor)
{
    if (executor)
        g_executors.push_back(executor);
}

void acs_add_executors(acs_context *context)
{
    for (const acs_executor_params *executor : g_executors)
        require(acs_executor_add(context, executor) == ACS_OK, acs_error_text("acs_executor_add").c_str());
}

static scanned_footprints g_scanned;

void acs_use_scanned(scanned_footprints find)
{
    g_scanned = find;
}

static const memory *g_memory;

void acs_use_memory(const memory &m)
{
    g_memory = &m;
}

void acs_register_memory(acs_context *context)
{
    for (const memory::block &b : g_memory ? g_memory->blocks() : std::vector<memory::block>())
        require(acs_check_register(context, b.p, b.bytes) == ACS_OK, acs_error_text("acs_check_register").c_str());
}

std::string acs_declare_scanned(const std::vector<op> &ops)
{
    if (!g_scanned)
        return "the program has no footprints from acs-scan";
    for (const op &o : ops) {
        const acs_footprint footprint = o.kind == OP_KERNEL ? g_scanned(o.kernel->code.name) : nullptr;
        if (o.kind == OP_KERNEL && !footprint)
            return std::string("acs-scan has found no footprint of ") + o.kernel->code.name;
        if (footprint && acs_declare(&o.kernel->code, footprint, nullptr) != ACS_OK)
            return acs_error_text("acs_declare");
    }
    return "";
}

static acs_op launch_with(acs_context *context, const op &o, const acs_uses &uses, uint32_t argument_type)
{
    const acs_arg arg = {o.args, o.arg_bytes, argument_type};
    acs_launch_params p = {};
    p.size = sizeof p;
    p.kernel = &o.kernel->code;
    p.grid = {o.grid, 1, 1};
    p.block = {o.block, 1, 1};
    p.args = {&arg, 1};
    p.uses = uses;
    p.site = &o.kernel->site;
    return acs_launch(context, &p);
}

acs_op acs_launch_declared(acs_context *context, const op &o)
{
    return launch_with(context, o, ACS_USES_DECLARED, ACS_ARG_VALUE);
}

acs_op acs_launch_kernel(acs_context *context, const op &o, uint32_t argument_type)
{
    return launch_with(context, o, {o.segments, o.segment_count, nullptr, nullptr, 0}, argument_type);
}

acs_op acs_queue(acs_context *context, const op &o, uint32_t argument_type)
{
    if (o.kind == OP_COPY)
        return acs_memcpy(context, o.to, o.from, o.bytes);
    if (o.kind == OP_FILL)
        return acs_memset(context, o.to, o.value, o.bytes);
    return acs_launch_kernel(context, o, argument_type);
}

} // namespace bench
