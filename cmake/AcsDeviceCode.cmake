# Device code inside libraries: compiled for each generation of GPUs into one image, which is embedded as a C array and
# loaded by the driver at run time. So neither a library nor a program that links it needs a linker for device code.

# acs_device_gencode(<variable>): nvcc's options. The first GPU of a generation stands for those that follow; boards with a
# GPU on the CPU's chip are on their own. Debug builds, which nobody installs, have code that the driver compiles, and, where
# no sanitizer checks the host's code, that of one generation. They build in a fifth of the time.
function(acs_device_gencode variable)
    if(CMAKE_BUILD_TYPE STREQUAL "Debug")
        set(options -gencode=arch=compute_75,code=compute_75)
        if(NOT ACS_SANITIZE)
            list(APPEND options -gencode=arch=compute_90,code=sm_90)
        endif()
        set(${variable} ${options} PARENT_SCOPE)
        return()
    endif()
    execute_process(COMMAND ${ACS_NVCC} --list-gpu-code OUTPUT_VARIABLE known OUTPUT_STRIP_TRAILING_WHITESPACE)
    string(REGEX MATCHALL "[0-9]+" known "${known}")
    set(options "")
    foreach(arch IN ITEMS 75 80 87 88 90 100 101 110 120)
        if(arch IN_LIST known)
            list(APPEND options -gencode=arch=compute_${arch},code=sm_${arch})
        endif()
    endforeach()
    set(${variable} ${options} PARENT_SCOPE)
endfunction()

# acs_device_fatbin(<variable> <source> <option...>): a rule that compiles a source, and the name of the file that it makes.
function(acs_device_fatbin variable source)
    get_filename_component(name ${source} NAME_WE)
    set(fatbin ${CMAKE_CURRENT_BINARY_DIR}/${name}.fatbin)
    acs_device_gencode(gencode)
    add_custom_command(OUTPUT ${fatbin}
        COMMAND ${ACS_NVCC} -O3 -std=c++17 ${ARGN} -fatbin ${gencode} -MD -MF ${fatbin}.d
                ${CMAKE_CURRENT_SOURCE_DIR}/${source} -o ${fatbin}
        DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${source} DEPFILE ${fatbin}.d VERBATIM)
    set(${variable} ${fatbin} PARENT_SCOPE)
endfunction()

# acs_device_embed(<fatbin> <symbol> <file.c>): a rule that makes a C source with the array <symbol>.
function(acs_device_embed fatbin symbol file)
    add_custom_command(OUTPUT ${file}
        COMMAND ${CMAKE_COMMAND} -DIN=${fatbin} -DOUT=${file} -DNAME=${symbol} -P ${PROJECT_SOURCE_DIR}/cmake/embed.cmake
        DEPENDS ${fatbin} ${PROJECT_SOURCE_DIR}/cmake/embed.cmake VERBATIM)
endfunction()
