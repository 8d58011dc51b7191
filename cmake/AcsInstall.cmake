# What is installed: headers, libraries, acs-info, acs-bisect, acs-scan, acs-adopt, acs-tune, acs-report, a CMake package and the pkg-config files.
include(CMakePackageConfigHelpers)
set(acs_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/acs)

install(TARGETS acs EXPORT acs-targets FILE_SET HEADERS)
foreach(target IN ITEMS acs_shared acs_compat)
    if(TARGET ${target})
        install(TARGETS ${target} EXPORT acs-targets)
    endif()
endforeach()
install(EXPORT acs-targets NAMESPACE acs:: DESTINATION ${acs_package_dir})
if(TARGET acs-info)
    install(TARGETS acs-info)
endif()
install(PROGRAMS tools/acs-bisect tools/acs-scan tools/acs-adopt tools/acs-tune tools/acs-report TYPE BIN)
install(DIRECTORY tools/acs_scan tools/acs_adopt tools/acs_tune tools/acs_report tools/acs_progress DESTINATION ${CMAKE_INSTALL_DATADIR}/acs
    FILES_MATCHING PATTERN "*.py")
install(DIRECTORY src/report/page DESTINATION ${CMAKE_INSTALL_DATADIR}/acs/acs_report FILES_MATCHING PATTERN "*.html" PATTERN "*.css" PATTERN "*.js")
install(FILES scripts/progress.sh DESTINATION ${CMAKE_INSTALL_DATADIR}/acs)

configure_package_config_file(cmake/acs-config.cmake.in acs-config.cmake INSTALL_DESTINATION ${acs_package_dir})
write_basic_package_version_file(acs-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES cmake/AcsScan.cmake DESTINATION ${acs_package_dir})
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/acs-config.cmake ${CMAKE_CURRENT_BINARY_DIR}/acs-config-version.cmake
    DESTINATION ${acs_package_dir})

# acs.pc is libacs.so where it is installed, with the runtime that it shares with the program; what libacs.a needs is
# private. The linker prefers libacs.so under --static too, so acs-static.pc names the archive. -lpthread, since nvcc
# refuses -pthread.
file(RELATIVE_PATH ACS_PC_TO_PREFIX ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
string(REGEX REPLACE "/$" "" ACS_PC_TO_PREFIX "${ACS_PC_TO_PREFIX}")
set(ACS_PC_LIBS "")
set(ACS_PC_SANITIZE "")
if(ACS_SANITIZE)
    set(ACS_PC_SANITIZE " -fsanitize=${ACS_SANITIZE}")
endif()
set(ACS_PC_LIBS_PRIVATE "-lpthread -ldl")
if(ACS_HAVE_CUDA)
    get_filename_component(acs_cudart_dir "${CUDA_cudart_static_LIBRARY}" DIRECTORY)
    if(TARGET acs_shared)
        set(ACS_PC_LIBS " -L${acs_cudart_dir} -lcudart")
    endif()
    string(PREPEND ACS_PC_LIBS_PRIVATE "-L${acs_cudart_dir} -lcudart_static -lrt ")
endif()
foreach(module IN ITEMS acs acs-static)
    configure_file(cmake/${module}.pc.in ${module}.pc @ONLY)
    install(FILES ${CMAKE_CURRENT_BINARY_DIR}/${module}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endforeach()
