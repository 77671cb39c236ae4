# Compiles for arm64 on Debian 12 with g++-aarch64-linux-gnu; scripts/arm64.sh. Tests run under qemu.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64-static)
set(ENV{PKG_CONFIG_LIBDIR} /usr/lib/aarch64-linux-gnu/pkgconfig:/usr/share/pkgconfig)
# MPI's compiler wrappers are programs for arm64.
foreach(language C CXX)
  set(MPI_${language}_HEADER_DIR /usr/include/aarch64-linux-gnu/mpich)
  set(MPI_${language}_LIB_NAMES mpich)
endforeach()
set(MPI_mpich_LIBRARY /usr/lib/aarch64-linux-gnu/libmpich.so)
