// Images in a folder a class, as CINIC-10 and ImageNet's kin come (folder/<class>/<image>.png or
// .jpg).
#pragma once

#include <fast/data/dataset.hpp>
#include <fast/data/resize.hpp>

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace fast::data {

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
/// none of the first 100 can be read.
Dataset open_image_folder(const std::filesystem::path& directory,
                          const std::vector<std::string>& classes, std::size_t limit = 0,
                          std::optional<ImageSize> resize = {});

}  // namespace fast::data
