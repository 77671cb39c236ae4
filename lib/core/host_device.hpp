// Marks functions that kernels call: compiled for devices by nvcc, and for the host by anybody.
#pragma once

#ifdef __CUDACC__
#define FAST_HOST_DEVICE __host__ __device__ __forceinline__
#else
#define FAST_HOST_DEVICE inline
#endif
