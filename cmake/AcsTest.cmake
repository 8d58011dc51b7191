include_guard(DIRECTORY)

# How tests are built and registered. Tests see the library's internal headers and none of the caller's ACS_* variables.
find_package(PkgConfig QUIET)
if(PKG_CONFIG_FOUND)
    pkg_check_modules(CMOCKA QUIET IMPORTED_TARGET cmocka)
endif()
if(NOT CMOCKA_FOUND)
    message(WARNING "ACS: unit and stress tests are not built: they need cmocka (packages libcmocka-dev and pkg-config)")
endif()

# Every variable of acs_options.def, to be removed from a test's environment.
file(STRINGS ${PROJECT_SOURCE_DIR}/include/acs_options.def rows REGEX "^ACS_OPT_[A-Z]+\\(")
set(ACS_TEST_ENVIRONMENT "")
foreach(row IN LISTS rows)
    if(row MATCHES "\"(ACS_[A-Z_]+)\"")
        list(APPEND ACS_TEST_ENVIRONMENT "${CMAKE_MATCH_1}=unset:")
    endif()
endforeach()
# An allocation that is too large fails, as it does without a sanitizer: tests ask for such.
list(APPEND ACS_TEST_ENVIRONMENT "ASAN_OPTIONS=path_list_append:allocator_may_return_null=1"
    "TSAN_OPTIONS=path_list_append:allocator_may_return_null=1")
if(ACS_SANITIZE MATCHES "address" AND ACS_HAVE_CUDA)
    # The CUDA driver maps memory where the address sanitizer keeps a gap.
    list(APPEND ACS_TEST_ENVIRONMENT "ASAN_OPTIONS=path_list_append:protect_shadow_gap=0")
endif()

# Ends a test that hangs, and nothing else: no test takes a tenth of it on a busy machine. Tests' own limits are like it.
set(ACS_TEST_HANG_SECONDS 3600)

# acs_register_test(<name> COMMAND <command...> [LABELS <label...>]). Exit status 77 means skipped. Tests with
# the label long begin first, so that no core is idle at the end. The preset quick leaves them out.
function(acs_register_test name)
    cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "COMMAND;LABELS")
    add_test(NAME ${name} COMMAND ${arg_COMMAND})
    set_tests_properties(${name} PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT ${ACS_TEST_HANG_SECONDS} LABELS "${arg_LABELS}"
        ENVIRONMENT_MODIFICATION "${ACS_TEST_ENVIRONMENT}")
    if("long" IN_LIST arg_LABELS)
        set_tests_properties(${name} PROPERTIES COST 1000)
    endif()
endfunction()

# acs_add_test_program(<name> SOURCES <file...> [LIBS <library...>] [CORE]): build a cmocka program; acs_register_test runs
# it. CORE: it links the core alone. Defines no target where cmocka is missing.
function(acs_add_test_program name)
    if(NOT CMOCKA_FOUND)
        return()
    endif()
    cmake_parse_arguments(PARSE_ARGV 1 arg "CORE" "" "SOURCES;LIBS")
    add_executable(${name} ${arg_SOURCES})
    target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/tests)
    target_link_libraries(${name} PRIVATE $<IF:$<BOOL:${arg_CORE}>,acs_core,acs> acs_flags PkgConfig::CMOCKA ${arg_LIBS})
endfunction()

# acs_add_test(<name> SOURCES <file...> [LIBS <library...>] [LABELS <label...>] [CORE]): build and register.
function(acs_add_test name)
    cmake_parse_arguments(PARSE_ARGV 1 arg "CORE" "" "SOURCES;LIBS;LABELS")
    set(core "")
    if(arg_CORE)
        set(core CORE)
    endif()
    acs_add_test_program(${name} SOURCES ${arg_SOURCES} LIBS ${arg_LIBS} ${core})
    if(TARGET ${name})
        acs_register_test(${name} COMMAND ${name} LABELS ${arg_LABELS})
    endif()
endfunction()
