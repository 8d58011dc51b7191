/*
 * cmocka for C++.
 */
#ifndef TESTS_BENCH_CMOCKA_HPP
#define TESTS_BENCH_CMOCKA_HPP

#include <csetjmp>
#include <cstdarg>
#include <cstddef>
#include <cstdint>

extern "C" {
#include <cmocka.h>
}

#endif
