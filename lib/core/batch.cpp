#include <fast/core/batch.hpp>
#include <fast/core/error.hpp>

namespace fast {

Batch part_of(const Batch& batch, std::size_t first, std::size_t count) {
  const std::size_t size = batch.inputs.size() / batch.count(), each = batch.target_size();
  const auto part = [&](auto values) {
    return values.empty() ? values : values.subspan(first * each, count * each);
  };
  return {batch.inputs.subspan(first * size, count * size),
          part(batch.labels),
          batch.sample_shape,
          part(batch.targets),
          batch.target_shape,
          part(batch.mixed_labels),
          batch.share};
}

void require_class_labels(const Batch& batch, std::string_view who) {
  require(
      batch.targets.empty(), ErrorKind::argument,
      "{}: the batch has float targets; this model learns class labels. Choose another backend, "
      "or data with class labels",
      who);
  require(batch.target_shape.empty(), ErrorKind::argument,
          "{}: the batch has {} labels a sample; this model learns one. Choose another backend, or "
          "data with one label a sample",
          who, batch.target_size());
}

}  // namespace fast
