#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fast/core/error.hpp>
#include <fast/data/shards.hpp>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "core/message.hpp"
#include "core/text.hpp"
#include "data/files/classes.hpp"
#include "data/files/csv_table.hpp"
#include "data/files/image.hpp"
#include "data/files/npy.hpp"
#include "data/shards/mapped_file.hpp"
#include "data/shards/shard_positions.hpp"
#include "data/shards/tar_index.hpp"

namespace fast::data {
namespace {

std::string_view text_of(const MappedFile& file) {
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

/// Where a sample's values lie in its file.
struct TarRange {
  std::size_t at = 0, bytes = 0;
};

/// The samples of one file.
struct TarShard {
  MappedFile file;
  std::vector<TarRange> ranges{};
};

/// A sample's values in the form of a Dataset.
struct Decoded {
  std::vector<std::int64_t> shape;
  Dataset::Values values;
};

Decoded decode(std::string_view bytes, const std::string& name,
               const std::optional<ImageSize>& resize) {
  if (bytes.starts_with(npy_magic)) {
    NpyArray array = parse_npy(bytes, name);
    array.shape.insert(array.shape.begin(), 1);
    NpySamples sample = npy_samples(std::move(array), name, std::vector<double>());
    return {std::move(sample.shape), std::move(sample.values)};
  }
  const Image image = resized_image(decode_image(bytes, name), resize);
  std::vector<std::uint8_t> planes(image.pixels.size());
  image.copy_planes(planes);
  return {{3, image.rows, image.columns}, std::move(planes)};
}

class TarSource final : public SampleSource {
 public:
  TarSource(std::vector<TarShard> shards, std::optional<ImageSize> resize, std::size_t left_out,
            std::string why_left_out)
      : shards_(std::move(shards)),
        resize_(resize),
        left_out_(left_out),
        why_left_out_(std::move(why_left_out)) {
    for (const TarShard& shard : shards_) positions_.add(shard.ranges.size());
    take_shape();
  }

  const std::vector<std::int64_t>& shape() const { return shape_; }
  bool is_bytes() const override { return is_bytes_; }
  std::vector<std::size_t> shards() const override {
    std::vector<std::size_t> counts;
    for (const TarShard& shard : shards_) counts.push_back(shard.ranges.size());
    return counts;
  }
  std::size_t left_out() const override { return left_out_; }
  std::string why_left_out() const override { return why_left_out_; }

  void read(std::size_t sample, std::span<std::byte> into) const override {
    const Decoded decoded = decoded_at(sample);
    const bool fits = decoded.shape == shape_ && (decoded.values.index() == 0) == is_bytes_;
    require(fits, ErrorKind::data,
            "{}: its shape is {}, that of the first sample is {}; bring all to one shape and type, "
            "or give a size of images (--resize)",
            name_of(sample), fmt::join(decoded.shape, "x"), fmt::join(shape_, "x"));
    std::visit(
        [&](const auto& values) {
          std::memcpy(into.data(), values.data(),
                      std::min(into.size(), std::as_bytes(std::span(values)).size()));
        },
        decoded.values);
  }

 private:
  /// Of the first sample that can be read.
  void take_shape() {
    constexpr std::size_t most_tries = 100;
    for (std::size_t i = 0; i < positions_.samples(); ++i) {
      try {
        const Decoded decoded = decoded_at(i);
        shape_ = decoded.shape;
        is_bytes_ = decoded.values.index() == 0;
        if (!is_bytes_) check_differences();
        return;
      } catch (const Error&) {
        if (i + 1 == std::min(positions_.samples(), most_tries)) throw;
      }
    }
  }
  /// Samples are read one by one: there is no origin for all of them, as tables have it.
  void check_differences() const {
    const std::string& file = shards_.front().file.path();
    const std::vector<double> origins = npy_samples(first_arrays(), file).origins;
    const auto found =
        std::find_if(origins.begin(), origins.end(), [](double origin) { return origin != 0; });
    if (found == origins.end()) return;
    fail(ErrorKind::data,
         "tar: {}: column {} of its arrays has values near {} with small differences, which 32-bit "
         "floats cannot tell apart; subtract a constant from them",
         printable(file), found - origins.begin() + 1, *found);
  }
  /// The first arrays of 64 bits as one; a single zero if there are none.
  NpyArray first_arrays() const {
    constexpr std::size_t most_samples = 256, most_values = 1 << 20;
    NpyArray all{{0}, std::vector<double>()};
    auto& values = std::get<std::vector<double>>(all.values);
    for (std::size_t i = 0; i < std::min(positions_.samples(), most_samples); ++i) {
      const auto [shard, range] = range_of(i);
      const std::string_view bytes = text_of(shard->file).substr(range.at, range.bytes);
      if (is_readable(bytes)) append(parse_npy(bytes, ""), all, values);
      if (values.size() >= most_values) break;
    }
    return values.empty() ? NpyArray{{1}, std::vector<double>{0}} : all;
  }
  static void append(const NpyArray& one, NpyArray& all, std::vector<double>& values) {
    std::vector<std::int64_t> shape = one.shape;
    shape.insert(shape.begin(), all.shape[0] + 1);
    if (all.shape[0] > 0 &&
        !std::equal(shape.begin() + 1, shape.end(), all.shape.begin() + 1, all.shape.end()))
      return;
    const auto add = [&]<class T>(const std::vector<T>& found) {
      if constexpr (sizeof(T) < sizeof(double)) return;
      values.insert(values.end(), found.begin(), found.end());
      all.shape = shape;
    };
    std::visit(add, one.values);
  }
  bool is_readable(std::string_view bytes) const {
    if (!bytes.starts_with(npy_magic)) return false;
    try {
      decode(bytes, "", resize_);
      return true;
    } catch (const Error&) {
      return false;
    }
  }
  std::pair<const TarShard*, TarRange> range_of(std::size_t sample) const {
    const auto [shard, within] = positions_.of(sample);
    return {&shards_[shard], shards_[shard].ranges[within]};
  }
  Decoded decoded_at(std::size_t sample) const {
    const auto [shard, range] = range_of(sample);
    const std::string_view bytes = text_of(shard->file).substr(range.at, range.bytes);
    try {
      return decode(bytes, "", resize_);
    } catch (const Error&) {
      return decode(bytes, name_of(sample), resize_);  // the same error, with the name
    }
  }
  /// Names are not kept: they would take more memory than all else.
  std::string name_of(std::size_t sample) const {
    const auto [shard, range] = range_of(sample);
    std::string name;
    for_each_member(text_of(shard->file), shard->file.path(), [&, at = range.at](TarMember member) {
      if (member.at == at) name = std::move(member.name);
    });
    return fmt::format("{}: {}", shard->file.path(), name);
  }

  std::vector<TarShard> shards_;
  std::optional<ImageSize> resize_;
  ShardPositions positions_;
  std::vector<std::int64_t> shape_;
  bool is_bytes_ = true;
  std::size_t left_out_ = 0;
  std::string why_left_out_;
};

/// A name's part before the first dot of its last component, and the part after it in small
/// letters.
std::pair<std::string, std::string> key_and_ending(const std::string& name) {
  const std::size_t slash = name.rfind('/');
  const std::size_t begin = slash == std::string::npos ? 0 : slash + 1;
  const std::size_t dot = std::min(name.find('.', begin), name.size());
  return {name.substr(0, dot), in_small_letters(name.substr(std::min(dot + 1, name.size())))};
}

/// True for the members that macOS adds to archives: "._NAME" beside each member.
bool is_of_finder(std::string_view name) {
  return name.substr(name.rfind('/') + 1).starts_with("._") || name.starts_with("__MACOSX/");
}

/// Collects the samples of files, member by member.
class TarSamples {
 public:
  explicit TarSamples(const LoadOptions& options)
      : kind_(options.targets),
        label_key_(options.target.empty() ? "label" : options.target),
        resize_(options.resize) {}

  void read(const std::filesystem::path& path) {
    shards_.push_back({MappedFile(path)});
    const std::string_view archive = text_of(shards_.back().file);
    for_each_member(archive, path.string(), [&](const TarMember& member) {
      add(member, archive.substr(member.at, member.bytes));
    });
    end_sample();
  }

  Dataset dataset(const std::string& name, int classes) {
    require(!targets_.empty(), ErrorKind::data,
            "tar: {}: no samples; members KEY.jpg, .png, .webp or .npy with KEY.cls or .json are "
            "required{}",
            printable(name), why_.empty() ? "" : ". The first that was left out: " + why_);
    auto source = std::make_shared<TarSource>(std::move(shards_), resize_, left_out_, why_);
    const std::vector<std::int64_t> shape = source->shape();
    if (!are_classes())
      check_targets_as_floats(targets_, "tar: " + printable(name) + ": the target");
    if (!are_classes())
      return {name, shape, std::move(source),
              Targets{std::vector<float>(targets_.begin(), targets_.end()), {}, 0}};
    const std::vector<std::int32_t> labels(targets_.begin(), targets_.end());
    const int found = *std::max_element(labels.begin(), labels.end()) + 1;
    return {name, shape, std::move(source), Targets{labels, {}, classes > 0 ? classes : found}};
  }

 private:
  struct Sample {
    std::string key;
    std::optional<TarRange> values{};
    std::optional<double> target{};
    std::string fault{};
  };

  void add(const TarMember& member, std::string_view contents) {
    if (is_of_finder(member.name)) return;
    const auto [key, ending] = key_and_ending(member.name);
    if (!sample_ || sample_->key != key) {
      end_sample();
      sample_ = Sample{key};
    }
    if (ending == "jpg" || ending == "jpeg" || ending == "png" || ending == "webp" ||
        ending == "npy") {
      if (!sample_->values) sample_->values = TarRange{member.at, member.bytes};
    } else if (ending == "cls" || ending == "json") {
      read_target(contents, ending == "json");
    }
  }

  void read_target(std::string_view contents, bool is_json) {
    double value = std::numeric_limits<double>::quiet_NaN();
    if (is_json) {
      const nlohmann::json json = nlohmann::json::parse(contents, nullptr, false);
      const nlohmann::json found =
          json.is_object() ? json.value(label_key_, nlohmann::json()) : json;
      if (found.is_number()) value = found.get<double>();
      if (!found.is_number() && sample_->target) return;  // other facts beside KEY.cls
    } else {
      while (!contents.empty() && (contents.back() == '\n' || contents.back() == '\r'))
        contents.remove_suffix(1);
      read_number(contents, value);
    }
    const bool must_be_class = kind_ == TargetKind::classes;
    if (must_be_class ? is_class(value) : std::isfinite(static_cast<float>(value))) {
      sample_->target = value;
    } else if (!sample_->target) {
      sample_->fault = must_be_class ? "its label is not a whole number from 0 on"
                                     : "its label or target is not a finite number";
    }
  }

  void end_sample() {
    if (!sample_) return;
    const Sample sample = *std::exchange(sample_, std::nullopt);
    if (sample.values && sample.target) {
      shards_.back().ranges.push_back(*sample.values);
      targets_.push_back(*sample.target);
      return;
    }
    if (!sample.values && !sample.target && sample.fault.empty()) return;  // no member of a sample
    if (left_out_++ > 0) return;
    why_ = fmt::format("{}: {}: {}", shards_.back().file.path(), sample.key,
                       !sample.fault.empty() ? sample.fault
                       : sample.values       ? "it has no label (.cls or .json)"
                                             : "it has no values (.jpg, .png, .webp or .npy)");
  }

  /// See TargetKind::automatic.
  bool are_classes() const {
    if (kind_ != TargetKind::automatic) return kind_ == TargetKind::classes;
    return std::all_of(targets_.begin(), targets_.end(),
                       [](double value) { return is_class(value, most_automatic_classes); });
  }

  TargetKind kind_;
  std::string label_key_;
  std::optional<ImageSize> resize_;
  std::vector<TarShard> shards_;
  std::vector<double> targets_;
  std::optional<Sample> sample_;
  std::size_t left_out_ = 0;
  std::string why_;
};

}  // namespace

Dataset open_tar(const std::vector<std::filesystem::path>& files, const LoadOptions& options) {
  require(!files.empty(), ErrorKind::argument, "tar: no files; give the shards of a set");
  TarSamples samples(options);
  for (const auto& file : files) samples.read(file);
  return samples.dataset(files.front().string(), options.classes);
}

}  // namespace fast::data
