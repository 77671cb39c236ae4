# FAST_MPI: "MPICH" or "Open MPI", as <mpi.h> says; and what Debian and pkg-config call it. Include it after each call of
# find_package(MPI), which sets the properties of its targets anew.
include(CheckSymbolExists)
set(CMAKE_REQUIRED_INCLUDES ${MPI_C_INCLUDE_DIRS})
check_symbol_exists(OPEN_MPI mpi.h FAST_MPI_IS_OPEN_MPI)
unset(CMAKE_REQUIRED_INCLUDES)
if(FAST_MPI_IS_OPEN_MPI)
  set(FAST_MPI "Open MPI")
  set(FAST_MPI_PKG_CONFIG ompi)
  set(FAST_MPI_DEV_PACKAGE libopenmpi-dev)
  set(FAST_MPI_PACKAGE openmpi-bin)
  # Without it, <mpi.h> declares the former C++ interface, which is in a library of its own.
  set_property(TARGET MPI::MPI_C APPEND PROPERTY INTERFACE_COMPILE_DEFINITIONS $<$<COMPILE_LANGUAGE:CXX>:OMPI_SKIP_MPICXX>)
else() # and those derived from it
  set(FAST_MPI "MPICH")
  set(FAST_MPI_PKG_CONFIG mpich)
  set(FAST_MPI_DEV_PACKAGE libmpich-dev)
  set(FAST_MPI_PACKAGE mpich)
endif()
