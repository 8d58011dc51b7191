# Add a module's sources to the library. Files that are not written yet are left out with a message, so that the
# modules can be built in any order; run cmake again when one appears.
function(acs_module_sources)
    foreach(file IN LISTS ARGN)
        if(EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/${file})
            target_sources(acs_objects PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/${file})
        else()
            message(STATUS "ACS: not there yet: ${CMAKE_CURRENT_SOURCE_DIR}/${file}")
        endif()
    endforeach()
endfunction()
