// Data sets by name or from a directory.
#pragma once

#include <fast/data/dataset.hpp>

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace fast::data {

struct LoadOptions {
  std::size_t limit = 0;  ///< reads the first `limit` samples of either part; 0: all
  int classes = 10;       ///< of IDX labels; a named data set knows its own
  std::filesystem::path system_root = "/usr/share/datasets";  ///< where named data sets lie
};

struct Splits {
  Dataset train;
  Dataset test;
  /// Known for a named data set, measured on the training part of a directory.
  Normalization normalization;
};

/// The names that load() knows.
std::vector<std::string_view> dataset_names();

/// "fashion-mnist" (Debian's package dataset-fashion-mnist), or a directory: with the four files
/// {train,t10k}-{images-idx3,labels-idx1}-ubyte, each plain or .gz; with data_batch_1.bin to
/// data_batch_5.bin and test_batch.bin, all six, of CIFAR-10's binary version (or those in
/// cifar-10-batches-bin); or with images in train/<class>/*.png and test/<class>/*.png, as CINIC-10
/// has them. A name goes before a directory of that name ("./fashion-mnist"). Throws
/// Error(argument) with the choices on an unknown name, Error(data) when files are missing or bad.
Splits load(const std::string& name_or_path, const LoadOptions& options = {});

}  // namespace fast::data
