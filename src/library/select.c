/*
 * Chooses and opens the backend that the options ask for. Called once per context, before its threads exist. Never falls
 * back from an explicit choice; falling back from `auto` is logged with the reason.
 */
#include "library/select.h"

#include <stdio.h>
#include <string.h>

#ifdef ACS_HAVE_CUDA

static acs_status open_cuda(const acs_backend_config *config, acs_backend **backend)
{
    return acs_backend_cuda.open(config, backend);
}

/*
 * A GPU that does not answer is no error of the caller: its latest error stays as it was, and the log has a warning. An
 * invalid option is an error, and no reason for another backend.
 */
static acs_status open_auto(const acs_backend_config *config, acs_backend **backend)
{
    const acs_error before = *acs_error_thread();
    acs_error_hush(true);
    const acs_status status = acs_backend_cuda.open(config, backend);
    acs_error_hush(false);
    const acs_error cuda = *acs_error_thread();
    if (status == ACS_ERR_OPTION)
        acs_error_log();
    if (status == ACS_OK || status == ACS_ERR_OPTION)
        return status;
    acs_log(ACS_LOG_WARN, "backend: host, since cuda did not open: %s", cuda.text);
    *acs_error_thread() = before;
    ACS_TRY(acs_backend_host.open(config, backend));
    (void)snprintf((*backend)->no_gpu, sizeof (*backend)->no_gpu, "no GPU answers: %.280s", cuda.text);
    return ACS_OK;
}

#else

static acs_status open_cuda(const acs_backend_config *config, acs_backend **backend)
{
    (void)config;
    (void)backend;
    return ACS_FAIL(ACS_ERR_UNSUPPORTED, 0, "ACS_BACKEND=cuda, but this library was built without CUDA");
}

static acs_status open_auto(const acs_backend_config *config, acs_backend **backend)
{
    static const char reason[] = "this library was built without CUDA";
    acs_log(ACS_LOG_INFO, "backend: host, since %s", reason);
    ACS_TRY(acs_backend_host.open(config, backend));
    memcpy((*backend)->no_gpu, reason, sizeof reason);
    return ACS_OK;
}

#endif

/* acs_open has checked the options. The default case keeps a mistake there from choosing a backend in silence. */
acs_status acs_backend_open(const acs_backend_config *config, acs_backend **backend)
{
    switch (config->options->backend) {
    case ACS_BACKEND_AUTO:
        return open_auto(config, backend);
    case ACS_BACKEND_CUDA:
        return open_cuda(config, backend);
    case ACS_BACKEND_HOST:
        return acs_backend_host.open(config, backend);
    case ACS_BACKEND_SIM:
        return acs_backend_sim.open(config, backend);
    default:
        return ACS_FAIL(ACS_ERR_OPTION, 0, "ACS_BACKEND is %d; it must be from 0 to %d", (int)config->options->backend,
                        ACS_BACKEND_SIM);
    }
}
