/*
 * ACS-HW's figures, from the paper: window and cycles from section IV-D, the clock from table V. M, the length of the
 * host's list, is not given: its 4 KiB hold 56 kernels of 6 segments of 12 bytes each, so about as many as the window.
 */
#ifndef ACS_SIM_ACS_HW_H
#define ACS_SIM_ACS_HW_H

#include "vehicle.h"

namespace design {

enum { ACS_HW_WINDOW = 64, ACS_HW_STALE = 64, ACS_HW_CLOCK_MHZ = 1400 };

uint64_t acs_hw_cycles_ns(uint64_t cycles);

} // namespace design

#endif
