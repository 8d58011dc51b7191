# acs-info says what there is, in text and in JSON; bad values and bad command lines are refused, and named.
cmake_minimum_required(VERSION 3.24)

# info(<status> <variable=value...> ARGS <argument...>): it must end with this status; sets `output` and `errors`.
function(info status)
    cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "ARGS")
    execute_process(COMMAND ${CMAKE_COMMAND} -E env ${arg_UNPARSED_ARGUMENTS} ${program} ${arg_ARGS}
        RESULT_VARIABLE result OUTPUT_VARIABLE text ERROR_VARIABLE error_text)
    if(NOT result EQUAL status)
        message(FATAL_ERROR "acs-info ${ARGN}: ended with ${result}; it must be ${status}:\n${text}${error_text}")
    endif()
    set(output "${text}" PARENT_SCOPE)
    set(errors "${error_text}" PARENT_SCOPE)
endfunction()

# says(<text> <regular expression...>): each must be in the text.
function(says text)
    foreach(wanted IN LISTS ARGN)
        if(NOT text MATCHES "${wanted}")
            message(FATAL_ERROR "'${wanted}' is not to be found in:\n${text}")
        endif()
    endforeach()
endfunction()

# Where no GPU answers it says why; where one does, it is listed.
info(0)
says("${output}" "ACS ${version}\n" "compiler +(gcc|clang) [0-9]" "\n  host +available" "\n  sim +available"
    "\n  cuda +(available|not available: [^\n]+)\n" "\n  auto takes +(cuda|host)\n" "\n  ACS_WINDOW +256 +default")
if(NOT cuda)
    says("${output}" "CUDA toolkit +no CUDA" "not available: [^\n]*built without CUDA" "none +not looked for")
elseif(output MATCHES "cuda +available")
    says("${output}" "auto takes +cuda" "driver('s CUDA)? +[0-9]" "\n  0 +[^\n]+ SMs, [^\n]+ GiB, compute capability [0-9]+")
else()
    says("${output}" "auto takes +host" "CUDA toolkit +[0-9]+\\.[0-9]" "cuda +not available: cuda: " "\n  none +[^\n]+")
endif()

# Nothing to measure is no success.
if(NOT output MATCHES "cuda +available")
    info(1 ACS_BACKEND=host ACS_DEVICES=2 ARGS --measure)
    says("${output}" "\nLinks\n  none known +there is no GPU to measure\n")
    info(1 ARGS --json --measure)
    string(JSON value GET "${output}" links_remark)
    says("${value}" "^there is no GPU to measure$")
    info(0)
endif()

# Every option, once, by its variable.
file(STRINGS ${options} rows REGEX "^ACS_OPT_[A-Z]+\\(")
foreach(row IN LISTS rows)
    string(REGEX MATCH "\"(ACS_[A-Z_]+)\"" ignored "${row}")
    string(REGEX MATCHALL "\n  ${CMAKE_MATCH_1} [^\n]*(default|environment)" found "${output}")
    list(LENGTH found count)
    if(NOT count EQUAL 1)
        message(FATAL_ERROR "${CMAKE_MATCH_1} is listed ${count} times:\n${output}")
    endif()
endforeach()

info(0 ACS_BACKEND=host ACS_WINDOW=7 ACS_STATS=1 ACS_LOG=debug ACS_WINDWO=8)
says("${output}" "acs_open takes host" "ACS_BACKEND +host +environment" "ACS_WINDOW +7 +environment"
    "warning: ACS_WINDWO is set")
if(NOT "${errors}" STREQUAL "")
    message(FATAL_ERROR "something was written to standard error:\n${errors}")
endif()
if(NOT cuda)
    info(1 ACS_BACKEND=cuda)
    says("${output}" "acs_open takes none: [^\n]*built without CUDA")
endif()

# Bad values: all of them are named, what is good is still shown.
info(1 ACS_WINDOW=0 ACS_WAIT=maybe ACS_BATCH=5)
says("${output}" "error: ACS_WINDOW is \"0\"" "error: ACS_WAIT is \"maybe\"" "acs_open takes none: ACS_W"
    "ACS_BATCH +5 +environment" "host +available")

# JSON that a parser takes, whatever the values hold.
info(1 "ACS_WINDOW=a\"\\b" "ACS_CPUS=(\"=)" ACS_BACKEND=host ARGS --json)
foreach(path IN ITEMS version "backends;1;asked" "auto;asked" "acs_open;opened" "options;0;value" "errors;0")
    string(JSON value ERROR_VARIABLE wrong GET "${output}" ${path})
    if(wrong)
        message(FATAL_ERROR "JSON: ${path}: ${wrong}:\n${output}")
    endif()
    string(REPLACE ";" "_" name "${path}")
    set(json_${name} "${value}")
endforeach()
says("${json_version} ${json_backends_1_asked} ${json_auto_asked} ${json_options_0_value}" "^${version} host auto host$")
says("${json_errors_0}" "ACS_WINDOW is \"a\"")

info(0 ARGS --help)
says("${output}" "usage: acs-info")
info(2 ARGS --jsn)
says("${errors}" "'--jsn' is not understood" "usage: acs-info")
info(2 ARGS --json --verbose)
says("${errors}" "'--verbose' is not understood")
