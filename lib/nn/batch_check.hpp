// What a batch must be for a model, whatever device it runs on.
#pragma once

#include <fast/core/batch.hpp>
#include <fast/nn/model_spec.hpp>

namespace fast::nn {

/// Throws Error(argument), as Network does, when shape, sizes or labels do not fit.
void require_fit(const Batch& batch, const ModelSpec& spec, std::int64_t classes);

}  // namespace fast::nn
