// Reader of the binary versions of CIFAR-10 and CIFAR-100
// (https://www.cs.toronto.edu/~kriz/cifar.html).
#pragma once

#include <fast/data/dataset.hpp>

#include <cstddef>
#include <filesystem>
#include <vector>

namespace fast::data {

/// Reads files of records of a label byte and 3072 pixel bytes, one file after the other: samples
/// of 3×32×32, ten classes. Throws Error(data), naming the file, when one is missing, empty or no
/// whole number of records, and on a label above 9. With a `limit` other than 0 only that many
/// records are read; all files must be there.
Dataset read_cifar10(const std::vector<std::filesystem::path>& files, std::size_t limit = 0);

/// Reads files of CIFAR-100. Their records begin with two label bytes: the group of classes, which
/// is not used, and the class, one of a hundred.
Dataset read_cifar100(const std::vector<std::filesystem::path>& files, std::size_t limit = 0);

}  // namespace fast::data
