// Reader of IDX files, the format of MNIST and its kin (http://yann.lecun.com/exdb/mnist).
#pragma once

#include <fast/data/dataset.hpp>

#include <cstddef>
#include <filesystem>

namespace fast::data {

/// Reads unsigned-byte images (magic 0x00000803; sample shape 1×rows×columns) and their labels
/// (0x00000801), each plain or gzip-compressed. Memory is taken only as the file shows that it
/// holds what its header says. Throws Error(data), naming the file and the values, when a file is
/// missing, damaged, truncated, of another format or longer than its header says. It also throws
/// when the counts differ, and on a label outside [0, classes). Bytes after the end of a gzip
/// stream are ignored, as gzip does. With a `limit` other than 0 only that many samples are read.
/// What follows them is not checked.
Dataset read_idx(const std::filesystem::path& images, const std::filesystem::path& labels,
                 int classes = 10, std::size_t limit = 0);

}  // namespace fast::data
