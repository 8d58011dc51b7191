# What is installed: headers, archives, a CMake package and a pkg-config file.
include(CMakePackageConfigHelpers)
set(acs_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/acs)

install(TARGETS acs EXPORT acs-targets FILE_SET HEADERS)
if(TARGET acs_compat)
    install(TARGETS acs_compat EXPORT acs-targets)
endif()
install(EXPORT acs-targets NAMESPACE acs:: DESTINATION ${acs_package_dir})

configure_package_config_file(cmake/acs-config.cmake.in acs-config.cmake INSTALL_DESTINATION ${acs_package_dir})
write_basic_package_version_file(acs-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/acs-config.cmake ${CMAKE_CURRENT_BINARY_DIR}/acs-config-version.cmake
    DESTINATION ${acs_package_dir})

# A static library: programs link with `pkg-config --static --libs acs`.
set(ACS_PC_LIBS_PRIVATE "-pthread")
if(ACS_HAVE_CUDA)
    get_filename_component(acs_cudart_dir "${CUDA_cudart_static_LIBRARY}" DIRECTORY)
    string(PREPEND ACS_PC_LIBS_PRIVATE "-L${acs_cudart_dir} -lcudart_static -lrt -ldl ")
endif()
if(ACS_SANITIZE)
    string(APPEND ACS_PC_LIBS_PRIVATE " -fsanitize=${ACS_SANITIZE}")
endif()
configure_file(cmake/acs.pc.in acs.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/acs.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
