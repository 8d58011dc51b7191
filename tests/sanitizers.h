/* Under which sanitizer a test is compiled, by gcc or clang: some look at fewer programs there. */
#ifndef SANITIZERS_H
#define SANITIZERS_H

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define UNDER_ADDRESS_SANITIZER 1
#elif __has_feature(thread_sanitizer)
#define UNDER_THREAD_SANITIZER 1
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define UNDER_ADDRESS_SANITIZER 1
#elif defined(__SANITIZE_THREAD__)
#define UNDER_THREAD_SANITIZER 1
#endif
#ifndef UNDER_ADDRESS_SANITIZER
#define UNDER_ADDRESS_SANITIZER 0
#endif
#ifndef UNDER_THREAD_SANITIZER
#define UNDER_THREAD_SANITIZER 0
#endif

#endif
