# What makes a slip in memory end the program instead of being used by others: checks of the stack and of the C library's
# copies, and tables of the loader that cannot be written once the program runs. acs_hardening is for what is installed, and does
# nothing in builds that are not optimised, or have sanitizers, which do more. Sets ACS_HARDENED: this build has it.
option(ACS_HARDEN "Stack protector, _FORTIFY_SOURCE, relro and immediate binding in optimised builds" ON)
set(ACS_HARDENED OFF)
add_library(acs_hardening INTERFACE)
if(NOT ACS_HARDEN OR ACS_SANITIZE)
    return()
endif()
include(CheckCSourceCompiles)
include(CheckCCompilerFlag)
include(CheckLinkerFlag)

# 3 where compiler and C library know it: else it is 2, with a warning.
set(CMAKE_REQUIRED_FLAGS "-O2 -Werror -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3")
check_c_source_compiles("#include <string.h>\nint main(void) { return 0; }" ACS_FORTIFY_3)
unset(CMAKE_REQUIRED_FLAGS)
check_c_compiler_flag(-fstack-protector-strong ACS_STACK_PROTECTOR)
check_linker_flag(C "LINKER:-z,relro" ACS_LINKER_RELRO)
check_linker_flag(C "LINKER:-z,now" ACS_LINKER_NOW)

set(acs_optimised "$<CONFIG:Release,RelWithDebInfo,MinSizeRel>")
set(acs_fortify 2)
if(ACS_FORTIFY_3)
    set(acs_fortify 3)
endif()
target_compile_options(acs_hardening INTERFACE
    "$<$<AND:${acs_c_and_cxx},${acs_optimised}>:-U_FORTIFY_SOURCE;-D_FORTIFY_SOURCE=${acs_fortify}>")
if(ACS_STACK_PROTECTOR)
    target_compile_options(acs_hardening INTERFACE "$<$<AND:${acs_c_and_cxx},${acs_optimised}>:-fstack-protector-strong>")
    # What each op goes through: here functions with arrays of characters are checked, and not each one that takes the address
    # of a variable: that took 3 % more instructions an op, this 0.7 %.
    set(ACS_HOT_SOURCES base/lock.c window/record.c window/collect.c window/depend.c window/fifo.c window/holders.c window/regions.c
        window/shape.c window/span_set.c window/tile_grid.c window/window.c scheduler/step.c scheduler/insert.c
        scheduler/retire.c scheduler/awaited.c scheduler/slots.c scheduler/slots_choice.c scheduler/slots_marks.c
        bundles/form.c residency/bind.c residency/naming.c api/check_segments.c api/context.c api/launch.c
        api/wait.c api/threads.c host/host.c host/host_executor.c host/host_kernel.c host/host_queue.c)
    set(ACS_HOT_OPTIONS "$<${acs_optimised}:-fstack-protector>") # of ACS_HOT_SOURCES: AcsModule
endif()
foreach(word IN ITEMS relro now)
    string(TOUPPER ${word} name)
    if(ACS_LINKER_${name})
        list(APPEND acs_hard_link "$<${acs_optimised}:LINKER:-z,${word}>")
    endif()
endforeach()
target_link_options(acs_hardening INTERFACE ${acs_hard_link})
if(ACS_STACK_PROTECTOR AND ACS_LINKER_RELRO AND ACS_LINKER_NOW AND
    CMAKE_BUILD_TYPE MATCHES "^(Release|RelWithDebInfo|MinSizeRel)$")
    set(ACS_HARDENED ON)
endif()
