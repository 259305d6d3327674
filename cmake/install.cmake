# What find_package(tbsched CONFIG) finds. The wheel has none of it: its component is `python`.
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

set(package_folder "${CMAKE_INSTALL_LIBDIR}/cmake/tbsched")
install(TARGETS tbsched EXPORT tbsched-targets
        ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT cpp
        LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT cpp
        FILE_SET HEADERS DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" COMPONENT cpp)
install(EXPORT tbsched-targets NAMESPACE tbsched:: DESTINATION "${package_folder}" COMPONENT cpp)

set(devices_folder "${CMAKE_INSTALL_DATADIR}/tbsched/devices")
if(TBSCHED_TOML)
  install(DIRECTORY python/tbsched/hardware/devices/ DESTINATION "${devices_folder}" COMPONENT cpp
          FILES_MATCHING PATTERN "*.toml")
endif()

configure_package_config_file(
  cmake/tbsched-config.cmake.in "${PROJECT_BINARY_DIR}/tbsched-config.cmake"
  INSTALL_DESTINATION "${package_folder}" PATH_VARS devices_folder)
write_basic_package_version_file("${PROJECT_BINARY_DIR}/tbsched-config-version.cmake"
                                 COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/tbsched-config.cmake"
              "${PROJECT_BINARY_DIR}/tbsched-config-version.cmake"
        DESTINATION "${package_folder}" COMPONENT cpp)
