# The library is made of modules: one for each folder of src/, an object library acs_<name>, shipped together as libacs.a and
# libacs.so. A module may include headers, and call functions, of itself and of what it USES, directly or not; the test
# `structure` reads these lists and looks. Modules come from the lowest to the highest.

# acs_module(<name> USES <module...> SOURCES <file...>)
function(acs_module name)
    cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "USES;SOURCES")
    list(TRANSFORM arg_SOURCES PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/)
    add_library(acs_${name} OBJECT ${arg_SOURCES})
    set_target_properties(acs_${name} PROPERTIES POSITION_INDEPENDENT_CODE ON)
    target_compile_definitions(acs_${name} PRIVATE $<$<BOOL:${ACS_HAVE_CUDA}>:ACS_HAVE_CUDA>)
    target_include_directories(acs_${name} PRIVATE ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)
    target_include_directories(acs_${name} SYSTEM PRIVATE ${ACS_UTHASH_INCLUDE})
    # A C++ exception may pass through a launch, out of a footprint function.
    target_compile_options(acs_${name} PRIVATE $<$<COMPILE_LANGUAGE:C>:-fexceptions>)
    if(ACS_FUZZES)
        target_compile_options(acs_${name} PRIVATE ${ACS_FUZZED_OPTIONS})
    endif()
    target_link_libraries(acs_${name} PRIVATE acs_flags acs_hardening Threads::Threads
        $<$<BOOL:${ACS_HAVE_CUDA}>:CUDA::cudart_static>)
    foreach(source IN LISTS arg_SOURCES)
        get_filename_component(file ${source} NAME)
        if("${name}/${file}" IN_LIST ACS_HOT_SOURCES)
            set_source_files_properties(${source} PROPERTIES COMPILE_OPTIONS "${ACS_HOT_OPTIONS}")
        endif()
    endforeach()
endfunction()

# acs_module_objects(<variable> <module...>): the objects of these modules.
function(acs_module_objects variable)
    set(objects "")
    foreach(name IN LISTS ARGN)
        list(APPEND objects $<TARGET_OBJECTS:acs_${name}>)
    endforeach()
    set(${variable} ${objects} PARENT_SCOPE)
endfunction()

# The core: FIFO, window, scheduler, interface and the backend of CPU threads, with the memory that they need.
set(ACS_CORE_MODULES base pool devices window scheduler recorder host api)
set(ACS_MODULES ${ACS_CORE_MODULES} bundles cuda simulator repeats capture debug residency groups checks variants report library)
if(NOT ACS_HAVE_CUDA)
    list(REMOVE_ITEM ACS_MODULES cuda)
endif()
