/**
 * @file acs_compat.h
 * For programs that link acs::compat. Include it in one file: at its start the program then says, in one line on standard
 * error, that it was linked without the options by which the linker wraps CUDA's calls. Nothing else would tell: such a
 * program runs, and no call drains ACS. Where libacs_compat is missing too, the linker names acs_compat_not_wrapped.
 * CMake's acs::compat, acs-compat.pc and acs-compat.flags have the options (docs/install.md).
 */
#ifndef ACS_COMPAT_H
#define ACS_COMPAT_H

#ifdef __cplusplus
extern "C" {
#endif

/** There only in a program whose calls are wrapped. */
extern const char acs_compat_wraps __attribute__((weak));

/** Says that no call is wrapped, once. */
void acs_compat_not_wrapped(void);

__attribute__((constructor)) static void acs_compat_look_(void)
{
    if (!&acs_compat_wraps)
        acs_compat_not_wrapped();
}

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif
