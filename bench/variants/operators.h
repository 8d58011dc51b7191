/*
 * Operators in versions: which there are, in which shape a version runs a problem, and how an operation is launched, by ACS
 * or by plain CUDA.
 */
#ifndef VARIANTS_OPERATORS_H
#define VARIANTS_OPERATORS_H

#include <string>
#include <vector>

#include "acs.h"
#include "problem.h"

namespace variants {

enum family_id { CONV, MATMUL, POOL, AVERAGE, SOFTMAX, LAYER_NORM, ELEMENTS, EMBEDDING, INTERACTION, FAMILIES };

struct version;
/** @return false: the version cannot run the problem. */
using shape_rule = bool (*)(const version &v, const problem &p, acs_launch_shape &shape);

/** A version: a function, and what it was compiled with (versions.h). */
struct version {
    std::string name;
    const void *function; /* NULL without nvcc */
    shape_rule rule;
    int number[6]; /* as in versions.h */
};

struct family {
    const char *name;
    std::vector<version> versions; /* the first one runs every problem that networks have */
    acs_kernel kernel;             /* of the first version */
    acs_site site;
};

const family &family_of(family_id id);

/** The shape of a version for a problem. @return false: it cannot run it. */
bool shape_for(const version &v, const problem &p, acs_launch_shape &shape);

/** acs_variants for every family. Ends the program if that fails. */
void declare_versions();
/** Lets plain CUDA launch versions that need more than 48 KiB of shared memory. */
void allow_shared_memory();

/** An operator with its operands. */
struct operation {
    std::string name;
    family_id family;
    problem p;
    const float *x, *w, *bias, *add;
    float *y;
    std::vector<acs_segment> segments;
    unsigned number; /* of the network's operators that differ, from 1; see networks.h */
};

/** A launch's parameters; `arguments` is the room for them, and must live as long as the result. */
struct launch_room {
    acs_arg list[6];
};
acs_launch_params launch_of(const operation &o, const acs_attributes &attributes, launch_room &room);
/** Queues it. Ends the program if it is refused. */
acs_op queue(acs_context *context, const operation &o, const acs_attributes &attributes);

/** By plain CUDA, in a version that fits. `stream`: a cudaStream_t. Without nvcc nothing happens. */
void launch_plain(const operation &o, unsigned version_number, void *stream);

/** The numbers of the versions that fit. */
std::vector<unsigned> fitting(const operation &o);

} // namespace variants

#endif
