// --init-weights: a run that begins with the weights of another model.
#pragma once

#include <fast/core/tensor_view.hpp>

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace fast_train {

/// Names of a model's tensors, and what they are called elsewhere.
using NameMap = std::map<std::string, std::string>;

/// "THEIR.NAME OUR.NAME", a line a tensor; empty lines and lines that begin with # count for
/// nothing. Throws fast::Error (argument), naming `file` and the line, for other lines and for a
/// name of ours that is there twice.
NameMap read_name_map(std::string_view text, const std::string& file);

/// Copies the tensors of `from` to those of `to` that have the same name and shape. Names are those
/// of `map`, or equal. If none is equal, all of theirs may begin with the same text, as "model.".
/// Floating-point numbers of other types are converted. Tensors without such a counterpart stay as
/// they are. Returns one sentence that says so, for people. Throws fast::Error (argument), which
/// begins with --init-weights and `source`, when none has a counterpart, and for names of the map
/// that are not there.
std::string init_weights(const std::vector<fast::TensorView>& from,
                         const std::vector<fast::TensorView>& to, const std::string& source,
                         const NameMap& map = {});

}  // namespace fast_train
