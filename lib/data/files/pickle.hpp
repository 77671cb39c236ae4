// The data in a pickle of Python, as the Python version of CIFAR has it. Nothing is executed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fast::data {

/// Numbers, texts, lists, tuples, dictionaries, and arrays of NumPy by their state. Everything lies
/// in the memory of the reader, which refers to the bytes that it was made of.
class Pickle {
 public:
  enum class Kind : std::uint8_t { none, number, text, list, dictionary, object };
  struct Value {
    Kind kind = Kind::none;
    std::int64_t number = 0;
    std::string_view text{};  ///< of texts and bytes
    /// Of lists and tuples. A dictionary has keys and values in turn. An object has one list: the
    /// state that it was to be built with, or else the arguments that it was to be made of.
    std::vector<const Value*> items{};
  };

  /// Throws Error(data), which begins with `name`, for anything else, and for damage.
  Pickle(std::string_view bytes, std::string name);

  const Value& root() const { return *root_; }
  /// The value of a key of the root; null if it has none.
  const Value* find(std::string_view key) const;

 private:
  class Reader;
  std::deque<Value> values_;
  const Value* root_ = nullptr;
  std::string name_;
};

}  // namespace fast::data
