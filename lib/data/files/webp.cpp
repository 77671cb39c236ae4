#include <webp/decode.h>

#include <utility>

#include "data/files/image_formats.hpp"

namespace fast::data {

Image decode_webp(std::string_view bytes, const std::string& name) {
  const auto* from = reinterpret_cast<const std::uint8_t*>(bytes.data());
  WebPBitstreamFeatures features;
  if (WebPGetFeatures(from, bytes.size(), &features) != VP8_STATUS_OK)
    refuse_image(name, "its header is damaged or truncated");
  if (features.has_animation != 0)
    refuse_image(name, "it is an animation", "save one of its images");
  check_pixels(features.height, features.width, name);
  Image image{features.height, features.width, {}};
  image.pixels.resize(static_cast<std::size_t>(image.rows * image.columns * 3));
  if (WebPDecodeRGBInto(from, bytes.size(), image.pixels.data(), image.pixels.size(),
                        3 * features.width) == nullptr)
    refuse_image(name, "its pixels are damaged or truncated");
  return image;
}

}  // namespace fast::data
