/*
 * The members of HuntKTm's suite that have files of their own. Included by huntktm*.cu only: everybody else sees
 * add_huntktm (workload.h).
 */
#ifndef BENCH_HUNTKTM_H
#define BENCH_HUNTKTM_H

#include "workload.h"

namespace bench {

template <class P> std::unique_ptr<program> make_huntktm(memory &m, const sizes &s)
{
    return std::unique_ptr<program>(new P(m, s));
}

workload huntktm_ml();    /* huntktm_ml.cu */
workload huntktm_hits();  /* huntktm_hits.cu */
workload huntktm_image(); /* huntktm_image.cu */
workload huntktm_deep();  /* huntktm_deep.cu */

} // namespace bench

#endif
