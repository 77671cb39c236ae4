#include <fast/nn/cuda/network.hpp>

int main() { return fast::cuda::cudnn_version() >= 90000 ? 0 : 1; }
