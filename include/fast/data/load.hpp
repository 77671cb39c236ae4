// Data sets by name or from a directory.
#pragma once

#include <fast/data/dataset.hpp>
#include <fast/data/resize.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fast::data {

/// What the targets of a table, an array or a tar shard are. Automatic: numbers if one of them is
/// neither a text nor a whole number from 0 to 999, else classes.
enum class TargetKind { automatic, classes, numbers };

/// What samples are read for. To use a model, only one part is needed: samples in one piece (a
/// table, arrays, a pattern of shards, a folder of classes) are all in the test part, in their
/// order, unless a share or files for tests are named. Images are decoded when they are needed.
/// Nothing is measured. For predictions, targets may be missing.
enum class Purpose { training, evaluation, prediction };

struct LoadOptions {
  std::size_t limit = 0;  ///< reads the first `limit` samples of either part; 0: all
  /// The number of classes of tables, arrays, tar shards and IDX files. 0: as many as the data
  /// shows; IDX labels: 10.
  int classes = 0;
  std::filesystem::path system_root = "/usr/share/datasets";  ///< where named data sets lie
  TargetKind targets = TargetKind::automatic;  ///< of CSV and NumPy files, and of tar shards
  std::string target = {};                     ///< the column, array or file to be predicted
  std::vector<std::string> features = {};      ///< columns of a CSV file, or one array
  std::vector<std::string> categories = {};    ///< columns of a CSV file that are categories
  std::string test_data = {};                  ///< the test part, in files of the same form
  std::optional<double> test_share = {};       ///< of samples that come in one piece; empty: 0.2
  bool scale_targets = false;                  ///< float targets, in training; see Normalization
  bool stratify = false;         ///< that share of each class, of samples with one label each
  std::uint64_t split_seed = 1;  ///< which samples are the test part
  std::string train_split = {}, test_split = {};  ///< folders or shards; empty: see load()
  bool stream = false;  ///< images of folders are decoded when they are needed, not held in memory
  /// Images of both parts get this size; see Resizer. Images of folders and tar files may then
  /// differ in size. The normalization is then measured.
  std::optional<ImageSize> resize = {};
  Purpose purpose = Purpose::training;
  /// Of a model: labels are places in this list, and other names are an error. Empty: the data's.
  std::vector<std::string> class_names = {};
  std::vector<double> origins = {};  ///< of a model, unless samples are read for training
  std::vector<float> means = {};     ///< likewise; they stand for the missing values of a table
};

struct Splits {
  Dataset train;
  Dataset test;
  /// Known for a named data set, measured on the training part of a directory.
  Normalization normalization;
  std::vector<std::string> features = {};  ///< names of a table's columns, in the order of values
  std::vector<std::string> class_names = {};  ///< by label, where the data has names
  std::string target = {};                    ///< the name of a table's column that is predicted
  /// What was found and not used, or how a shape was read: one sentence each, for people.
  std::vector<std::string> notes = {};
};

/// The names that load() knows.
std::vector<std::string_view> dataset_names();

/// Reads data by a name or a path; docs/reference/data.md describes the formats.
///
/// - "fashion-mnist": Debian's package dataset-fashion-mnist, unless a directory of that name is
///   there.
/// - "digits": 1,797 images of 8x8 pixels. They come with the programs, in share/fast/datasets; a
///   directory of that name, of the system or the current one, goes before.
/// - A file: FILE.csv or .tsv, plain or .gz (see read_csv), FILE.npz or FILE.npy (see read_npz).
/// - Shards: a pattern of tar files or packed files, as "train-{000..011}.tar" or
///   "shards/*.packed", with the test part in `test_data` (see shard_files).
/// - A directory with packed files or tar files, whose names begin with a split.
/// - A directory with CIFAR-10 (data_batch_1.bin to data_batch_5.bin, test_batch.bin) or CIFAR-100
///   (train.bin, test.bin) in the binary version, also in cifar-10-batches-bin or
///   cifar-100-binary.
/// - A directory with images in folders SPLIT/CLASS/*.png, .jpg, .jpeg or .webp.
/// - A directory with NumPy files (see read_npy_directory).
/// - A directory with the four files {train,t10k}-{images-idx3,labels-idx1}-ubyte, each plain or
///   .gz.
///
/// A split is the part of a name before "/" or "-". The training part is the split "train" or
/// "training", or `train_split`. The test part is "test", or else "val", "valid" or "validation",
/// or `test_split`.
///
/// Throws Error(argument) for options that the format does not have, and with the choices on an
/// unknown name. Throws Error(data) when files are missing or bad.
Splits load(const std::string& name_or_path, const LoadOptions& options = {});

}  // namespace fast::data
