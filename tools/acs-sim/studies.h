/*
 * The studies that docs/simulation.md is made of: tables in Markdown on standard output.
 */
#ifndef ACS_SIM_STUDIES_H
#define ACS_SIM_STUDIES_H

#include "vehicle.h"

namespace design {

/** The paper's comparison, beside the paper's figures. @return whether every play kept its program's order. */
bool study_claims();
/** Task Bench's patterns on each model. @return as above. */
bool study_task_bench();
/** Programs dealt out to 1 .. `most` devices. @return as above. */
bool study_scale(const acs_sim_gpu &gpu, uint32_t most);

} // namespace design

#endif
