# acs_scan_footprints(<target> <header> SOURCES file.cu... [BUILT_IN target] [FLAGS nvcc's options...])
# Has acs-scan write the footprints of the kernels in these files to a header, which sources of <target> may include. They are
# read as <target> compiles them, or BUILT_IN: with its architectures, definitions, include directories, options and standard,
# and those of what it links; FLAGS come behind. Properties of single source files do not count. The header is made again when
# a file changes that the sources include.
cmake_policy(SET CMP0116 NEW) # the depfile has absolute paths
if(NOT DEFINED ACS_SCAN) # an installed package has set it
    set(ACS_SCAN ${CMAKE_CURRENT_LIST_DIR}/../tools/acs-scan)
    file(GLOB ACS_SCAN_PARTS CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/../tools/acs_scan/*.py)
    list(APPEND ACS_SCAN_PARTS ${CMAKE_CURRENT_LIST_DIR}/../include/acs_scan.h)
endif()

# Options of CMAKE_CUDA_FLAGS, of each configuration, as lines.
function(acs_scan_own_flags result)
    separate_arguments(words UNIX_COMMAND "${CMAKE_CUDA_FLAGS}")
    list(JOIN words "\n" lines)
    foreach(config IN LISTS CMAKE_CONFIGURATION_TYPES CMAKE_BUILD_TYPE)
        string(TOUPPER "${config}" upper)
        separate_arguments(words UNIX_COMMAND "${CMAKE_CUDA_FLAGS_${upper}}")
        list(JOIN words "\n" more)
        string(APPEND lines "\n$<$<CONFIG:${config}>:${more}>")
    endforeach()
    set(${result} "${lines}" PARENT_SCOPE)
endfunction()

function(acs_scan_footprints target header)
    cmake_parse_arguments(PARSE_ARGV 2 scan "" "BUILT_IN" "SOURCES;FLAGS")
    if(scan_UNPARSED_ARGUMENTS OR NOT scan_SOURCES)
        message(FATAL_ERROR "acs_scan_footprints(${target} ${header}): give SOURCES, BUILT_IN and FLAGS, not '${scan_UNPARSED_ARGUMENTS}'")
    endif()
    if(NOT CMAKE_CUDA_COMPILER_ID STREQUAL "NVIDIA")
        message(FATAL_ERROR "acs_scan_footprints(${target} ${header}): acs-scan needs nvcc; CMAKE_CUDA_COMPILER is '${CMAKE_CUDA_COMPILER}'")
    endif()
    if(NOT scan_BUILT_IN)
        set(scan_BUILT_IN ${target})
    endif()
    find_package(Python3 COMPONENTS Interpreter REQUIRED)
    list(TRANSFORM scan_SOURCES PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/ REGEX "^[^/]")
    set(folder ${CMAKE_CURRENT_BINARY_DIR}/${target}.scan)

    # In a file of their own generator expressions may ask for the language.
    acs_scan_own_flags(own)
    foreach(property IN ITEMS COMPILE_OPTIONS COMPILE_DEFINITIONS INCLUDE_DIRECTORIES CUDA_STANDARD CUDA_ARCHITECTURES COMPILE_FEATURES)
        set(of_${property} "$<TARGET_PROPERTY:${scan_BUILT_IN},${property}>")
    endforeach()
    foreach(year IN ITEMS 11 14 17 20 23) # the standard itself comes behind
        string(APPEND standard "$<$<IN_LIST:cuda_std_${year},${of_COMPILE_FEATURES}>:-std=c++${year}>\n")
    endforeach()
    set(standard "$<IF:$<BOOL:${of_CUDA_STANDARD}>,-std=c++${of_CUDA_STANDARD},${standard}>")
    list(JOIN scan_FLAGS "\n" more)
    set(flags ${folder}/${header}.$<CONFIG>)
    file(GENERATE OUTPUT ${flags}.$<COMPILE_LANGUAGE>.options CONTENT
        "-forward-unknown-to-host-compiler
$<$<BOOL:${CMAKE_CUDA_HOST_COMPILER}>:-ccbin=${CMAKE_CUDA_HOST_COMPILER}>
${own}
${standard}
$<$<BOOL:${of_COMPILE_DEFINITIONS}>:-D$<JOIN:${of_COMPILE_DEFINITIONS},\n-D>>
$<$<BOOL:${of_INCLUDE_DIRECTORIES}>:-I$<JOIN:${of_INCLUDE_DIRECTORIES},\n-I>>
$<JOIN:${of_COMPILE_OPTIONS},\n>
${more}
" TARGET ${scan_BUILT_IN})
    add_custom_command(OUTPUT ${folder}/${header}
        COMMAND ${Python3_EXECUTABLE} ${ACS_SCAN} -q --nvcc ${CMAKE_CUDA_COMPILER} -o ${folder}/${header}
            --depfile ${folder}/${header}.d "$<$<BOOL:${of_CUDA_ARCHITECTURES}>:--arch=$<JOIN:${of_CUDA_ARCHITECTURES},$<COMMA>>>"
            ${scan_SOURCES} -- @${flags}.CUDA.options
        DEPENDS ${scan_SOURCES} ${ACS_SCAN} ${ACS_SCAN_PARTS} ${flags}.CUDA.options
        DEPFILE ${folder}/${header}.d
        COMMAND_EXPAND_LISTS VERBATIM
        COMMENT "Scanning kernels for ${header}")
    target_sources(${target} PRIVATE ${folder}/${header})
    target_include_directories(${target} PRIVATE ${folder})
endfunction()
