/*
 * What a target gives to the fuzzer and to the replayer.
 */
#ifndef FUZZ_REPLAY_H
#define FUZZ_REPLAY_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);
/* The input, readable, to standard error. */
void replay_print(const uint8_t *data, size_t bytes);

#endif
