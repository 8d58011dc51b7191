# Installs the build tree to a scratch prefix, then builds and runs consumers in C, C++ and CUDA, by find_package and by
# pkg-config, with libacs.a and with libacs.so; each is checked to have got the library that it asked for.
cmake_minimum_required(VERSION 3.24)

# run_status(<statuses> <command...>): the command must end with one of them; what it wrote goes to `output`.
function(run_status statuses)
    execute_process(COMMAND ${ARGN} RESULT_VARIABLE result OUTPUT_VARIABLE text ERROR_VARIABLE text)
    if(NOT result IN_LIST statuses)
        list(JOIN ARGN " " command)
        message(FATAL_ERROR "${command}\nended with ${result}:\n${text}")
    endif()
    set(output "${text}" PARENT_SCOPE)
endfunction()

macro(run)
    run_status(0 ${ARGN})
endmacro()

# needs(<file> <library> <yes or no>): whether the loader is to find a shared library for this program.
function(needs file library wanted)
    run(${readelf} -d ${file})
    set(found no)
    if(output MATCHES "NEEDED[^\n]*\\[${library}\\.so")
        set(found yes)
    endif()
    if(NOT found STREQUAL wanted)
        message(FATAL_ERROR "${file}: needs ${library}.so: ${found}; it must be ${wanted}:\n${output}")
    endif()
endfunction()

# runtime_inside(<file> <yes or no>): whether the CUDA runtime is linked into the program.
function(runtime_inside file wanted)
    run(${readelf} -sW ${file})
    set(found no)
    if(output MATCHES " FUNC +[A-Z]+ +[A-Z]+ +[0-9]+ cudaGetKernel\n")
        set(found yes)
    endif()
    if(NOT found STREQUAL wanted)
        message(FATAL_ERROR "${file}: has a CUDA runtime of its own: ${found}; it must be ${wanted}")
    endif()
endfunction()

# A program has libacs.so, or not; one with a kernel has the same CUDA runtime as the library, and no other. 77: there is
# no GPU.
function(use kind file)
    set(shared no)
    set(inside yes)
    if("${kind}" STREQUAL "shared")
        set(shared yes)
        set(inside no)
    endif()
    needs(${file} libacs ${shared})
    if(file MATCHES "gpu")
        needs(${file} libcudart ${shared})
        runtime_inside(${file} ${inside})
        run_status("0;77" ${file})
    else()
        run(${file})
    endif()
endfunction()

# compat(<says> <file> <argument...>): a program of acs::compat, which says nothing ("") or this at its start.
function(compat says file)
    needs(${file} libacs no)
    run(${file} ${ARGN})
    if(NOT output MATCHES "^[^\n]*${says}[^\n]*\n?$" OR (output AND NOT says))
        message(FATAL_ERROR "${file}: it must say '${says}' and nothing else:\n${output}")
    endif()
endfunction()

set(consumer ${CMAKE_CURRENT_LIST_DIR}/consumer)
set(prefix ${scratch}/prefix)
file(REMOVE_RECURSE ${scratch})
run(${CMAKE_COMMAND} --install ${build} --prefix ${prefix})
set(kinds static)
if(EXISTS ${prefix}/${libdir}/libacs.so)
    list(APPEND kinds shared)
endif()
set(languages c cxx)
if(cuda)
    list(APPEND languages gpu)
endif()

# By find_package.
set(in ${scratch}/build)
run(${CMAKE_COMMAND} -S ${consumer} -B ${in} -G ${generator} -D CMAKE_PREFIX_PATH=${prefix}
    -D CMAKE_C_COMPILER=${cc} -D CMAKE_CXX_COMPILER=${cxx} -D CONSUMER_CUDA=${cuda}
    -D CMAKE_CUDA_COMPILER=${nvcc} -D CMAKE_CUDA_ARCHITECTURES=${cuda_architecture})
run(${CMAKE_COMMAND} --build ${in})
foreach(kind IN LISTS kinds)
    foreach(language IN LISTS languages)
        use(${kind} ${in}/consumer_${language}_${kind})
    endforeach()
    run(${in}/two_copies_${kind} ${in}/libplugin_static.so refused libplugin_static.so "'")
endforeach()
if(EXISTS ${in}/consumer_compat)
    compat("" ${in}/consumer_compat)
endif()

# acs-info is installed beside. Without a GPU it ends with 0 too.
run(${prefix}/${bindir}/acs-info)

# By pkg-config.
if(NOT pkg_config)
    return()
endif()
set(ENV{PKG_CONFIG_PATH} ${prefix}/${libdir}/pkgconfig)
set(ENV{LD_LIBRARY_PATH} ${prefix}/${libdir}:$ENV{LD_LIBRARY_PATH})

# flags(<variable> <pkg-config's arguments...>)
function(flags variable)
    run(${pkg_config} ${ARGN})
    separate_arguments(output UNIX_COMMAND "${output}")
    set(${variable} ${output} PARENT_SCOPE)
endfunction()

# nvcc takes flags of the host's compiler behind -Xcompiler, where a comma ends one.
function(flags_for_nvcc variable)
    list(TRANSFORM ARGN REPLACE "^-fsanitize=([a-z]+),([a-z]+)$" "-Xcompiler=-fsanitize=\\1;-Xcompiler=-fsanitize=\\2")
    list(TRANSFORM ARGN REPLACE "^(-fsanitize=.*)" "-Xcompiler=\\1")
    set(${variable} ${ARGN} PARENT_SCOPE)
endfunction()

set(module_static acs-static)
set(module_shared acs)
foreach(kind IN LISTS kinds)
    flags(all --cflags --libs ${module_${kind}})
    run(${cc} -std=c11 ${consumer}/consumer.c -o ${scratch}/pc_c_${kind} ${all})
    run(${cxx} -std=c++17 ${consumer}/consumer.cpp -o ${scratch}/pc_cxx_${kind} ${all})
    if(cuda)
        flags_for_nvcc(all ${all})
        run(${nvcc} -std=c++17 -arch=${nvcc_architecture} ${consumer}/consumer_gpu.cu
            -o ${scratch}/pc_gpu_${kind} ${all})
    endif()
    foreach(language IN LISTS languages)
        use(${kind} ${scratch}/pc_${language}_${kind})
    endforeach()
endforeach()

# With acs::compat: by its pkg-config file, by the file of its options, and without them.
set(compat_flags ${prefix}/${libdir}/acs-compat.flags)
if(EXISTS ${compat_flags})
    flags(all --cflags --libs acs-compat)
    run(${cc} -std=c11 ${consumer}/consumer_compat.c -o ${scratch}/pc_compat ${all})
    compat("" ${scratch}/pc_compat)
    flags(all --cflags --libs acs-static)
    list(PREPEND all -lacs_compat)
    run(${cc} -std=c11 ${consumer}/consumer_compat.c -o ${scratch}/file_compat @${compat_flags} ${all})
    compat("" ${scratch}/file_compat)
    run(${cc} -std=c11 ${consumer}/consumer_compat.c -o ${scratch}/not_compat ${all})
    compat("acs: warn: acs::compat wraps no call of this program" ${scratch}/not_compat 1)
    if(cuda)
        flags_for_nvcc(all ${all})
        run(${nvcc} -std=c++17 -arch=${nvcc_architecture} -x cu ${consumer}/consumer_compat.c -o ${scratch}/nvcc_compat
            --options-file ${compat_flags} ${all})
        compat("" ${scratch}/nvcc_compat)
    endif()
endif()

# Where only the archive is installed, --static is all that it takes.
run(${CMAKE_COMMAND} --install ${build} --prefix ${scratch}/archive)
file(GLOB shared_libraries ${scratch}/archive/${libdir}/libacs.so*)
if(shared_libraries)
    file(REMOVE ${shared_libraries})
endif()
set(ENV{PKG_CONFIG_PATH} ${scratch}/archive/${libdir}/pkgconfig)
flags(all --static --cflags --libs acs)
run(${cc} -std=c11 ${consumer}/consumer.c -o ${scratch}/pc_c_archive ${all})
use(static ${scratch}/pc_c_archive)
