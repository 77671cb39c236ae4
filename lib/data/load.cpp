#include <fmt/ranges.h>

#include <algorithm>
#include <fast/core/error.hpp>
#include <fast/data/formats.hpp>
#include <fast/data/load.hpp>
#include <fast/data/shards.hpp>
#include <initializer_list>
#include <map>
#include <set>
#include <span>

#include "core/contains.hpp"
#include "core/message.hpp"
#include "core/registry.hpp"
#include "core/text.hpp"
#include "data/files/contents.hpp"
#include "data/files/image.hpp"
#include "data/files/split.hpp"
#include "data/target_scale.hpp"

namespace fast::data {
namespace {
namespace fs = std::filesystem;

struct Known {
  std::string_view name;
  std::string_view remedy;  ///< where it is missing
  int classes;
  float mean;
  float stddev;
  std::span<const std::string_view> class_names = {};  ///< where they are not the labels
};
constexpr std::string_view clothes[] = {"T-shirt/top", "Trouser",   "Pullover", "Dress",
                                        "Coat",        "Sandal",    "Shirt",    "Sneaker",
                                        "Bag",         "Ankle boot"};
constexpr Known known[] = {
    {"fashion-mnist",
     "install the package dataset-fashion-mnist (apt-get install dataset-fashion-mnist), take the "
     "small set \"digits\", or give a directory",
     10, 0.2860F, 0.3530F, clothes},
    {"digits", "it comes with the programs; install them again, or give a directory", 10, 0.0191F,
     0.0236F}};

constexpr int cifar_batches = 5;
constexpr int idx_classes = 10;

/// Which options a format has, besides `limit` and the kind of targets.
struct FormatOptions {
  bool target = false, features = false, categories = false, classes = false, test_data = false,
       test_share = false, splits = false, stream = false;
};

void refuse_others(const LoadOptions& options, const FormatOptions& has, const std::string& from) {
  const auto refuse = [&](bool is_refused, const char* option) {
    require(!is_refused, ErrorKind::argument,
            "{}: without effect: \"{}\" is read without it; leave the option out", option,
            printable(from));
  };
  refuse(!has.target && !options.target.empty(), "--target");
  refuse(!has.features && !options.features.empty(), "--features");
  refuse(!has.categories && !options.categories.empty(), "--categories");
  const bool trains = options.purpose == Purpose::training;  // else they are the model's
  refuse(!has.classes && options.classes > 0 && trains, "--classes");
  refuse(!has.test_data && !options.test_data.empty(), "--test-data");
  refuse((!has.test_share || !options.test_data.empty()) && options.test_share, "--test-share");
  refuse((!has.test_share || !options.test_data.empty()) && options.stratify, "--stratify");
  refuse(!has.stream && options.stream, "--stream");
  refuse(!has.splits && !options.train_split.empty(), "--train-split");
  refuse(!has.splits && !options.test_split.empty(), "--test-split");
}

bool present(const fs::path& path) {
  std::error_code error;
  return fs::is_directory(path, error);
}

bool is_there(const fs::path& path) {
  std::error_code error;
  return fs::exists(path, error);
}

void require_readable(const fs::path& directory) {
  const std::string problem = why_unreadable_directory(directory);
  require(problem.empty(), ErrorKind::data,
          "data: {} cannot be read: {}; give a directory that this user can read",
          directory.string(), problem);
}

fs::path find_file(const fs::path& directory, const std::string& file) {
  for (const char* suffix : {"", ".gz"}) {
    fs::path path = directory / (file + suffix);
    if (is_there(path)) return path;
  }
  fail(ErrorKind::data,
       "data: {} has no {} and no {}.gz; wanted are {{train,t10k}}-images-idx3-ubyte and "
       "{{train,t10k}}-labels-idx1-ubyte, plain or .gz, or data_batch_1.bin, or "
       "train/<class>/*.png, "
       "or x_train.npy, or train-*.tar",
       directory.string(), file, file);
}

Splits load_idx(const fs::path& directory, const LoadOptions& options) {
  const int classes = options.classes > 0 ? options.classes : idx_classes;
  std::vector<std::string> names;
  if (options.purpose != Purpose::prediction)
    names = idx_class_names(directory, options.purpose == Purpose::training ? classes : 0);
  const auto part = [&](const std::string& name) {
    return read_idx(find_file(directory, name + "-images-idx3-ubyte"),
                    find_file(directory, name + "-labels-idx1-ubyte"), classes, options.limit);
  };
  return {.train = part("train"),
          .test = part("t10k"),
          .normalization = {},
          .class_names = std::move(names)};
}

std::vector<fs::path> batches_in(const fs::path& directory) {
  std::vector<fs::path> batches;
  for (int i = 1; i <= cifar_batches; ++i)
    batches.push_back(directory / fmt::format("data_batch_{}.bin", i));
  return batches;
}

/// Some of CIFAR-10's files are there.
bool is_cifar(const fs::path& directory) {
  const std::vector<fs::path> batches = batches_in(directory);
  return std::any_of(batches.begin(), batches.end(), is_there) ||
         is_there(directory / "test_batch.bin");
}

Splits load_cifar(const fs::path& directory, const LoadOptions& options) {
  return {read_cifar10(batches_in(directory), options.limit),
          read_cifar10({directory / "test_batch.bin"}, options.limit),
          {}};
}

bool is_cifar100(const fs::path& directory) {
  return is_there(directory / "train.bin") || is_there(directory / "test.bin");
}

Splits load_cifar100(const fs::path& directory, const LoadOptions& options) {
  return {read_cifar100({directory / "train.bin"}, options.limit),
          read_cifar100({directory / "test.bin"}, options.limit),
          {}};
}

// The Python version, as torchvision unpacks it: the files of CIFAR-10 have no ending, those of
// CIFAR-100 are "train" and "test" beside "meta".

bool is_cifar_python(const fs::path& directory) { return is_there(directory / "data_batch_1"); }

bool is_cifar100_python(const fs::path& directory) {
  return is_there(directory / "meta") && is_there(directory / "train");
}

Splits load_cifar100_python(const fs::path& directory, const LoadOptions& options) {
  return {read_cifar_python({directory / "train"}, 100, options.limit),
          read_cifar_python({directory / "test"}, 100, options.limit),
          {}};
}

Splits load_cifar_python(const fs::path& directory, const LoadOptions& options) {
  std::vector<fs::path> batches = batches_in(directory);
  for (fs::path& batch : batches) batch.replace_extension();
  return {read_cifar_python(batches, 10, options.limit),
          read_cifar_python({directory / "test_batch"}, 10, options.limit),
          {}};
}

/// Any version, which has no options; nothing where the directory has none.
std::optional<Splits> load_any_cifar(const fs::path& directory, const LoadOptions& options) {
  using Form =
      std::pair<bool (*)(const fs::path&), Splits (*)(const fs::path&, const LoadOptions&)>;
  constexpr Form forms[] = {{is_cifar, load_cifar},
                            {is_cifar100, load_cifar100},
                            {is_cifar100_python, load_cifar100_python},
                            {is_cifar_python, load_cifar_python}};
  for (const char* folder : {".", "cifar-10-batches-bin", "cifar-100-binary", "cifar-10-batches-py",
                             "cifar-100-python"}) {
    const fs::path place = folder == std::string_view(".") ? directory : directory / folder;
    if (present(place)) require_readable(place);
    const auto* const form = std::find_if(std::begin(forms), std::end(forms),
                                          [&](const Form& each) { return each.first(place); });
    if (form == std::end(forms)) continue;
    refuse_others(options, {}, directory.string());
    Splits splits = form->second(place, options);
    splits.class_names = cifar_class_names(place, splits.train.classes());
    return splits;
  }
  return std::nullopt;
}

/// Where torchvision puts the files of MNIST and its kin.
fs::path idx_place(const fs::path& directory) {
  for (const char* folder : {"raw", "MNIST/raw", "FashionMNIST/raw"}) {
    const fs::path place = directory / folder;
    for (const char* file : {"train-images-idx3-ubyte", "train-images-idx3-ubyte.gz"})
      if (is_there(place / file)) return place;
  }
  return directory;
}

/// The training and the test split among the names that are there.
struct SplitNames {
  std::string train, test;
};

std::string choose_split(const std::set<std::string>& names, const std::string& wanted,
                         std::initializer_list<const char*> usual, const char* option,
                         const fs::path& directory) {
  const std::vector<std::string_view> known(names.begin(), names.end());
  if (!wanted.empty()) {
    require(names.contains(wanted), ErrorKind::argument,
            "data: {}: there is no split \"{}\" among {}{}", directory.string(), printable(wanted),
            printable(fmt::format("{}", fmt::join(names, ", "))), did_you_mean(wanted, known));
    return wanted;
  }
  for (const char* name : usual) {
    if (names.contains(name)) return name;
  }
  fail(ErrorKind::data, "data: {}: {} is required, found are the splits {}; name one ({} NAME)",
       directory.string(), fmt::join(usual, " or "),
       printable(fmt::format("{}", fmt::join(names, ", "))), option);
}

SplitNames choose_splits(const std::set<std::string>& names, const LoadOptions& options,
                         const fs::path& directory) {
  SplitNames chosen;
  chosen.train =
      choose_split(names, options.train_split, {"train", "training"}, "--train-split", directory);
  chosen.test = choose_split(names, options.test_split, {"test", "val", "valid", "validation"},
                             "--test-split", directory);
  require(chosen.train != chosen.test, ErrorKind::argument,
          "data: {}: \"{}\" is the training and the test split; choose two", directory.string(),
          chosen.train);
  return chosen;
}

std::set<std::string> folders_in(const fs::path& directory) {
  const std::vector<std::string> names = class_folders(directory);
  return {names.begin(), names.end()};
}

/// Some folder has the name of a training split. A misspelled --train-split does not hide it.
bool has_image_folders(const fs::path& directory, const LoadOptions& options) {
  const bool named = !options.train_split.empty() && present(directory / options.train_split);
  return named || present(directory / "train") || present(directory / "training");
}

/// Each class has a folder, or fewer have. No other folder is there.
void check_folders(const fs::path& directory, const std::vector<std::string>& classes,
                   std::string_view whose) {
  for (const std::string& name : class_folders(directory)) {
    require(contains(classes, name), ErrorKind::data,
            "data: {} has a folder \"{}\", which is not among the {} classes of {}",
            directory.string(), printable(name), classes.size(), whose);
  }
}

/// Of a split, or of a folder without splits.
Dataset images_in(const fs::path& directory, const std::vector<std::string>& classes,
                  const LoadOptions& options) {
  if (options.purpose == Purpose::prediction) return open_images(directory, options.resize);
  const bool trains = options.purpose == Purpose::training;
  if (trains && !options.stream)
    return read_image_folder(directory, classes, options.limit, options.resize);
  if (!trains) check_folders(directory, classes, "the model");
  return open_image_folder(directory, classes, options.limit, options.resize, !trains);
}

void note_unread(const fs::path& directory, Splits& splits) {
  if (const std::string unread = unread_images(directory); !unread.empty())
    splits.notes.push_back("images not read: " + unread);
}

Splits load_images(const fs::path& directory, const LoadOptions& options) {
  const SplitNames names = choose_splits(folders_in(directory), options, directory);
  std::vector<std::string> classes = options.class_names;
  if (options.purpose == Purpose::training || classes.empty()) {
    classes = class_folders(directory / names.train);
    check_folders(directory / names.test, classes, "the split " + names.train);
  }
  Splits splits{images_in(directory / names.train, classes, options),
                images_in(directory / names.test, classes, options),
                {}};
  splits.class_names = std::move(classes);
  for (const std::string& split : {names.train, names.test}) note_unread(directory / split, splits);
  return splits;
}

/// Without splits, to use a model: a folder a class, or for predictions any.
Splits load_image_folder(const fs::path& directory, const LoadOptions& options) {
  std::vector<std::string> classes = options.class_names;
  if (classes.empty()) classes = class_folders(directory);
  Splits splits{{}, images_in(directory, classes, options), {}};
  splits.train = splits.test.slice(0, 0);
  splits.class_names = std::move(classes);
  note_unread(directory, splits);
  return splits;
}

/// Without splits: a share of a folder a class is the test part.
Splits load_unsplit_images(const fs::path& directory, const LoadOptions& options) {
  std::vector<std::string> classes = options.class_names;
  if (options.purpose == Purpose::training || classes.empty()) classes = class_folders(directory);
  LoadOptions whole = options;
  whole.limit = 0;
  Splits splits = split_at_random(images_in(directory, classes, whole), options);
  splits.class_names = std::move(classes);
  note_unread(directory, splits);
  return splits;
}

/// Images without splits: in folders of classes or, for predictions, anywhere.
bool has_one_folder(const fs::path& directory, const LoadOptions& options) {
  const std::string found = misplaced_images(directory);
  return !found.empty() && (options.purpose == Purpose::prediction || present(directory / found));
}

/// Images without the folders of a split, which other programs have.
void refuse_misplaced_images(const fs::path& directory) {
  const std::string found = misplaced_images(directory);
  require(found.empty(), ErrorKind::data,
          "data: {} has images ({}), and no folder \"train\"; move them to train/<class>/ and "
          "test/<class>/, or hold a part of folders out (--test-share 0.2)",
          directory.string(), printable(found));
}

using Files = std::vector<fs::path>;

/// The ending of a name, in small letters: ".csv" of DATA.CSV.
std::string ending_of(const fs::path& file) { return in_small_letters(file.extension().string()); }

/// All of one form.
bool have_ending(const Files& files, std::string_view ending) {
  return std::all_of(files.begin(), files.end(),
                     [&](const fs::path& file) { return ending_of(file) == ending; });
}

/// Tar files or packed ones, the first `limit` samples. `classes` of tar files are those of the
/// training part.
Dataset open_part(const Files& files, const LoadOptions& options, int classes,
                  const Dataset* train = nullptr) {
  if (have_ending(files, packed_ending)) return first_of(open_packed(files), options.limit);
  require(have_ending(files, ".tar"), ErrorKind::argument,
          "data: {} is neither a .tar nor a .packed file; shards of one form are required",
          printable(files.back().string()));
  LoadOptions of_part = options;
  of_part.classes = classes;
  if (train != nullptr)
    of_part.targets = train->targets().empty() ? TargetKind::classes : TargetKind::numbers;
  return first_of(open_tar(files, of_part), options.limit);
}

/// Packed files have the names of what they were made of.
void take_names(const Files& files, Splits& splits) {
  if (!have_ending(files, packed_ending)) return;
  PackedNames names = read_packed_info(files.front()).names;
  splits.features = std::move(names.features);
  splits.class_names = std::move(names.class_names);
  splits.target = std::move(names.target);
}

Splits load_shards(const Files& train, const Files& test, const LoadOptions& options) {
  Splits splits;
  if (options.purpose != Purpose::training && (train.empty() || test.empty())) {
    const Files& only = train.empty() ? test : train;
    splits.test = open_part(only, options, options.classes);
    take_names(only, splits);
    splits.train = splits.test.slice(0, 0);
    return splits;
  }
  splits.train = open_part(train, options, options.classes);
  splits.test = open_part(test, options, splits.train.classes(), &splits.train);
  take_names(train, splits);
  splits.normalization =
      have_ending(train, packed_ending) ? packed_moments(train) : splits.train.measure();
  return splits;
}

/// The shards in a directory, by their splits.
std::map<std::string, Files> shards_in(const fs::path& directory) {
  std::map<std::string, Files> splits;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(directory, error)) {
    const std::string name = entry.path().filename().string();
    if (!name.ends_with(".tar") && !name.ends_with(packed_ending)) continue;
    splits[name.substr(0, name.find_first_of("-."))].push_back(entry.path());
  }
  for (auto& [split, files] : splits) std::sort(files.begin(), files.end());
  return splits;
}

Splits load_shards_in(const fs::path& directory, const std::map<std::string, Files>& shards,
                      const LoadOptions& options) {
  std::set<std::string> names;
  for (const auto& [name, files] : shards) names.insert(name);
  if (options.purpose != Purpose::training && names.size() == 1)
    return load_shards({}, shards.begin()->second, options);
  const SplitNames chosen = choose_splits(names, options, directory);
  return load_shards(shards.at(chosen.train), shards.at(chosen.test), options);
}

Splits load_pattern(const std::string& pattern, const LoadOptions& options) {
  if (options.purpose != Purpose::training && options.test_data.empty())
    return load_shards({}, shard_files(pattern), options);
  require(!options.test_data.empty(), ErrorKind::argument,
          "data: \"{}\" names the shards of the training part; where is the test part? Name its "
          "files (--test-data PATTERN)",
          printable(pattern));
  return load_shards(shard_files(pattern), shard_files(options.test_data), options);
}

Splits load_layout(const fs::path& directory, const LoadOptions& options) {
  require_readable(directory);
  const std::string name = directory.string();
  std::error_code error;
  require(!fs::is_empty(directory, error), ErrorKind::data,
          "data: {} is empty; docs/reference/data.md has the files that a data set needs", name);
  if (const auto shards = shards_in(directory); !shards.empty()) {
    const bool are_tar = have_ending(shards.begin()->second, ".tar");
    refuse_others(options, {.target = true, .classes = are_tar, .splits = true}, name);
    return load_shards_in(directory, shards, options);
  }
  if (has_image_folders(directory, options)) {
    refuse_others(options, {.splits = true, .stream = true}, name);
    return load_images(directory, options);
  }
  const bool has_npy = has_npy_files(directory), has_images = has_one_folder(directory, options);
  const bool can_divide = has_images && options.purpose != Purpose::prediction;
  refuse_others(options,
                {.target = has_npy,
                 .features = has_npy,
                 .classes = true,
                 .test_share = has_npy || can_divide,
                 .stream = has_images},
                name);
  if (std::optional<Splits> found = load_any_cifar(directory, options)) return std::move(*found);
  if (has_npy) return read_npy_directory(directory, options);
  if (has_images && options.test_share) return load_unsplit_images(directory, options);
  if (has_images && options.purpose != Purpose::training)
    return load_image_folder(directory, options);
  refuse_misplaced_images(directory);
  return load_idx(idx_place(directory), options);
}

/// The moments are those of the training part as it is now.
void measure_again(Splits& splits) {
  std::vector<double> origins = std::move(splits.normalization.origins);
  splits.normalization = splits.train.measure();
  splits.normalization.origins = std::move(origins);
}

Splits load_directory(const fs::path& directory, const LoadOptions& options) {
  Splits splits = load_layout(directory, options);
  const bool is_measured = splits.train.is_streamed() && !options.stream;
  if (options.purpose == Purpose::training && !is_measured) measure_again(splits);
  return splits;
}

bool is_compressed(std::string_view ending) {
  constexpr std::string_view endings[] = {".gz", ".tgz", ".bz2", ".xz", ".zst", ".zip"};
  return std::find(std::begin(endings), std::end(endings), ending) != std::end(endings);
}

/// By the ending of its name.
Splits load_file(const std::string& path, const LoadOptions& options) {
  const std::string ending = ending_of(path);
  if ((is_pattern(path) && !is_there(path)) || ending == ".tar" || ending == packed_ending) {
    refuse_others(options, {.target = true, .classes = ending != packed_ending, .test_data = true},
                  path);
    return load_pattern(path, options);
  }
  if (is_table(path)) {
    refuse_others(options,
                  {.target = true,
                   .features = true,
                   .categories = true,
                   .classes = true,
                   .test_data = true,
                   .test_share = true},
                  path);
    return read_csv(path, options);
  }
  if (ending == ".npz" || ending == ".npy")
    refuse_others(options, {.target = true, .features = true, .classes = true, .test_share = true},
                  path);
  if (ending == ".npz") return read_npz(path, options);
  if (ending == ".npy") return read_npy(path, options);
  require(!has_image_ending(path) || !is_there(path), ErrorKind::argument,
          "data: \"{}\" is one image; give the folder that it is in", printable(path));
  require(!is_compressed(ending), ErrorKind::argument,
          "data: \"{}\" is compressed; unpack it, and give the file that it holds",
          printable(path));
  std::error_code error;
  require(!fs::is_regular_file(path, error), ErrorKind::argument,
          "data: \"{}\" is a file of no kind that is read: .csv, .tsv, .npz and .npy are; of IDX "
          "files, CIFAR's, shards and images, give the directory",
          printable(path));
  fail(ErrorKind::argument,
       "data: \"{}\" is neither a data set nor a directory ({}); known are {}, a file .csv, .tsv, "
       ".npz or .npy, shards (\"train-*.tar\"), or the path of a directory with four IDX files, "
       "CIFAR's "
       "binary files, shards or folders of images",
       printable(path), why_unreadable_directory(path), fmt::join(dataset_names(), ", "));
}

/// A model of one class has nothing to learn.
void check_classes(const Dataset& train, const std::string& from) {
  require(!train.targets().empty() || train.classes() != 1, ErrorKind::data,
          "data: {}: all targets are of one class; two or more are required", printable(from));
}

/// Files of models have them, and are UTF-8.
void check_names(const Splits& splits, const std::string& from) {
  const std::vector<std::string> target{splits.target};
  for (const std::vector<std::string>& names : {splits.class_names, splits.features, target})
    for (const std::string& name : names)
      require(is_utf8(name), ErrorKind::data,
              "data: {}: the name \"{}\" is not UTF-8; save it as UTF-8", printable(from),
              printable(name));
}

void check_alike(const Splits& splits, const std::string& from) {
  const Dataset &train = splits.train, &test = splits.test;
  require(train.sample_shape() == test.sample_shape(), ErrorKind::data,
          "data: {}: training samples are {}, test samples {}; they must be alike", printable(from),
          fmt::join(train.sample_shape(), "x"), fmt::join(test.sample_shape(), "x"));
  require(train.is_bytes() == test.is_bytes(), ErrorKind::data,
          "data: {}: training samples are {}, test samples {}; they must be alike", printable(from),
          train.is_bytes() ? "bytes" : "floats", test.is_bytes() ? "bytes" : "floats");
  require(train.target_shape() == test.target_shape() && train.classes() == test.classes(),
          ErrorKind::data,
          "data: {}: the training part has {} classes and targets of shape ({}), the test part {} "
          "and ({}); they must be alike",
          printable(from), train.classes(), fmt::join(train.target_shape(), ", "), test.classes(),
          fmt::join(test.target_shape(), ", "));
}

/// What has another size still. Images of folders and tar files have the size already.
void resize(Splits& splits, ImageSize to, bool trains) {
  Dataset train = resized(splits.train, to), test = resized(splits.test, to);
  const bool changes = train.sample_shape() != splits.train.sample_shape();
  splits.train = std::move(train);
  splits.test = std::move(test);
  if (changes && trains) measure_again(splits);
}

}  // namespace

namespace {

/// Where a named data set lies: of the system, or beside this program, which may bring it.
fs::path place_of(const Known& set, const LoadOptions& options) {
  const fs::path of_system = options.system_root / set.name;
  if (present(of_system)) return of_system;
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  const fs::path beside = program.parent_path().parent_path() / "share/fast/datasets" / set.name;
  return present(beside) ? beside : of_system;
}

}  // namespace

std::vector<std::string_view> dataset_names() {
  std::vector<std::string_view> names;
  for (const Known& each : known) names.push_back(each.name);
  return names;
}

namespace {

/// A directory of a data set's name comes before the data set, as a run's directory does.
Splits load_directory_or_explain(const std::string& name, const LoadOptions& options) try {
  return load_directory(name, options);
} catch (const Error& error) {
  if (!contains(dataset_names(), name)) throw;
  fail(error.kind(), "{} (the directory ./{} comes before the data set of this name; rename it)",
       error.what(), name);
}

}  // namespace

Splits load(const std::string& name_or_path, const LoadOptions& options) {
  const bool trains = options.purpose == Purpose::training;
  for (const Known& each : known) {
    if (each.name != name_or_path || present(name_or_path)) continue;
    refuse_others(options, {}, name_or_path);
    const fs::path directory = place_of(each, options);
    require(present(directory), ErrorKind::data, "data: {} is not installed ({} is missing); {}",
            each.name, directory.string(), each.remedy);
    LoadOptions own = options;
    own.classes = each.classes;
    Splits splits = load_layout(directory, own);
    splits.normalization = {{each.mean}, {each.stddev}};
    if (!each.class_names.empty())
      splits.class_names.assign(each.class_names.begin(), each.class_names.end());
    if (options.resize) resize(splits, *options.resize, trains);
    if (options.scale_targets && trains) scale_targets(splits, name_or_path);
    return splits;
  }
  Splits splits = present(name_or_path) ? load_directory_or_explain(name_or_path, options)
                                        : load_file(name_or_path, options);
  if (options.resize) resize(splits, *options.resize, trains);
  check_classes(splits.train, name_or_path);
  check_alike(splits, name_or_path);
  if (trains) check_names(splits, name_or_path);
  if (options.scale_targets && trains) scale_targets(splits, name_or_path);
  return splits;
}

}  // namespace fast::data
