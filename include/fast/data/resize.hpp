// Images of another size.
#pragma once

#include <fast/data/dataset.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace fast::data {

/// The size of an image in pixels.
struct ImageSize {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  bool operator==(const ImageSize&) const = default;
};

/// Returns the size for a text "ROWSxCOLUMNS", as "224x224". Throws Error(argument) unless both are
/// from 1 to 16,384.
ImageSize image_size_from(std::string_view text);

/// Bilinear interpolation of planes of one size, with pixels as squares: pixel i covers [i, i + 1).
/// A point between four centers has the weighted mean of their pixels. Beyond the outermost centers
/// the value stays. A new pixel is the mean of points that lie at equal distances in it, at most
/// one old pixel apart. There is one point a side if the plane grows, and ceil(old / new) if it
/// shrinks, so that all old pixels count.
///
/// A size that stays changes no bit. Constants stay. A linear ramp stays one, where the points lie
/// between the outermost centers. Sums are computed in double. Bytes are rounded to the nearest
/// value, halves up. The same bits on every machine. Threads may share an object.
class Resizer {
 public:
  /// Throws Error(argument) unless all sides are positive.
  Resizer(ImageSize from, ImageSize to);

  /// Planes one after the other: `from` and `into` have as many.
  void resize(std::span<const std::uint8_t> from, std::span<std::uint8_t> into) const;
  void resize(std::span<const float> from, std::span<float> into) const;

  std::size_t from_size() const { return static_cast<std::size_t>(from_.rows * from_.columns); }
  std::size_t to_size() const { return static_cast<std::size_t>(to_.rows * to_.columns); }

 private:
  /// The old pixels of each new one along a side, and their weights.
  struct Side {
    std::vector<std::size_t> first, begin;  ///< old pixel; place in `weights`; by new pixel
    std::vector<double> weights;
  };
  static Side side(std::int64_t from, std::int64_t to);
  template <class T>
  void run(std::span<const T> from, std::span<T> into) const;

  ImageSize from_, to_;
  Side rows_, columns_;
};

/// The same samples with images of this size: in memory, or resized when they are read if the data
/// set is streamed. Throws Error(argument) unless samples are images [channels x rows x columns].
Dataset resized(const Dataset& dataset, ImageSize to);

}  // namespace fast::data
