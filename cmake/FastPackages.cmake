# Debian packages, by  scripts/deb.sh: libfast-c0 (the shared library of the C interface, named after its SONAME as Debian
# asks), libfast-dev (headers, static libraries) and fast-tools (the programs).
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME fast)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_CONTACT "FAST maintainers <maintainers@fast.invalid>" CACHE STRING "Maintainer of the Debian packages")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL runtime dev tools)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)

set(CPACK_DEBIAN_RUNTIME_PACKAGE_NAME libfast-c0)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_CONTROL_EXTRA ${PROJECT_BINARY_DIR}/debian/shlibs ${PROJECT_BINARY_DIR}/debian/triggers)
file(CONFIGURE OUTPUT debian/shlibs CONTENT "libfast_c 0 libfast-c0 (>= @PROJECT_VERSION@)\n" @ONLY)
file(CONFIGURE OUTPUT debian/triggers CONTENT "activate-noawait ldconfig\n" @ONLY)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_PROVIDES "libfast")
set(CPACK_COMPONENT_RUNTIME_DESCRIPTION
"FAST trains deep networks on several workers. Each worker averages its
weights with its neighbors only, by one-sided communication of MPI.

This package has the shared library of the C interface.")

set(CPACK_DEBIAN_DEV_PACKAGE_NAME libfast-dev)
set(CPACK_DEBIAN_DEV_PACKAGE_SECTION libdevel)
# What the installed CMake package and the files for pkg-config look for.
set(CPACK_DEBIAN_DEV_PACKAGE_DEPENDS
  "libfast-c0 (= ${PROJECT_VERSION}), libcpp-httplib-dev, libfmt-dev, libhwy-dev, libjpeg-dev, ${FAST_MPI_DEV_PACKAGE}, libpng-dev, libtbb-dev, libwebp-dev, pkgconf | pkg-config, prometheus-cpp-dev, zlib1g-dev")
set(CPACK_DEBIAN_DEV_PACKAGE_SUGGESTS "cmake, fast-tools")
set(CPACK_COMPONENT_DEV_DESCRIPTION
"FAST trains deep networks on several workers. Each worker averages its
weights with its neighbors only, by one-sided communication of MPI.

This package has headers, static libraries, the CMake package and the
files for pkg-config.")

set(CPACK_DEBIAN_TOOLS_PACKAGE_NAME fast-tools)
set(CPACK_DEBIAN_TOOLS_PACKAGE_SECTION science)
set(CPACK_DEBIAN_TOOLS_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_TOOLS_PACKAGE_DEPENDS ${FAST_MPI_PACKAGE})  # mpiexec; shlibdeps adds the libraries
set(CPACK_DEBIAN_TOOLS_PACKAGE_RECOMMENDS "dataset-fashion-mnist, openssh-client")
set(CPACK_COMPONENT_TOOLS_DESCRIPTION
"FAST trains deep networks on several workers. Each worker averages its
weights with its neighbors only, by one-sided communication of MPI.

This package has fast-train, the launcher fastrun, and programs for
topologies, models, simulated networks, timelines and reports.")

# Manual pages are compressed; each package gets its copyright and changelog.
set(CPACK_PRE_BUILD_SCRIPTS ${PROJECT_SOURCE_DIR}/cmake/debian_files.cmake)
set(CPACK_FAST_SOURCE_DIR ${PROJECT_SOURCE_DIR})
include(CPack)
