#include <dlib/matrix.h>

#include <fast/core/version.hpp>

int main() {
  const dlib::matrix<float> ones = dlib::ones_matrix<float>(2, 2);
  return dlib::sum(ones) == 4 && !fast::version().empty() ? 0 : 1;
}
