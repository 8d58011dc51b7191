#include "app_footprints.h"
