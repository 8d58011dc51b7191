# Installs the build tree to a scratch prefix, then builds and runs programs that find acs::blas there.
function(run)
    execute_process(COMMAND ${ARGN} RESULT_VARIABLE result OUTPUT_VARIABLE text ERROR_VARIABLE text)
    if(NOT result EQUAL 0)
        list(JOIN ARGN " " command)
        message(FATAL_ERROR "${command}\nended with ${result}:\n${text}")
    endif()
endfunction()

set(ENV{ACS_BACKEND} host) # about the package; a GPU has tests of its own
file(REMOVE_RECURSE ${scratch})
run(${CMAKE_COMMAND} --install ${build} --prefix ${scratch}/prefix)
run(${CMAKE_COMMAND} -S ${CMAKE_CURRENT_LIST_DIR}/consumer -B ${scratch}/build -G ${generator}
    -D CMAKE_PREFIX_PATH=${scratch}/prefix -D CMAKE_C_COMPILER=${cc} -D CMAKE_CXX_COMPILER=${cxx})
run(${CMAKE_COMMAND} --build ${scratch}/build)
foreach(language IN ITEMS c cpp)
    run(${scratch}/build/consumer_${language})
endforeach()
