/*
 * What operators must compute, by one thread for each output with sums in double precision.
 */
#ifndef VARIANTS_REFERENCE_H
#define VARIANTS_REFERENCE_H

#include "operators.h"

namespace variants {

/** Computes o into o.y, on the default stream. */
void launch_reference(const operation &o);

} // namespace variants

#endif
