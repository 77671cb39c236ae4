#include "fast_serve/request_parser.hpp"

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <fast/train/model_metadata.hpp>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include "core/message.hpp"
#include "core/registry.hpp"
#include "data/files/csv_table.hpp"
#include "nn/shape.hpp"

namespace fast::serve {
namespace {

std::size_t values_of(const InputForm& form) {
  return static_cast<std::size_t>(nn::elements_of(form.sample));
}

std::string shown(const nn::Shape& shape) { return fmt::format("[{}]", train::shape_text(shape)); }

void check_count(std::size_t count, const InputForm& form) {
  if (count == 0) refuse(400, "there are no instances; send one at least");
  if (count > form.most_instances) {
    refuse(413, "{} instances; {} at most are taken in one request, send them in parts", count,
           form.most_instances);
  }
}

/// The samples as one list of values, or in the shape of the model's input; an image of one channel
/// needs no channel.
bool fits(const nn::Shape& sample, const nn::Shape& input) {
  nn::Shape image = sample;
  if (image.size() + 1 == input.size() && input.front() == 1) image.insert(image.begin(), 1);
  if (image == input) return true;
  const bool is_list = sample.size() == 1 || input.size() == 1;
  return is_list && nn::elements_of(sample) == nn::elements_of(input);
}

/// The lengths of nested lists, which must be alike.
class Nesting {
 public:
  void open() { lengths_.push_back(0); }
  void count_value() {
    if (!lengths_.empty()) ++lengths_.back();
  }
  /// The end of a list. Refuses one that has another length than its like.
  void close(std::size_t instance) {
    const std::size_t depth = lengths_.size() - 1;
    if (known_.size() <= depth) known_.resize(depth + 1);
    if (known_[depth] && *known_[depth] != lengths_.back()) {
      refuse(400, "instance {} has a list of {} elements, others have {}; all must be alike",
             instance, lengths_.back(), *known_[depth]);
    }
    known_[depth] = lengths_.back();
    lengths_.pop_back();
    if (!lengths_.empty()) ++lengths_.back();
  }
  std::size_t depth() const { return lengths_.size(); }
  /// Of an instance that has been closed.
  nn::Shape shape() const {
    nn::Shape shape;
    for (const auto& length : known_)
      shape.push_back(static_cast<std::int64_t>(length.value_or(0)));
    return shape;
  }

 private:
  std::vector<std::size_t> lengths_;
  std::vector<std::optional<std::size_t>> known_;
};

/// The fields of an object, as training encoded the columns of a table.
class Row {
 public:
  void clear() { names_.clear(), fields_.clear(); }
  void begin_field(std::string& name) { names_.push_back(std::move(name)); }
  void end_field(std::string text) { fields_.push_back(std::move(text)); }

  void encode(const InputForm& form, std::size_t instance, std::vector<float>& into) {
    if (codes_.empty() || names_ != known_) find(form, instance);
    using Kind = data::FeatureCode::Kind;
    for (std::size_t k = 0; k < codes_.size(); ++k) {
      const data::FeatureCode& code = codes_[k];
      const std::string& field = fields_[code.column];
      const bool is_missing = data::is_missing(field);
      if (code.kind == Kind::number)
        into.push_back(is_missing ? mean(form, k) : number(field, code, instance));
      else if (code.kind == Kind::missing)
        into.push_back(is_missing ? 1 : 0);
      else
        into.push_back(!is_missing && data::category_in(field) == code.category ? 1 : 0);
    }
  }

 private:
  void find(const InputForm& form, std::size_t instance) {
    known_.clear();
    codes_.clear();
    for (const std::string& feature : form.features) {
      std::optional<data::FeatureCode> code = data::code_of(feature, names_);
      if (!code) {
        refuse(400, "instance {} has no member \"{}\"; send null if its value is missing", instance,
               printable(data::column_in(feature)));
      }
      codes_.push_back(std::move(*code));
    }
    known_ = names_;
  }
  static float mean(const InputForm& form, std::size_t k) {
    return form.means.empty() ? 0 : form.means[k % form.means.size()];
  }
  float number(const std::string& field, const data::FeatureCode& code,
               std::size_t instance) const {
    double value = 0;
    const bool is_number = data::read_feature(field, value);
    if (!is_number || !std::isfinite(static_cast<float>(value))) {
      refuse(400, "instance {}: \"{}\" is \"{}\"; a finite number is required", instance,
             printable(names_[code.column]), printable(field.substr(0, 40)));
    }
    return static_cast<float>(value);
  }

  std::vector<std::string> names_, fields_, known_;
  std::vector<data::FeatureCode> codes_;  ///< of objects with the members `known_`
};

/// Takes a body's parts as the parser finds them. It keeps the numbers and nothing else.
class BodyReader final : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit BodyReader(const InputForm& form) : form_(form), sample_values_(values_of(form)) {}

  Instances take() {
    if (!seen_instances_) {
      refuse(400, "the member \"instances\" is missing; send {{\"instances\": [[...], ...]}}");
    }
    check_count(count_, form_);
    Instances instances{{}, count_, normalized_.value_or(false), has_rows_};
    if (has_rows_ && type_.value_or(ElementType::f32) == ElementType::u8)
      refuse(400, "the type u8 is for lists; leave it out, or send lists");
    if (type_.value_or(ElementType::f32) == ElementType::u8) {
      instances.values = bytes();
    } else {
      instances.values = std::move(values_);
    }
    return instances;
  }

  bool null() override { return part_ == Part::row ? field("") : wrong("null"); }
  bool boolean(bool value) override {
    if (part_ == Part::row) return field(value ? "true" : "false");
    if (part_ == Part::normalized && !normalized_) {
      normalized_ = value;
      return true;
    }
    return wrong(value ? "true" : "false");
  }
  bool number_integer(number_integer_t value) override {
    return number(static_cast<double>(value));
  }
  bool number_unsigned(number_unsigned_t value) override {
    return number(static_cast<double>(value));
  }
  bool number_float(number_float_t value, const string_t&) override { return number(value); }
  bool string(string_t& value) override {
    if (part_ == Part::row) return field(value);
    if (part_ == Part::type && !type_) {
      type_ = element_type(value);
      return true;
    }
    return wrong("a text");
  }
  bool binary(binary_t&) override { return wrong("binary data"); }

  bool start_object(std::size_t) override {
    if (part_ == Part::instances && in_list_ && nesting_.depth() == 0) {
      begin_row();
      return true;
    }
    if (part_ != Part::start) wrong("an object");
    part_ = Part::member;
    return true;
  }
  bool key(string_t& name) override {
    if (part_ == Part::row) {
      row_.begin_field(name);
      return true;
    }
    if (name == "instances" && !seen_instances_) {
      part_ = Part::instances;
    } else if (name == "type" && !type_) {
      part_ = Part::type;
    } else if (name == "normalized" && !normalized_) {
      part_ = Part::normalized;
    } else {
      const bool known = name == "instances" || name == "type" || name == "normalized";
      if (known) refuse(400, "the member \"{}\" is there twice", name);
      refuse(400, "there is no member \"{}\"{}", printable(name.substr(0, longest_shown)),
             did_you_mean(name.substr(0, longest_shown), {"instances", "type", "normalized"}));
    }
    return true;
  }
  bool end_object() override {
    if (part_ == Part::row) {
      row_.encode(form_, count_++, values_);
      part_ = Part::instances;
      return true;
    }
    part_ = Part::end;
    return true;
  }

  bool start_array(std::size_t) override {
    if (part_ != Part::instances) wrong("a list");
    if (!in_list_) {
      in_list_ = seen_instances_ = true;
      return true;
    }
    if (nesting_.depth() == form_.sample.size()) {
      refuse(400,
             "instance {} has lists nested {} deep; a list of {} values, or the shape {}, is "
             "required",
             count_, nesting_.depth() + 1, sample_values_, shown(form_.sample));
    }
    if (nesting_.depth() == 0 && count_ >= form_.most_instances) {
      check_count(form_.most_instances + 1, form_);
    }
    nesting_.open();
    return true;
  }
  bool end_array() override {
    if (nesting_.depth() == 0) {
      part_ = Part::member;
      return true;
    }
    nesting_.close(count_);
    if (nesting_.depth() == 0) end_instance();
    return true;
  }

  bool parse_error(std::size_t byte, const std::string&,
                   const nlohmann::detail::exception& error) override {
    std::string why = error.what();
    const std::size_t colon = why.find(": ");
    if (colon != std::string::npos) why = why.substr(colon + 2);
    refuse(400, "the body is not JSON: byte {}: {}", byte, printable(why.substr(0, longest_text)));
  }

 private:
  enum class Part { start, member, instances, row, type, normalized, end };
  static constexpr std::size_t longest_shown = 40, longest_text = 160;

  bool field(std::string text) {
    row_.end_field(std::move(text));
    return true;
  }

  void begin_row() {
    if (form_.features.empty() || form_.features.size() != sample_values_) {
      refuse(400,
             "instance {} is an object, and the features of this model have no names; a list of {} "
             "numbers is required",
             count_, sample_values_);
    }
    if (count_ >= form_.most_instances) check_count(form_.most_instances + 1, form_);
    has_rows_ = true;
    row_.clear();
    part_ = Part::row;
  }

  bool number(double value) {
    if (part_ == Part::row) return field(fmt::format("{}", value));
    if (part_ != Part::instances || nesting_.depth() == 0) return wrong("a number");
    const auto narrow = static_cast<float>(value);
    if (!std::isfinite(value) || std::abs(value) > std::numeric_limits<float>::max()) {
      refuse(400, "instance {} has a number that no float32 can hold", count_);
    }
    if (values_.size() - count_ * sample_values_ >= sample_values_) {
      refuse(400, "instance {} has more than {} values; the shape {} is required", count_,
             sample_values_, shown(form_.sample));
    }
    nesting_.count_value();
    values_.push_back(narrow);
    return true;
  }

  void end_instance() {
    if (values_.size() != (count_ + 1) * sample_values_ || !fits(nesting_.shape(), form_.sample)) {
      refuse(400, "instance {} has the shape {}; a list of {} values, or the shape {}, is required",
             count_, shown(nesting_.shape()), sample_values_, shown(form_.sample));
    }
    ++count_;
  }

  std::vector<std::uint8_t> bytes() const {
    std::vector<std::uint8_t> bytes;
    bytes.reserve(values_.size());
    for (std::size_t i = 0; i < values_.size(); ++i) {
      const float value = values_[i];
      if (!(value >= 0 && value <= 255) || value != std::floor(value)) {
        refuse(400,
               "instance {} has the value {}; with the type u8, whole numbers from 0 to 255 "
               "are required",
               i / sample_values_, value);
      }
      bytes.push_back(static_cast<std::uint8_t>(value));
    }
    return bytes;
  }

  [[noreturn]] bool wrong(const char* what) const {
    switch (part_) {
      case Part::start:
      case Part::end:
        refuse(400, "the body is {}; an object is required: {{\"instances\": [[...], ...]}}", what);
      case Part::row:
        refuse(
            400,
            "instance {} has a member that is {}; texts, numbers, true, false and null are taken",
            count_, what);
      case Part::type:
        refuse(400, "\"type\" is {}; \"f32\" or \"u8\" is required", what);
      case Part::normalized:
        refuse(400, "\"normalized\" is {}; true or false is required", what);
      default:
        if (!in_list_) refuse(400, "\"instances\" is {}; a list of instances is required", what);
        refuse(400,
               "instance {} has {}; a list of {} numbers, or nested lists of the shape {}, is "
               "required",
               count_, what, sample_values_, shown(form_.sample));
    }
  }

  const InputForm& form_;
  std::size_t sample_values_;
  Part part_ = Part::start;
  bool in_list_ = false, seen_instances_ = false, has_rows_ = false;
  Row row_;
  std::optional<ElementType> type_;
  std::optional<bool> normalized_;
  Nesting nesting_;
  std::vector<float> values_;
  std::size_t count_ = 0;
};

/// How many samples the tensor has by its shape.
std::size_t count_of(std::string_view text, const InputForm& form) {
  const auto shape = train::shape_of(text);
  if (!shape) {
    refuse(400, "the shape \"{}\" cannot be read; send numbers with an x between them, as 64x{}",
           printable(text.substr(0, 40)), train::shape_text(form.sample));
  }
  const nn::Shape sample(shape->begin() + 1, shape->end());
  if (sample == form.sample || (shape->size() > 1 && fits(sample, form.sample))) {
    return static_cast<std::size_t>(shape->front());
  }
  if (*shape == form.sample) return 1;
  refuse(400, "the tensor has the shape {}; samples of the shape {} are required", shown(*shape),
         shown(form.sample));
}

template <class T>
std::vector<T> copied(std::string_view body) {
  std::vector<T> values(body.size() / sizeof(T));
  std::memcpy(values.data(), body.data(), body.size());
  return values;
}

/// Without a branch for each value, so that the compiler makes vectors of it.
bool all_are_finite(const std::vector<float>& values) {
  constexpr std::uint32_t exponent = 0x7f800000;
  bool all = true;
  for (const float value : values)
    all &= (std::bit_cast<std::uint32_t>(value) & exponent) != exponent;
  return all;
}

void check_finite(const std::vector<float>& values, std::size_t sample_values) {
  if (all_are_finite(values)) return;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!std::isfinite(values[i])) {
      refuse(400, "sample {} has the value {}; finite numbers are required", i / sample_values,
             values[i]);
    }
  }
}

}  // namespace

ElementType element_type(std::string_view name) {
  if (name == "f32") return ElementType::f32;
  if (name == "u8") return ElementType::u8;
  refuse(400, "the type \"{}\" is unknown; choose f32 or u8", printable(name.substr(0, 40)));
}

Instances parse_json(std::string_view body, const InputForm& form) {
  BodyReader reader(form);
  nlohmann::json::sax_parse(body.begin(), body.end(), &reader);
  // nlohmann::json takes a zero byte for the end, and reads nothing behind it.
  if (const std::size_t zero = body.find('\0'); zero != std::string_view::npos) {
    refuse(400, "the body is not JSON: byte {}: a zero byte", zero + 1);
  }
  return reader.take();
}

Instances parse_raw(std::string_view body, const InputForm& form, ElementType type,
                    std::string_view shape) {
  const std::size_t sample_values = values_of(form);
  const std::size_t sample_bytes = sample_values * (type == ElementType::f32 ? sizeof(float) : 1);
  if (body.empty()) refuse(400, "the body is empty; a sample has {} bytes", sample_bytes);
  if (body.size() % sample_bytes != 0) {
    refuse(400, "the body has {} bytes; samples of {} bytes (shape {}) are required", body.size(),
           sample_bytes, shown(form.sample));
  }
  const std::size_t count = body.size() / sample_bytes;
  if (!shape.empty() && count_of(shape, form) != count) {
    refuse(400, "the shape \"{}\" does not fit the body, which has {} samples", printable(shape),
           count);
  }
  check_count(count, form);
  if (type == ElementType::u8) return {copied<std::uint8_t>(body), count};
  std::vector<float> values = copied<float>(body);
  check_finite(values, sample_values);
  return {std::move(values), count};
}

}  // namespace fast::serve
