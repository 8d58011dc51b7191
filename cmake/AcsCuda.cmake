# ACS_HAVE_CUDA: the CUDA backend is built. It is plain C against the static runtime, so it needs the toolkit's headers
# and libraries but not nvcc. ACS_HAVE_NVCC: samples, benchmarks and tests that contain kernels are built by nvcc, and are
# for the GPU; elsewhere those that can are compiled as C++, for the CPU.
set(ACS_HAVE_CUDA OFF)
set(ACS_HAVE_NVCC OFF)

string(TOLOWER "${ACS_CUDA}" acs_cuda_wanted)
if(acs_cuda_wanted STREQUAL "auto")
    find_package(CUDAToolkit QUIET)
elseif(acs_cuda_wanted STREQUAL "on")
    find_package(CUDAToolkit REQUIRED)
elseif(NOT acs_cuda_wanted STREQUAL "off")
    message(FATAL_ERROR "ACS_CUDA is '${ACS_CUDA}'; it must be auto, on or off")
endif()

if(NOT acs_cuda_wanted STREQUAL "off" AND TARGET CUDA::cudart_static)
    set(ACS_HAVE_CUDA ON)
elseif(acs_cuda_wanted STREQUAL "on")
    message(FATAL_ERROR "ACS_CUDA is on, but the CUDA toolkit found lacks libcudart_static.a")
endif()

if(ACS_HAVE_CUDA AND ACS_KERNELS AND (ACS_TESTS OR ACS_SAMPLES OR ACS_BENCH))
    # nvcc need not be on the PATH where the toolkit was found.
    if(NOT CMAKE_CUDA_COMPILER AND NOT DEFINED ENV{CUDACXX} AND CUDAToolkit_NVCC_EXECUTABLE)
        set(CMAKE_CUDA_COMPILER ${CUDAToolkit_NVCC_EXECUTABLE})
    endif()
    if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES AND NOT DEFINED ENV{CUDAARCHS})
        set(CMAKE_CUDA_ARCHITECTURES 90)
    endif()
    include(CheckLanguage)
    check_language(CUDA)
    if(CMAKE_CUDA_COMPILER)
        enable_language(CUDA)
        set(ACS_HAVE_NVCC ON)
    endif()
endif()

# ACS_NVCC: compiles device code inside libraries (AcsDeviceCode), where there is one; needs no enabled language.
set(ACS_NVCC "")
if(ACS_HAVE_CUDA AND CMAKE_CUDA_COMPILER)
    set(ACS_NVCC ${CMAKE_CUDA_COMPILER})
elseif(ACS_HAVE_CUDA AND CUDAToolkit_NVCC_EXECUTABLE AND EXISTS ${CUDAToolkit_NVCC_EXECUTABLE})
    set(ACS_NVCC ${CUDAToolkit_NVCC_EXECUTABLE})
endif()

if(ACS_HAVE_CUDA)
    message(STATUS "ACS: CUDA backend: toolkit ${CUDAToolkit_VERSION}, programs with kernels: ${ACS_HAVE_NVCC}")
else()
    message(STATUS "ACS: CUDA backend: not built")
endif()
