#include <algorithm>
#include <fast/core/error.hpp>
#include <fast/data/formats.hpp>
#include <memory>
#include <set>
#include <utility>

#include "core/message.hpp"
#include "data/files/contents.hpp"
#include "data/files/image.hpp"
#include "data/files/split.hpp"

namespace fast::data {
namespace {
namespace fs = std::filesystem;

struct File {
  fs::path path;
  std::int32_t label;
};

void require_folder(const fs::path& directory) {
  const std::string problem = why_unreadable_directory(directory);
  require(problem.empty(), ErrorKind::data, "image folder: {} cannot be read: {}",
          directory.string(), problem);
}

/// Files and folders that programs hide, as .ipynb_checkpoints and macOS's "._NAME".
bool is_hidden(const fs::path& path) { return path.filename().string().starts_with('.'); }

/// Calls `visit` with each file in a folder and its folders, but for hidden ones.
template <class Visit>
void for_each_file(const fs::path& folder, const Visit& visit) {
  std::error_code error;
  fs::recursive_directory_iterator entry(folder, fs::directory_options::follow_directory_symlink,
                                         error);
  for (; !error && entry != fs::recursive_directory_iterator(); entry.increment(error)) {
    if (is_hidden(entry->path())) {
      entry.disable_recursion_pending();
      continue;
    }
    if (std::error_code ignored; !entry->is_directory(ignored)) visit(entry->path());
  }
}

std::vector<fs::path> images_of(const fs::path& folder) {
  require_folder(folder);
  std::vector<fs::path> images;
  for_each_file(folder, [&](const fs::path& file) {
    if (has_image_ending(file.filename().string())) images.push_back(file);
  });
  require(
      !images.empty(), ErrorKind::data,
      "image folder: {} has no .png, .jpg or .jpeg images; every class needs a folder with some",
      folder.string());
  std::sort(images.begin(), images.end());
  return images;
}

/// The first of every class, then the second of every class that has one, and so on.
std::vector<File> in_turn(const fs::path& directory, const std::vector<std::string>& classes,
                          bool may_lack) {
  std::vector<std::vector<fs::path>> images;
  std::size_t most = 0;
  for (const std::string& name : classes) {
    std::error_code ignored;
    const bool lacks = may_lack && !fs::exists(directory / name, ignored);
    images.push_back(lacks ? std::vector<fs::path>() : images_of(directory / name));
    most = std::max(most, images.back().size());
  }
  std::vector<File> files;
  for (std::size_t k = 0; k < most; ++k) {
    for (std::size_t c = 0; c < images.size(); ++c) {
      if (k < images[c].size()) files.push_back({images[c][k], static_cast<std::int32_t>(c)});
    }
  }
  return files;
}

/// The first `limit` files, if that is not 0.
std::vector<File> files_of(const fs::path& directory, const std::vector<std::string>& classes,
                           std::size_t limit, bool may_lack = false) {
  require(!classes.empty(), ErrorKind::data, "image folder: {} has no folders, one a class",
          directory.string());
  std::vector<File> files = in_turn(directory, classes, may_lack);
  if (limit > 0) files.resize(std::min(limit, files.size()));
  return files;
}

Image image_of(const fs::path& path, const std::optional<ImageSize>& resize) {
  return resized_image(decode_image(read_text(path, "image folder"), path.string()), resize);
}

/// Images that are decoded when they are needed. Each is a shard, so that workers own others in
/// each epoch.
class FolderSource final : public SampleSource {
 public:
  FolderSource(std::vector<File> files, std::optional<ImageSize> resize)
      : files_(std::move(files)), resize_(resize) {
    take_size();
  }
  std::vector<std::int64_t> shape() const { return {3, rows_, columns_}; }
  bool is_bytes() const override { return true; }
  std::string name_of(std::size_t sample) const override { return files_[sample].path.string(); }
  std::vector<std::size_t> shards() const override {
    return std::vector<std::size_t>(files_.size(), 1);
  }
  void read(std::size_t sample, std::span<std::byte> into) const override {
    const fs::path& path = files_[sample].path;
    const Image image = image_of(path, resize_);
    require(image.rows == rows_ && image.columns == columns_, ErrorKind::data,
            "image folder: {} is {}x{}, {} is {}x{}; bring all to one size, or give one (--resize)",
            sized_.string(), rows_, columns_, path.string(), image.rows, image.columns);
    image.copy_planes({reinterpret_cast<std::uint8_t*>(into.data()), into.size()});
  }

 private:
  /// Of the first image that can be read.
  void take_size() {
    constexpr std::size_t most_tries = 100;
    const std::size_t tries = std::min(files_.size(), most_tries);
    for (std::size_t i = 0; sized_.empty(); ++i) {
      try {
        const Image image = image_of(files_[i].path, resize_);
        rows_ = image.rows;
        columns_ = image.columns;
        sized_ = files_[i].path;
      } catch (const Error&) {
        if (i + 1 == tries) throw;
      }
    }
  }

  std::vector<File> files_;
  std::optional<ImageSize> resize_;
  std::int64_t rows_ = 0, columns_ = 0;
  fs::path sized_;  ///< the image that has this size
};

}  // namespace

std::vector<std::string> class_folders(const fs::path& directory) {
  require_folder(directory);
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(directory, error)) {
    if (entry.is_directory(error) && !is_hidden(entry.path()))
      names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string unread_images(const fs::path& directory) {
  std::vector<fs::path> files;
  for_each_file(directory, [&](const fs::path& file) {
    if (is_other_image(file.filename().string())) files.push_back(file);
  });
  if (files.empty()) return {};
  const fs::path& first = *std::min_element(files.begin(), files.end());
  return fmt::format("{} of other formats than PNG, JPEG and WebP, the first is {}", files.size(),
                     printable(first.string()));
}

std::string misplaced_images(const fs::path& directory) {
  std::set<std::string> found;
  std::error_code error;
  const auto is_image = [](const fs::directory_entry& entry) {
    return has_image_ending(entry.path().filename().string());
  };
  for (const auto& entry : fs::directory_iterator(directory, error)) {
    const fs::directory_iterator inside(entry.path(), error);
    const bool has_image = !error && std::any_of(begin(inside), end(inside), is_image);
    if (has_image || is_image(entry)) found.insert(entry.path().filename().string());
  }
  return found.empty() ? std::string() : *found.begin();
}

Dataset read_image_folder(const fs::path& directory, const std::vector<std::string>& classes,
                          std::size_t limit, std::optional<ImageSize> resize) {
  const std::vector<File> files = files_of(directory, classes, limit);
  std::vector<std::uint8_t> values;
  std::vector<std::int32_t> labels;
  std::int64_t rows = 0, columns = 0;
  for (const File& file : files) {
    const Image image = image_of(file.path, resize);
    if (rows == 0) {
      rows = image.rows;
      columns = image.columns;
      values.reserve(files.size() * image.pixels.size());
    }
    require(image.rows == rows && image.columns == columns, ErrorKind::data,
            "image folder: {} is {}x{}, {} is {}x{}; bring all to one size, or give one (--resize)",
            files[0].path.string(), rows, columns, file.path.string(), image.rows, image.columns);
    values.resize(values.size() + image.pixels.size());
    image.copy_planes(std::span(values).last(image.pixels.size()));
    labels.push_back(file.label);
  }
  return {directory.filename().string(),
          {3, rows, columns},
          std::move(values),
          std::move(labels),
          static_cast<int>(classes.size())};
}

Dataset open_image_folder(const fs::path& directory, const std::vector<std::string>& classes,
                          std::size_t limit, std::optional<ImageSize> resize, bool may_lack) {
  std::vector<File> files = files_of(directory, classes, limit, may_lack);
  std::vector<std::int32_t> labels;
  for (const File& file : files) labels.push_back(file.label);
  auto source = std::make_shared<FolderSource>(std::move(files), resize);
  const std::vector<std::int64_t> shape = source->shape();
  return {directory.filename().string(), shape, std::move(source),
          Targets{std::move(labels), {}, static_cast<int>(classes.size())}};
}

Dataset open_images(const fs::path& directory, std::optional<ImageSize> resize) {
  std::vector<File> files;
  for (fs::path& path : images_of(directory)) files.push_back({std::move(path), 0});
  const std::size_t count = files.size();
  auto source = std::make_shared<FolderSource>(std::move(files), resize);
  const std::vector<std::int64_t> shape = source->shape();
  return {directory.filename().string(), shape, std::move(source), no_targets(count)};
}

}  // namespace fast::data
