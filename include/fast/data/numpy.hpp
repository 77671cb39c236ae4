// Reader of NumPy's files: .npy with one array, .npz with several (numpy.lib.format).
#pragma once

#include <fast/data/load.hpp>

#include <filesystem>

namespace fast::data {

/// Arrays of uint8, float32, float64, int32 or int64, little-endian, in C order. The first side of
/// an array counts samples. Samples of uint8 stay bytes, other types become float. The rest of the
/// shape is the shape of a sample, with two exceptions. A sample of rows × columns gets a channel
/// in front. Channels that come last (1 or 3 of them, and more than 4 rows) go to the front.
///
/// Targets have one side. Whole numbers are classes from 0 on, `options.classes` of them (0: the
/// largest + 1). With TargetKind::numbers, targets are floats; the sides after the first are the
/// shape of one target.
///
/// Arrays are found by their names, in this order: x_train, y_train, x_test, y_test; train_x,
/// train_y, test_x, test_y; train_images, train_labels, test_images, test_labels; x, y. Without
/// arrays for the test part, a share of the samples is the test part, as in read_csv().
/// `options.features` (one name) and `options.target` name two arrays instead.
///
/// Throws Error(data), naming the file and the array, for what is not one of these.

/// Reads the members of a .npz file.
Splits read_npz(const std::filesystem::path& path, const LoadOptions& options);
/// Reads the files NAME.npy in a directory.
Splits read_npy_directory(const std::filesystem::path& directory, const LoadOptions& options);
/// Reads the samples in one file; `options.target` names the file of the targets.
Splits read_npy(const std::filesystem::path& path, const LoadOptions& options);

/// Some of the files that read_npy_directory() needs are there.
bool has_npy_files(const std::filesystem::path& directory);

}  // namespace fast::data
