# acs_scan_footprints(<target> <header> SOURCES file.cu... [FLAGS nvcc's options...] [INCLUDES_OF target])
# Has acs-scan write the footprints of the kernels in these files to a header, which sources of the target may include.
# INCLUDES_OF: nvcc searches the include directories of this target; default: of <target>.
if(NOT DEFINED ACS_SCAN) # an installed package has set it
    set(ACS_SCAN ${CMAKE_CURRENT_LIST_DIR}/../tools/acs-scan)
    file(GLOB ACS_SCAN_PARTS CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/../tools/acs_scan/*.py)
    list(APPEND ACS_SCAN_PARTS ${CMAKE_CURRENT_LIST_DIR}/../include/acs_scan.h)
endif()

function(acs_scan_footprints target header)
    cmake_parse_arguments(PARSE_ARGV 2 scan "" "INCLUDES_OF" "SOURCES;FLAGS")
    if(NOT scan_INCLUDES_OF)
        set(scan_INCLUDES_OF ${target})
    endif()
    find_package(Python3 COMPONENTS Interpreter REQUIRED)
    list(TRANSFORM scan_SOURCES PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/ REGEX "^[^/]")
    set(folder ${CMAKE_CURRENT_BINARY_DIR}/${target}.scan)
    set(includes $<TARGET_PROPERTY:${scan_INCLUDES_OF},INCLUDE_DIRECTORIES>)
    add_custom_command(OUTPUT ${folder}/${header}
        COMMAND ${CMAKE_COMMAND} -E make_directory ${folder}
        COMMAND ${Python3_EXECUTABLE} ${ACS_SCAN} -q --nvcc ${CMAKE_CUDA_COMPILER} -o ${folder}/${header} ${scan_SOURCES} -- ${scan_FLAGS}
            "$<$<BOOL:${includes}>:-I$<JOIN:${includes},;-I>>"
        DEPENDS ${scan_SOURCES} ${ACS_SCAN} ${ACS_SCAN_PARTS}
        COMMAND_EXPAND_LISTS VERBATIM
        COMMENT "Scanning kernels for ${header}")
    target_sources(${target} PRIVATE ${folder}/${header})
    target_include_directories(${target} PRIVATE ${folder})
endfunction()
