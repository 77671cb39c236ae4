// Links LibTorch without waiting for its headers.
#include <fast/torch/replica.hpp>

int main() {
  const auto check = &fast::torch::Replica::require_in_place;
  return check == nullptr ? 1 : 0;
}
