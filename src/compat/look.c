/*
 * The line that a program with acs_compat.h writes at its start where its link lacks the options of acs::compat. A file of
 * its own, since it is linked where compat.c is not. Called by the header's constructor; touches no context.
 */
#include "acs_compat.h"

#include "base/base.h"

void acs_compat_not_wrapped(void)
{
    static bool said; /* constructors run one after the other */
    if (!said)
        acs_log_always(ACS_LOG_WARN, "acs::compat wraps no call of this program: it was linked without the options of "
                                     "acs-compat.pc or acs-compat.flags, so CUDA's calls do not wait for ACS");
    said = true;
}
