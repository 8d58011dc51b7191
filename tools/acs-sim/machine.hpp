/*
 * The machine's interface, which is C, for the C++ of this tool.
 */
#ifndef ACS_SIM_MACHINE_HPP
#define ACS_SIM_MACHINE_HPP

#include <cstddef>
#include <cstdint>

extern "C" {
#include "simulator/machine.h"
}

#endif
