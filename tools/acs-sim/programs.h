/*
 * Generators: patterns of tasks, the physics sample, and networks, as programs for the machine.
 */
#ifndef ACS_SIM_PROGRAMS_H
#define ACS_SIM_PROGRAMS_H

#include <string>
#include <vector>

#include "pattern.h"
#include "program.h"

namespace design {

struct program_request {
    bench::pattern_settings shape;   /* of patterns; `seed` also of what networks decide */
    double kernel_us = -1;           /* how long a block takes; negative: the program's own times, or 5 us */
    uint32_t ctas = 4;               /* of a pattern's kernel */
    uint32_t devices = 1;            /* that a pattern is dealt out to, by place */
    uint64_t halo_bytes = 65536;     /* of what a task reads from another device */
    uint32_t scenes = 5, worlds = 256, env_steps = 1; /* of physics */
    bool scene_order = false;
    std::string size = "paper";      /* of networks: tiny, normal, paper */
};

struct program_kind {
    const char *name, *about;
    bool pattern; /* takes --pattern */
    program (*make)(const program_request &q, const std::string &name);
};

const std::vector<program_kind> &program_kinds();
const program_kind *find_program(const std::string &name);
/** Makes a program by its name, which must be one of the list. */
program make_program(const std::string &name, const program_request &q);

program make_pattern(const program_request &q, const std::string &name);
program make_recent(const program_request &q, const std::string &name);
program make_physics(const program_request &q, const std::string &name);
program make_network(const program_request &q, const std::string &name);

} // namespace design

#endif
