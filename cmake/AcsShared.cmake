# libacs.so, from the same objects as libacs.a; exported is what include/acs.h declares.
option(ACS_SHARED "Build libacs.so beside libacs.a" ${PROJECT_IS_TOP_LEVEL})
if(NOT ACS_SHARED)
    return()
endif()
if(ACS_HAVE_CUDA AND NOT TARGET CUDA::cudart)
    message(FATAL_ERROR "libacs.so needs the CUDA runtime as a shared library, which the toolkit found lacks: "
        "install it, or set ACS_SHARED=OFF")
endif()

add_library(acs_shared SHARED ${ACS_OBJECTS})
add_library(acs::shared ALIAS acs_shared)
# Before 1.0 each minor version may change the interface, so it has a name of its own for the loader. The installed
# library finds the CUDA runtime where the toolkit is.
set_target_properties(acs_shared PROPERTIES
    OUTPUT_NAME acs EXPORT_NAME shared
    VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}
    INSTALL_RPATH_USE_LINK_PATH ON)
target_include_directories(acs_shared INTERFACE
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_link_libraries(acs_shared PRIVATE Threads::Threads ${CMAKE_DL_LIBS} $<BUILD_INTERFACE:acs_hardening>)
# Calls inside the library stay inside, whatever the program exports.
target_link_options(acs_shared PRIVATE LINKER:-Bsymbolic-functions)
if(ACS_HAVE_CUDA)
    # The shared runtime, also for the program: a __global__ function is known only to the runtime that it was registered
    # with, and the library asks its own (docs/install.md).
    target_link_libraries(acs_shared PUBLIC CUDA::cudart)
endif()
if(ACS_SANITIZE)
    target_link_options(acs_shared PUBLIC -fsanitize=${ACS_SANITIZE})
else()
    target_link_options(acs_shared PRIVATE LINKER:-z,defs) # the sanitizers' own symbols may come with the program
endif()
