#include <fast/core/batch.hpp>
#include <fast/core/error.hpp>

namespace fast {

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
