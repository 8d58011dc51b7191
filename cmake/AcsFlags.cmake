# acs_flags: how this project compiles its own targets. Linked PRIVATE everywhere and never installed, so a consumer
# gets none of it.
add_library(acs_flags INTERFACE)

set(acs_c_and_cxx "$<COMPILE_LANGUAGE:C,CXX>")
set(acs_warnings -Wall -Wextra -Wshadow -Wpointer-arith -Wundef)
target_compile_options(acs_flags INTERFACE
    "$<${acs_c_and_cxx}:${acs_warnings};-pedantic;-fno-common>"
    "$<$<COMPILE_LANGUAGE:C>:-Wstrict-prototypes;-Wmissing-prototypes>"
    "$<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall,-Wextra,-Wno-unused-parameter>")
target_compile_definitions(acs_flags INTERFACE $<${acs_c_and_cxx}:_GNU_SOURCE>)

# Assertions of the library's invariants, and of the order of its locks (src/base/base.h).
if(ACS_SANITIZE)
    target_compile_definitions(acs_flags INTERFACE ACS_ASSERTIONS)
else()
    target_compile_definitions(acs_flags INTERFACE $<$<CONFIG:Debug>:ACS_ASSERTIONS>)
endif()

if(ACS_SANITIZE)
    # nvcc takes a comma in -Xcompiler for the end of a flag.
    string(REPLACE "," ";-Xcompiler=-fsanitize=" acs_nvcc_sanitize "-Xcompiler=-fsanitize=${ACS_SANITIZE}")
    target_compile_options(acs_flags INTERFACE
        "$<${acs_c_and_cxx}:-fsanitize=${ACS_SANITIZE};-fno-sanitize-recover=all;-fno-omit-frame-pointer>"
        "$<$<COMPILE_LANGUAGE:CUDA>:${acs_nvcc_sanitize}>")
    target_link_options(acs_flags INTERFACE -fsanitize=${ACS_SANITIZE})
endif()

# Under clang's address sanitizer the library tells fuzzers where an input went, if clang has its fuzzer (Debian:
# libclang-rt-<version>-dev). There is no magic number to find, and to look for one takes a third of the time.
set(ACS_FUZZED_OPTIONS -fsanitize=fuzzer-no-link -fno-sanitize-coverage=trace-cmp)
set(ACS_FUZZES OFF)
if(CMAKE_C_COMPILER_ID MATCHES Clang AND ACS_SANITIZE MATCHES "address")
    include(CheckCSourceCompiles)
    set(CMAKE_REQUIRED_FLAGS -fsanitize=fuzzer)
    set(CMAKE_REQUIRED_LINK_OPTIONS -fsanitize=fuzzer)
    check_c_source_compiles("int LLVMFuzzerTestOneInput(const unsigned char *d, unsigned long n) { return d && n == 77; }"
        ACS_HAVE_LIBFUZZER)
    unset(CMAKE_REQUIRED_FLAGS)
    unset(CMAKE_REQUIRED_LINK_OPTIONS)
    set(ACS_FUZZES ${ACS_HAVE_LIBFUZZER})
endif()

# Language level and visibility of every target below.
set(CMAKE_C_STANDARD 11)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_CXX_STANDARD 17)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_CUDA_STANDARD 17)
set(CMAKE_CUDA_STANDARD_REQUIRED ON)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
# A newer compiler has warnings that nobody has seen here: they stop only those who asked for it.
if(NOT DEFINED CMAKE_COMPILE_WARNING_AS_ERROR)
    set(CMAKE_COMPILE_WARNING_AS_ERROR ${ACS_WERROR})
endif()
