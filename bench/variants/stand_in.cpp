/*
 * Stands in for the functions of acs_variants.h where the library has none yet. To be removed with CMakeLists.txt's part.
 */
#include "acs.h"

acs_status acs_variants(const acs_kernel *, const acs_variant *, size_t)
{
    return ACS_OK;
}

acs_status acs_measure(acs_context *, const acs_launch_params *, const acs_measure_params *, acs_measured *)
{
    return ACS_ERR_UNSUPPORTED;
}

acs_status acs_share_find(acs_context *, uint32_t, uint32_t, acs_share_info *)
{
    return ACS_ERR_UNSUPPORTED;
}

acs_status acs_mix_plan(acs_context *, const acs_mix_model *, size_t, acs_mix_run, void *, const acs_mix_params *,
                        acs_mix_setting *, double *)
{
    return ACS_ERR_UNSUPPORTED;
}
