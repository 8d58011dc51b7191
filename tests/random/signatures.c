/* Signatures of the kernels of random programs: how many pieces fit, and which further arguments there are. */
#include "program.h"

#define SIZE_OF_(type) sizeof(type),
#define SIGNATURE_(pieces, extras) {pieces, {extras 0}},
static const struct {
    uint32_t pieces;
    uint16_t extras[MIX_EXTRAS + 1]; /* 0 ends it */
} g_signatures[MIX_SIGNATURE_COUNT] = {MIX_SIGNATURES(SIGNATURE_, SIZE_OF_)};

uint32_t signature_extras(int signature, const uint16_t **bytes, uint32_t *pieces)
{
    uint32_t n = 0;
    while (n < MIX_EXTRAS && g_signatures[signature].extras[n])
        n++;
    *bytes = g_signatures[signature].extras;
    *pieces = g_signatures[signature].pieces;
    return n;
}
