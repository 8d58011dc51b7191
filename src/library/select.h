/* Opening the backend that the options ask for. */
#ifndef ACS_SELECT_H
#define ACS_SELECT_H

#include "scheduler/backend.h"

/* Open it. Errors as the backend's own open function; ACS_ERR_UNSUPPORTED: this library is built without it. */
acs_status acs_backend_open(const acs_backend_config *config, acs_backend **backend);

#endif
