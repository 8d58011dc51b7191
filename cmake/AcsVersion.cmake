# ACS_VERSION, from include/acs.h: the header, the package files and project() cannot disagree.
file(STRINGS ${CMAKE_CURRENT_LIST_DIR}/../include/acs.h line REGEX "^#define ACS_VERSION_STRING ")
if(NOT line MATCHES "\"([0-9]+\\.[0-9]+\\.[0-9]+)\"")
    message(FATAL_ERROR "include/acs.h does not define ACS_VERSION_STRING as \"x.y.z\"")
endif()
set(ACS_VERSION ${CMAKE_MATCH_1})
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/../include/acs.h)
