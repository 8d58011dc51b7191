/*
 * ACS_PARAMS, for footprint functions in C and C++: see acs_launch.h. Included by the call-site macros of acs.h only.
 */
#include "acs.h" /* a no-op where acs.h includes this file */

#ifndef ACS_PARAMS_H
#define ACS_PARAMS_H

#ifndef ACS_COUNT_
#define ACS_CAT_(a, b) ACS_CAT2_(a, b)
#define ACS_CAT2_(a, b) a##b
#define ACS_COUNT_(...)                                                                                                \
    ACS_COUNT_PICK_(__VA_ARGS__, 32, 31, 30, 29, 28, 27, 26, 25, 24, 23, 22, 21, 20, 19, 18, 17, 16, 15, 14, 13, 12,   \
                    11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0)
#define ACS_COUNT_PICK_(a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16, a17, a18, a19, a20,     \
                        a21, a22, a23, a24, a25, a26, a27, a28, a29, a30, a31, a32, n, ...)                            \
    n
#endif

#define ACS_VARIABLES_1_(a) ACS_PARAM_VARIABLE_ a
#define ACS_VARIABLES_2_(a, ...) ACS_PARAM_VARIABLE_ a ACS_VARIABLES_1_(__VA_ARGS__)
#define ACS_VARIABLES_3_(a, ...) ACS_PARAM_VARIABLE_ a ACS_VARIABLES_2_(__VA_ARGS__)
#define ACS_VARIABLES_4_(a, ...) ACS_PARAM_VARIABLE_ a ACS_VARIABLES_3_(__VA_ARGS__)
#define ACS_VARIABLES_5_(a, ...) ACS_PARAM_VARIABLE_ a ACS_VARIABLES_4_(__VA_ARGS__)
#define ACS_VARIABLES_6_(a, ...) ACS_PARAM_VARIABLE_ a ACS_VARIABLES_5_(__VA_ARGS__)
#define ACS_VARIABLES_7_(a, ...) ACS_PARAM_VARIABLE_ a ACS_VARIABLES_6_(__VA_ARGS__)
#define ACS_VARIABLES_8_(a, ...) ACS_PARAM_VARIABLE_ a ACS_VARIABLES_7_(__VA_ARGS__)
#define ACS_VARIABLES_9_(a, ...) ACS_PARAM_VARIABLE_ a ACS_VARIABLES_8_(__VA_ARGS__)
#define ACS_VARIABLES_10_(a, ...) ACS_PARAM_VARIABLE_ a ACS_VARIABLES_9_(__VA_ARGS__)
#define ACS_VARIABLES_11_(a, ...) ACS_PARAM_VARIABLE_ a ACS_VARIABLES_10_(__VA_ARGS__)
#define ACS_VARIABLES_12_(a, ...) ACS_PARAM_VARIABLE_ a ACS_VARIABLES_11_(__VA_ARGS__)
#define ACS_VARIABLES_13_(a, ...) ACS_PARAM_VARIABLE_ a ACS_VARIABLES_12_(__VA_ARGS__)
#define ACS_VARIABLES_14_(a, ...) ACS_PARAM_VARIABLE_ a ACS_VARIABLES_13_(__VA_ARGS__)
#define ACS_VARIABLES_15_(a, ...) ACS_PARAM_VARIABLE_ a ACS_VARIABLES_14_(__VA_ARGS__)
#define ACS_VARIABLES_16_(a, ...) ACS_PARAM_VARIABLE_ a ACS_VARIABLES_15_(__VA_ARGS__)
#define ACS_VARIABLES_17_(a, ...) ACS_PARAM_VARIABLE_ a ACS_VARIABLES_16_(__VA_ARGS__)
#define ACS_VARIABLES_18_(a, ...) ACS_PARAM_VARIABLE_ a ACS_VARIABLES_17_(__VA_ARGS__)
#define ACS_VARIABLES_19_(a, ...) ACS_PARAM_VARIABLE_ a ACS_VARIABLES_18_(__VA_ARGS__)
#define ACS_VARIABLES_20_(a, ...) ACS_PARAM_VARIABLE_ a ACS_VARIABLES_19_(__VA_ARGS__)
#define ACS_VARIABLES_21_(a, ...) ACS_PARAM_VARIABLE_ a ACS_VARIABLES_20_(__VA_ARGS__)
#define ACS_VARIABLES_22_(a, ...) ACS_PARAM_VARIABLE_ a ACS_VARIABLES_21_(__VA_ARGS__)
#define ACS_VARIABLES_23_(a, ...) ACS_PARAM_VARIABLE_ a ACS_VARIABLES_22_(__VA_ARGS__)
#define ACS_VARIABLES_24_(a, ...) ACS_PARAM_VARIABLE_ a ACS_VARIABLES_23_(__VA_ARGS__)
#define ACS_VARIABLES_25_(a, ...) ACS_PARAM_VARIABLE_ a ACS_VARIABLES_24_(__VA_ARGS__)
#define ACS_VARIABLES_26_(a, ...) ACS_PARAM_VARIABLE_ a ACS_VARIABLES_25_(__VA_ARGS__)
#define ACS_VARIABLES_27_(a, ...) ACS_PARAM_VARIABLE_ a ACS_VARIABLES_26_(__VA_ARGS__)
#define ACS_VARIABLES_28_(a, ...) ACS_PARAM_VARIABLE_ a ACS_VARIABLES_27_(__VA_ARGS__)
#define ACS_VARIABLES_29_(a, ...) ACS_PARAM_VARIABLE_ a ACS_VARIABLES_28_(__VA_ARGS__)
#define ACS_VARIABLES_30_(a, ...) ACS_PARAM_VARIABLE_ a ACS_VARIABLES_29_(__VA_ARGS__)
#define ACS_VARIABLES_31_(a, ...) ACS_PARAM_VARIABLE_ a ACS_VARIABLES_30_(__VA_ARGS__)
#define ACS_VARIABLES_32_(a, ...) ACS_PARAM_VARIABLE_ a ACS_VARIABLES_31_(__VA_ARGS__)
#define ACS_ROWS_1_(a) ACS_PARAM_ROW_ a
#define ACS_ROWS_2_(a, ...) ACS_PARAM_ROW_ a ACS_ROWS_1_(__VA_ARGS__)
#define ACS_ROWS_3_(a, ...) ACS_PARAM_ROW_ a ACS_ROWS_2_(__VA_ARGS__)
#define ACS_ROWS_4_(a, ...) ACS_PARAM_ROW_ a ACS_ROWS_3_(__VA_ARGS__)
#define ACS_ROWS_5_(a, ...) ACS_PARAM_ROW_ a ACS_ROWS_4_(__VA_ARGS__)
#define ACS_ROWS_6_(a, ...) ACS_PARAM_ROW_ a ACS_ROWS_5_(__VA_ARGS__)
#define ACS_ROWS_7_(a, ...) ACS_PARAM_ROW_ a ACS_ROWS_6_(__VA_ARGS__)
#define ACS_ROWS_8_(a, ...) ACS_PARAM_ROW_ a ACS_ROWS_7_(__VA_ARGS__)
#define ACS_ROWS_9_(a, ...) ACS_PARAM_ROW_ a ACS_ROWS_8_(__VA_ARGS__)
#define ACS_ROWS_10_(a, ...) ACS_PARAM_ROW_ a ACS_ROWS_9_(__VA_ARGS__)
#define ACS_ROWS_11_(a, ...) ACS_PARAM_ROW_ a ACS_ROWS_10_(__VA_ARGS__)
#define ACS_ROWS_12_(a, ...) ACS_PARAM_ROW_ a ACS_ROWS_11_(__VA_ARGS__)
#define ACS_ROWS_13_(a, ...) ACS_PARAM_ROW_ a ACS_ROWS_12_(__VA_ARGS__)
#define ACS_ROWS_14_(a, ...) ACS_PARAM_ROW_ a ACS_ROWS_13_(__VA_ARGS__)
#define ACS_ROWS_15_(a, ...) ACS_PARAM_ROW_ a ACS_ROWS_14_(__VA_ARGS__)
#define ACS_ROWS_16_(a, ...) ACS_PARAM_ROW_ a ACS_ROWS_15_(__VA_ARGS__)
#define ACS_ROWS_17_(a, ...) ACS_PARAM_ROW_ a ACS_ROWS_16_(__VA_ARGS__)
#define ACS_ROWS_18_(a, ...) ACS_PARAM_ROW_ a ACS_ROWS_17_(__VA_ARGS__)
#define ACS_ROWS_19_(a, ...) ACS_PARAM_ROW_ a ACS_ROWS_18_(__VA_ARGS__)
#define ACS_ROWS_20_(a, ...) ACS_PARAM_ROW_ a ACS_ROWS_19_(__VA_ARGS__)
#define ACS_ROWS_21_(a, ...) ACS_PARAM_ROW_ a ACS_ROWS_20_(__VA_ARGS__)
#define ACS_ROWS_22_(a, ...) ACS_PARAM_ROW_ a ACS_ROWS_21_(__VA_ARGS__)
#define ACS_ROWS_23_(a, ...) ACS_PARAM_ROW_ a ACS_ROWS_22_(__VA_ARGS__)
#define ACS_ROWS_24_(a, ...) ACS_PARAM_ROW_ a ACS_ROWS_23_(__VA_ARGS__)
#define ACS_ROWS_25_(a, ...) ACS_PARAM_ROW_ a ACS_ROWS_24_(__VA_ARGS__)
#define ACS_ROWS_26_(a, ...) ACS_PARAM_ROW_ a ACS_ROWS_25_(__VA_ARGS__)
#define ACS_ROWS_27_(a, ...) ACS_PARAM_ROW_ a ACS_ROWS_26_(__VA_ARGS__)
#define ACS_ROWS_28_(a, ...) ACS_PARAM_ROW_ a ACS_ROWS_27_(__VA_ARGS__)
#define ACS_ROWS_29_(a, ...) ACS_PARAM_ROW_ a ACS_ROWS_28_(__VA_ARGS__)
#define ACS_ROWS_30_(a, ...) ACS_PARAM_ROW_ a ACS_ROWS_29_(__VA_ARGS__)
#define ACS_ROWS_31_(a, ...) ACS_PARAM_ROW_ a ACS_ROWS_30_(__VA_ARGS__)
#define ACS_ROWS_32_(a, ...) ACS_PARAM_ROW_ a ACS_ROWS_31_(__VA_ARGS__)

/** In a footprint function: (in, (type, name), ...), a variable for each of the kernel's parameters, at most 32. */
#define ACS_PARAMS(in, ...)                                                                                            \
    ACS_CAT_(ACS_CAT_(ACS_VARIABLES_, ACS_COUNT_(__VA_ARGS__)), _)(__VA_ARGS__)                                        \
    do {                                                                                                               \
        const acs_param acs_params_[] = {ACS_CAT_(ACS_CAT_(ACS_ROWS_, ACS_COUNT_(__VA_ARGS__)), _)(__VA_ARGS__)};      \
        const size_t acs_refused_ = acs_params((in), acs_params_, ACS_COUNT_(__VA_ARGS__));                            \
        if (acs_refused_)                                                                                              \
            return acs_refused_;                                                                                       \
    } while (0)

#endif
