#include <png.h>

#include <algorithm>
#include <fast/core/error.hpp>
#include <fast/core/message.hpp>
#include <fast/data/image_folder.hpp>
#include <memory>

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

std::vector<fs::path> images_of(const fs::path& folder) {
  require_folder(folder);
  std::vector<fs::path> images;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    if (entry.path().extension() == ".png") images.push_back(entry.path());
  }
  require(!images.empty(), ErrorKind::data,
          "image folder: {} has no .png images; every class needs a folder with some",
          folder.string());
  std::sort(images.begin(), images.end());
  return images;
}

/// The first of every class, then the second of every class that has one, and so on.
std::vector<File> in_turn(const fs::path& directory, const std::vector<std::string>& classes) {
  std::vector<std::vector<fs::path>> images;
  std::size_t most = 0;
  for (const std::string& name : classes) {
    images.push_back(images_of(directory / name));
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

struct Image {
  std::int64_t rows, columns;
  std::vector<std::uint8_t> pixels;  ///< rows × columns × 3
};

Image read_png(const fs::path& path) {
  png_image png{};
  png.version = PNG_IMAGE_VERSION;
  const std::unique_ptr<png_image, decltype(&png_image_free)> owner(&png, png_image_free);
  const auto check = [&](int done) {
    require(done != 0, ErrorKind::data, "image folder: {}: cannot be read: {}; get it anew",
            path.string(), png.message);
  };
  check(png_image_begin_read_from_file(&png, path.c_str()));
  png.format = PNG_FORMAT_RGB;
  Image image{png.height, png.width, std::vector<std::uint8_t>(PNG_IMAGE_SIZE(png))};
  const png_color black{};
  check(png_image_finish_read(&png, &black, image.pixels.data(), 0, nullptr));
  return image;
}

void append_planes(const Image& image, std::vector<std::uint8_t>& values) {
  for (std::size_t channel = 0; channel < 3; ++channel) {
    for (std::size_t i = channel; i < image.pixels.size(); i += 3) {
      values.push_back(image.pixels[i]);
    }
  }
}

}  // namespace

std::vector<std::string> class_folders(const fs::path& directory) {
  require_folder(directory);
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(directory, error)) {
    if (entry.is_directory(error)) names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

Dataset read_image_folder(const fs::path& directory, const std::vector<std::string>& classes,
                          std::size_t limit) {
  require(!classes.empty(), ErrorKind::data, "image folder: {} has no folders, one a class",
          directory.string());
  std::vector<File> files = in_turn(directory, classes);
  if (limit > 0) files.resize(std::min(limit, files.size()));
  std::vector<std::uint8_t> values;
  std::vector<std::int32_t> labels;
  std::int64_t rows = 0, columns = 0;
  for (const File& file : files) {
    const Image image = read_png(file.path);
    if (rows == 0) {
      rows = image.rows;
      columns = image.columns;
      values.reserve(files.size() * image.pixels.size());
    }
    require(image.rows == rows && image.columns == columns, ErrorKind::data,
            "image folder: {} is {}x{}, {} is {}x{}; bring all to one size", files[0].path.string(),
            rows, columns, file.path.string(), image.rows, image.columns);
    append_planes(image, values);
    labels.push_back(file.label);
  }
  return {directory.filename().string(),
          {3, rows, columns},
          std::move(values),
          std::move(labels),
          static_cast<int>(classes.size())};
}

}  // namespace fast::data
