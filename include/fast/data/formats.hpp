// Readers of IDX, CIFAR, folders of images, CSV and NumPy files.
#pragma once

#include <fast/data/dataset.hpp>
#include <fast/data/load.hpp>
#include <fast/data/resize.hpp>

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fast::data {

// Reader of IDX files, the format of MNIST and its kin (http://yann.lecun.com/exdb/mnist).

/// Reads unsigned-byte images (magic 0x00000803; sample shape 1×rows×columns) and their labels
/// (0x00000801), each plain or gzip-compressed. Memory is taken only as the file shows that it
/// holds what its header says. Throws Error(data), naming the file and the values, when a file is
/// missing, damaged, truncated, of another format or longer than its header says. It also throws
/// when the counts differ, and on a label outside [0, classes). Bytes after the end of a gzip
/// stream are ignored, as gzip does. With a `limit` other than 0 only that many samples are read.
/// What follows them is not checked.
Dataset read_idx(const std::filesystem::path& images, const std::filesystem::path& labels,
                 int classes = 10, std::size_t limit = 0);

/// The names of classes in classes.txt beside such files, one a line. Empty if there is no such
/// file. Throws Error(data) unless it has `classes` different names (0: does not look).
std::vector<std::string> idx_class_names(const std::filesystem::path& directory, int classes);

// Reader of the binary versions of CIFAR-10 and CIFAR-100
// (https://www.cs.toronto.edu/~kriz/cifar.html).

/// Reads files of records of a label byte and 3072 pixel bytes, one file after the other: samples
/// of 3×32×32, ten classes. Throws Error(data), naming the file, when one is missing, empty or no
/// whole number of records, and on a label above 9. With a `limit` other than 0 only that many
/// records are read; all files must be there.
Dataset read_cifar10(const std::vector<std::filesystem::path>& files, std::size_t limit = 0);

/// Reads files of CIFAR-100. Their records begin with two label bytes: the group of classes, which
/// is not used, and the class, one of a hundred.
Dataset read_cifar100(const std::vector<std::filesystem::path>& files, std::size_t limit = 0);

/// Reads files of the Python version, pickles with "data" and "labels" or "fine_labels", which are
/// below `classes`. Nothing in them is executed. Throws Error(data) as above.
Dataset read_cifar_python(const std::vector<std::filesystem::path>& files, int classes,
                          std::size_t limit = 0);

/// The names of classes beside such files, in batches.meta.txt, fine_label_names.txt, batches.meta
/// or meta. Empty unless there are as many as `classes`.
std::vector<std::string> cifar_class_names(const std::filesystem::path& directory, int classes);

// Images in a folder a class, as CINIC-10 and ImageNet's kin come (folder/<class>/<image>.png or
// .jpg).

/// The names of the folders in `directory`, sorted: its classes. Throws Error(data) when it cannot
/// be read.
std::vector<std::string> class_folders(const std::filesystem::path& directory);

/// Returns how many images of formats that are not read (BMP, TIFF, GIF, WebP and others) the
/// folders of `directory` hold, and the first one, as a text for people; empty if there are none.
std::string unread_images(const std::filesystem::path& directory);

/// Returns a file or folder of `directory` with images that are not in SPLIT/CLASS/. This is an
/// image in `directory` itself, or a folder with an image in it. It returns the first by name, or
/// an empty text if there is none.
std::string misplaced_images(const std::filesystem::path& directory);

/// Reads all images (.png, .jpg, .jpeg, .webp) of directory/<class>/ as 3×rows×columns; gray ones
/// have three equal channels. With a `limit` other than 0, it reads so many: the first image of
/// every class by name, then the second, so that a part has all classes. Throws Error(data), naming
/// the file, when a class has no folder or no image, when an image cannot be read and when sizes
/// differ. With `resize` sizes may differ: all images get this one.
Dataset read_image_folder(const std::filesystem::path& directory,
                          const std::vector<std::string>& classes, std::size_t limit = 0,
                          std::optional<ImageSize> resize = {});

/// The same images, which are decoded when they are needed: one shard. An image that cannot be read
/// or has another size than the first one that can is a damaged sample. Throws Error(data) when
/// none of the first 100 can be read. With `may_lack`, classes may have no folder.
Dataset open_image_folder(const std::filesystem::path& directory,
                          const std::vector<std::string>& classes, std::size_t limit = 0,
                          std::optional<ImageSize> resize = {}, bool may_lack = false);

/// The images in `directory` and its folders by their paths, without targets (Purpose::prediction).
Dataset open_images(const std::filesystem::path& directory, std::optional<ImageSize> resize = {});

// Reader of tables of comma-separated values (RFC 4180), with the columns' names in the first line.

/// Reads the columns that `options` names: `options.features` in that order (empty: all other
/// columns with a name), and `options.target`. Fields may be quoted; lines end with LF or CRLF;
/// empty lines are skipped. Commas, semicolons or tabs separate the fields, whichever the first
/// line has most of. Beside semicolons and tabs, numbers may have decimal commas. A file whose name
/// ends with .gz is uncompressed.
///
/// A column of numbers is one feature; true, yes, false and no are 1 and 0. A column of texts, and
/// one of `options.categories`, is a feature of 0 and 1 for each of its texts, called
/// `COLUMN=TEXT`, in the order of their bytes. A column with missing values has one feature more,
/// `COLUMN is missing`. The column's mean in the training part stands for a missing number. A
/// category that is not known is 0 in all of its features. If `options.features` is not empty and
/// the purpose is not training, it holds names of such features: those of a model. Then
/// `options.means` stand for missing numbers.
///
/// The samples have the shape {features}. With TargetKind::numbers, targets are floats, one a
/// sample. With TargetKind::classes they are classes: if all values of the column are numbers,
/// these must be whole numbers from 0 on, and there are `options.classes` classes (0: the largest +
/// 1); or all are 1 and -1, which are the classes "-1" and "1". Otherwise each different text is a
/// class; the classes are sorted by bytes.
///
/// The test part is `options.test_data` if that is given: a table with the same columns. Otherwise
/// it is a share `options.test_share` of the rows, chosen at random by `options.split_seed`; rows
/// stay in their order. The normalization has the moments of each feature in the training part.
///
/// Throws Error(data), naming file, line and column, for rows of another length than the header,
/// fields that are no finite numbers, values that are no classes, and files that cannot be read.
/// Throws Error(argument) for a column that is not there, and for parts without samples.
Splits read_csv(const std::filesystem::path& path, const LoadOptions& options);

/// Parses a text in memory. `path` is for messages.
Splits parse_csv(std::string_view text, const std::string& path, const LoadOptions& options);

// Reader of NumPy's files: .npy with one array, .npz with several (numpy.lib.format).

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
