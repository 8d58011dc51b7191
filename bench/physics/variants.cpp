/*
 * Owns the table of ways to run. Read by the command line, the measurement and the report; runs nothing itself.
 *
 * An ACS mode is one more row with a function that sets its options.
 */
#include "driver.h"

static void four_streams(acs_options &o)
{
    o.streams = 4;
}

static void named_repeats(acs_options &o)
{
    o.repeats = ACS_REPEATS_NAMED;
}

static void resident(acs_options &o)
{
    o.issue = ACS_ISSUE_RESIDENT;
    o.repeats = ACS_REPEATS_NAMED;
    o.window = 512;
}

const std::vector<variant> &all_variants()
{
    using setup = driver_setup;
    static const std::vector<variant> table = {
        {"stream", "one stream", false, false,
         [](const setup &s) { return make_stream_driver(s, false, false); }},
        {"streams", "a stream for each scene; on the CPU a thread", false, false,
         [](const setup &s) { return make_stream_driver(s, true, false); }},
        {"fused", "stream, with the narrow phases of a substep as one kernel", false, false,
         [](const setup &s) { return make_stream_driver(s, false, true); }},
        {"fused-streams", "streams, with the narrow phases of a substep as one kernel", false, false,
         [](const setup &s) { return make_stream_driver(s, true, true); }},
        {"graph-step", "a graph of all that is known between two waits for counts, instantiated each time", false, true,
         [](const setup &s) { return make_graph_step_driver(s, GROUP_ALL, false); }},
        {"graph-step-scenes", "the same, a graph and a stream for each scene", false, true,
         [](const setup &s) { return make_graph_step_driver(s, GROUP_SCENES, false); }},
        {"graph-update", "graph-step, with executables kept and updated where the topology was seen before", false, true,
         [](const setup &s) { return make_graph_step_driver(s, GROUP_ALL, true); }},
        {"graph-update-scenes", "the same, a graph and a stream for each scene", false, true,
         [](const setup &s) { return make_graph_step_driver(s, GROUP_SCENES, true); }},
        {"max-stream", "every pair type at its maximum size, no counts read back: one stream", false, false,
         [](const setup &s) { return make_max_stream_driver(s); }},
        {"graph-max", "every pair type at its maximum size, no counts read back: one graph, replayed each step", false, true,
         [](const setup &s) { return make_graph_max_driver(s, GROUP_ALL); }},
        {"graph-max-scenes", "the same, a graph and a stream for each scene", false, true,
         [](const setup &s) { return make_graph_max_driver(s, GROUP_SCENES); }},
        {"acs", "ACS with the environment's options; kernels look which contacts there are", true, false,
         [](const setup &s) { return make_acs_driver(s, nullptr); }},
        {"acs-gpu-decides", "ACS; the GPU switches off what an island without contacts does not need (acs_if)", true, false,
         [](const setup &s) { return make_acs_driver(s, nullptr, GPU_DECIDES); }},
        {"acs-host-decides", "ACS; the program waits for counts, and launches what they need", true, false,
         [](const setup &s) { return make_acs_driver(s, nullptr, HOST_DECIDES); }},
        {"acs-4", "ACS with 4 streams", true, false,
         [](const setup &s) { return make_acs_driver(s, four_streams); }},
        {"acs-repeat", "ACS, and each step is a pass of a repeat (acs_repeat_begin)", true, false,
         [](const setup &s) { return make_acs_driver(s, nullptr, KERNELS_DECIDE, true); }},
        {"acs-capture", "ACS captures one step as a graph, which is launched for each step", true, true,
         [](const setup &s) { return make_acs_driver(s, nullptr, KERNELS_DECIDE, false, false, true); }},
        {"acs-capture-gpu-decides", "the same, and the GPU switches off what is not needed", true, true,
         [](const setup &s) { return make_acs_driver(s, nullptr, GPU_DECIDES, false, false, true); }},
        {"acs-named", "ACS, which replays only what the program names, here nothing (ACS_REPEATS=named)", true, false,
         [](const setup &s) { return make_acs_driver(s, named_repeats); }},
        {"acs-resident", "ACS, one kernel runs the blocks of others (ACS_ISSUE=resident, ACS_WINDOW=512)", true, true,
         [](const setup &s) { return make_acs_driver(s, resident, KERNELS_DECIDE, false, true); }},
    };
    return table;
}
