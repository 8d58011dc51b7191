/*
 * What runtimes can order that know data by its first byte: objects that are touched as a whole.
 */
#ifndef BENCH_OBJECTS_H
#define BENCH_OBJECTS_H

#include <string>

#include "runner.h"

namespace bench {

/**
 * Why such a runtime cannot run this: ops other than kernels, more than `most` segments in one op, segments that overlap
 * and do not begin at one byte, tiles, tokens. @return empty if it can.
 */
std::string why_not_objects(const trace &t, uint32_t most);

} // namespace bench

#endif
