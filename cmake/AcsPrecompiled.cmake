# acs_precompile_headers(): most of the time to compile a C++ file of a benchmark goes into the standard library's headers.
# So they are compiled once, where tests are built. The preset nocuda has no tests: it shows where a file lacks an include.
function(acs_precompile_headers)
    set(source ${PROJECT_BINARY_DIR}/precompiled.cpp)
    file(CONFIGURE OUTPUT ${source} CONTENT "")
    add_library(acs_precompiled OBJECT ${source})
    target_link_libraries(acs_precompiled PRIVATE acs_flags)
    target_precompile_headers(acs_precompiled PRIVATE
        <algorithm> <atomic> <chrono> <cmath> <cstdio> <cstdlib> <cstring> <deque> <fstream> <functional> <map> <memory> <mutex>
        <random> <set> <sstream> <string> <thread> <unordered_map> <vector>)
    foreach(folder IN LISTS ARGN)
        get_property(folders DIRECTORY ${folder} PROPERTY SUBDIRECTORIES)
        foreach(of IN LISTS folders folder)
            get_property(targets DIRECTORY ${of} PROPERTY BUILDSYSTEM_TARGETS)
            foreach(target IN LISTS targets)
                get_property(sources TARGET ${target} PROPERTY SOURCES)
                get_property(libraries TARGET ${target} PROPERTY LINK_LIBRARIES)
                if(sources MATCHES "[.]cpp" AND NOT sources MATCHES "[.]c(;|$)" AND libraries MATCHES "acs_flags"
                   AND NOT libraries MATCHES "OpenMP")
                    target_precompile_headers(${target} REUSE_FROM acs_precompiled)
                endif()
            endforeach()
        endforeach()
    endforeach()
endfunction()
