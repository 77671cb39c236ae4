// Shards: files of samples that are read in windows.
#pragma once

#include <fast/data/dataset.hpp>
#include <fast/data/load.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace fast::data {

// The files of a set of shards, by a pattern.

/// Returns the files that a pattern names, each once, in the order of the pattern and sorted within
/// a glob. `{000..011}` stands for the numbers of a range, with as many digits as its first one.
/// `{a,b}` stands for each of the texts. `*`, `?` and `[...]` match as in a shell. Throws
/// Error(argument) for a range without an end or of more than a million files. Throws Error(data),
/// naming the pattern or file, when a file is not there.
std::vector<std::filesystem::path> shard_files(const std::string& pattern);

/// It has one of the characters that shard_files() replaces.
bool is_pattern(std::string_view path);

// FAST's own files for data larger than memory: shards of samples that are mapped into memory.

// A shard (version 1, little-endian):
//   64 bytes    "FASTPACK", then zeros
//   samples     each sample's values, one after the other: bytes or f32
//   targets     from a multiple of 64 on: i32 labels or f32 targets of all samples
//   sums        from a multiple of 64 on: u64 XXH3 of each sample's values
//   description JSON: what the shard holds, and where
//   24 bytes    u64 length of the description, u64 XXH3 of it, "FASTEND1"
inline constexpr char packed_ending[] = ".packed";

/// See Splits. Empty where the data has no names.
struct PackedNames {
  std::vector<std::string> features = {}, class_names = {};
  std::string target = {};
};

/// What a shard's description says.
struct PackedInfo {
  std::string name;
  std::vector<std::int64_t> sample_shape, target_shape;
  bool is_bytes = true;
  bool has_labels = true;  ///< else float targets
  int classes = 0;
  std::size_t samples = 0;
  std::size_t index = 0, shards = 1;  ///< this is shard `index` of `shards`
  std::uint64_t set = 0;              ///< equal for the shards of one set, by their contents' form
  /// The sum and the sum of squares of each channel, over all of its values (bytes divided by 255),
  /// less its origin. Descriptions without origins mean 0.
  std::vector<double> origins, sums, squares;
  PackedNames names = {};
};

/// Reads the end of a shard. Throws Error(data), naming the file, when it is truncated, damaged, of
/// a later version or another format.
PackedInfo read_packed_info(const std::filesystem::path& file);

/// Writes the samples in shards of at most `shard_bytes` of values (one sample at least):
/// DIRECTORY/SPLIT-00000-of-00012.packed and so on, each complete before it has this name. A
/// damaged sample is left out, and `left_out` is told why. Returns the files. Throws
/// Error(resource) when they cannot be written, and Error(argument) for a set without samples or a
/// `shard_bytes` of 0.
std::vector<std::filesystem::path> write_packed(
    const Dataset& samples, const std::filesystem::path& directory, const std::string& split,
    std::size_t shard_bytes, const std::function<void(const std::string& why)>& left_out,
    PackedNames names = {});

/// The shards of one set, mapped into memory. A sample whose sum differs is damaged. Throws
/// Error(data), naming the file, for shards that differ in form and for a set that lacks one.
Dataset open_packed(const std::vector<std::filesystem::path>& files);

/// The moments of all values, from the sums in the descriptions. Throws as open_packed() does.
Normalization packed_moments(const std::vector<std::filesystem::path>& files);

/// Reads all samples of a shard. The numbers of those whose sums differ.
std::vector<std::size_t> damaged_in(const std::filesystem::path& file);

// Shards of samples as tar files, as WebDataset writes them (https://github.com/webdataset).

/// Opens the samples of tar files without reading their values: headers and labels are read here.
/// Members that follow one another and whose names are equal up to the first dot of the last
/// component are one sample. It has
/// - values: KEY.jpg, KEY.jpeg, KEY.png, KEY.webp (3 × rows × columns) or KEY.npy (see read_npz),
/// - a target: KEY.cls, a number as text, or KEY.json, a number or an object with a number at
///   `options.target` ("label" if that is empty).
/// Other members are not looked at. With TargetKind::classes targets are whole numbers from 0 on,
/// `options.classes` of them (0: the largest + 1); with TargetKind::numbers they are floats.
///
/// The first sample determines the shape. A sample without values or target, or with a target that
/// is none of these, is left out (SampleSource::left_out()). A sample whose image cannot be decoded
/// or has another shape is damaged. With `options.resize` all images get this size; arrays keep
/// theirs.
///
/// Throws Error(data), naming the file, for a damaged, truncated or compressed tar file, and for
/// files without samples.
Dataset open_tar(const std::vector<std::filesystem::path>& files, const LoadOptions& options);

}  // namespace fast::data
