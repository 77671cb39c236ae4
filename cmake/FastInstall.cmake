# Install rules: one export file a component, so that find_package(fast COMPONENTS nn) asks for a
# component's dependencies only when that component is asked for.
include(CMakePackageConfigHelpers)
set(FAST_CMAKE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/fast)

get_property(components GLOBAL PROPERTY FAST_COMPONENTS)
foreach(component IN LISTS components)
  install(EXPORT fast_${component}_targets FILE fast-${component}-targets.cmake NAMESPACE fast:: DESTINATION ${FAST_CMAKE_DIR} COMPONENT dev)
endforeach()
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/fast-config.cmake.in ${PROJECT_BINARY_DIR}/fast-config.cmake
                              INSTALL_DESTINATION ${FAST_CMAKE_DIR})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/fast-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/fast-config.cmake ${PROJECT_BINARY_DIR}/fast-config-version.cmake
        DESTINATION ${FAST_CMAKE_DIR} COMPONENT dev)
if(TARGET fast_nn_cuda)
  install(FILES ${PROJECT_SOURCE_DIR}/cmake/FindCUDNN.cmake DESTINATION ${FAST_CMAKE_DIR} COMPONENT dev)
endif()
