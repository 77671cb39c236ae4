#include "fast_train/init_weights.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <fast/core/error.hpp>
#include <set>
#include <sstream>

#include "core/message.hpp"
#include "core/text.hpp"

namespace fast_train {

using namespace fast;

NameMap read_name_map(std::string_view text, const std::string& file) {
  NameMap map;
  std::size_t number = 0;
  for (const std::string_view line : split_text(text, '\n')) {
    ++number;
    std::istringstream words{std::string(line)};
    std::string theirs, ours, more;
    if (!(words >> theirs) || theirs.starts_with('#')) continue;
    require(words >> ours && !(words >> more), ErrorKind::argument,
            "--init-map {}:{}: \"{}\"; THEIR.NAME OUR.NAME is required", printable(file), number,
            printable(line));
    require(map.emplace(ours, theirs).second, ErrorKind::argument,
            "--init-map {}:{}: {} has two names; leave one out", printable(file), number,
            printable(ours));
  }
  return map;
}

namespace {

constexpr std::size_t most_named = 8;

template <class T>
double number_of(T value) {
  return static_cast<double>(value);
}
double number_of(BFloat16 value) { return static_cast<double>(to_float(value)); }
double number_of(Float16 value) { return static_cast<double>(to_float(value)); }

template <class T>
T element_of(double number) {
  const auto single = static_cast<float>(number);
  if constexpr (std::is_same_v<T, BFloat16>)
    return to_bfloat16(single);
  else if constexpr (std::is_same_v<T, Float16>)
    return to_float16(single);
  else
    return static_cast<T>(number);
}

/// Of a floating-point type.
template <class Use>
void with_elements(const TensorView& view, const Use& use) {
  switch (view.dtype) {
    case DType::f64:
      return use(static_cast<double*>(view.data));
    case DType::bf16:
      return use(static_cast<BFloat16*>(view.data));
    case DType::f16:
      return use(static_cast<Float16*>(view.data));
    default:
      return use(static_cast<float*>(view.data));
  }
}

void copy(const TensorView& from, const TensorView& to) {
  if (from.dtype == to.dtype) {
    if (to.size_bytes() > 0) std::memcpy(to.data, from.data, to.size_bytes());
    return;
  }
  with_elements(from, [&](const auto* source) {
    with_elements(to, [&](auto* target) {
      using T = std::remove_pointer_t<decltype(target)>;
      for (std::size_t i = 0; i < to.element_count(); ++i)
        target[i] = element_of<T>(number_of(source[i]));
    });
  });
}

bool fits(const TensorView& from, const TensorView& to) {
  return from.shape == to.shape &&
         (from.dtype == to.dtype || (is_floating(from.dtype) && is_floating(to.dtype)));
}

std::string listed(const std::vector<std::string>& names) {
  const auto end = names.begin() + static_cast<std::ptrdiff_t>(std::min(names.size(), most_named));
  const std::string text = printable(fmt::format("{}", fmt::join(names.begin(), end, ", ")));
  if (names.size() <= most_named) return text;
  return fmt::format("{} and {} more", text, names.size() - most_named);
}

/// The tensors of a file, by their names.
class Sources {
 public:
  Sources(const std::vector<TensorView>& from, const NameMap& map) : map_(map) {
    for (const TensorView& view : from) by_name_.emplace(view.name, &view);
  }

  /// Looks for what all names begin with: what most of ours have in front, if none is equal.
  void find_prefix(const std::vector<TensorView>& to) {
    std::map<std::string, int> counts;
    for (const auto& [name, ignored] : by_name_) {
      for (const TensorView& view : to) {
        if (name == view.name) return;
        if (name.ends_with("." + view.name))
          ++counts[name.substr(0, name.size() - view.name.size())];
      }
    }
    const auto best =
        std::ranges::max_element(counts, {}, [](const auto& each) { return each.second; });
    if (best != counts.end()) prefix_ = best->first;
  }

  const std::string& prefix() const { return prefix_; }

  /// Null: there is none.
  const TensorView* find(const std::string& ours) const {
    const auto mapped = map_.find(ours);
    const auto found = by_name_.find(mapped == map_.end() ? prefix_ + ours : mapped->second);
    return found == by_name_.end() ? nullptr : found->second;
  }

  bool has(const std::string& theirs) const { return by_name_.contains(theirs); }

  std::vector<std::string> others(const std::set<std::string>& used) const {
    std::vector<std::string> names;
    for (const auto& [name, ignored] : by_name_)
      if (!used.contains(name)) names.push_back(name);
    return names;
  }

 private:
  const NameMap& map_;
  std::map<std::string, const TensorView*> by_name_;
  std::string prefix_;
};

void check_map(const NameMap& map, const Sources& sources, const std::vector<TensorView>& to,
               const std::string& source) {
  for (const auto& [ours, theirs] : map) {
    require(std::ranges::find(to, ours, &TensorView::name) != to.end(), ErrorKind::argument,
            "--init-map: the model has no tensor {}; fast-model info names those of a model of its "
            "kind",
            printable(ours));
    require(sources.has(theirs), ErrorKind::argument, "--init-map: {} has no tensor {}",
            printable(source), printable(theirs));
  }
}

}  // namespace

std::string init_weights(const std::vector<TensorView>& from, const std::vector<TensorView>& to,
                         const std::string& source, const NameMap& map) {
  Sources sources(from, map);
  check_map(map, sources, to, source);
  sources.find_prefix(to);
  std::vector<std::string> missing, misfits;
  std::set<std::string> used;
  std::size_t copied = 0;
  for (const TensorView& view : to) {
    const TensorView* found = sources.find(view.name);
    if (found == nullptr) {
      missing.push_back(view.name);
      continue;
    }
    used.insert(found->name);
    if (fits(*found, view)) {
      copy(*found, view);
      ++copied;
    } else {
      misfits.push_back(fmt::format("{} [{}] for [{}]", view.name, fmt::join(found->shape, "x"),
                                    fmt::join(view.shape, "x")));
    }
  }
  const std::vector<std::string> others = sources.others(used);
  require(copied > 0, ErrorKind::argument,
          "--init-weights {}: none of its {} tensors fits the model; it has {}, the model has {}{}",
          printable(source), from.size(), listed(others.empty() ? misfits : others),
          to.front().name,
          misfits.empty() ? " (--init-map FILE tells which is which)" : " of another shape");
  std::string text = fmt::format("initial weights: {} of {} tensors from {}", copied, to.size(),
                                 printable(source));
  if (!sources.prefix().empty())
    text += fmt::format(" (its names begin with {})", printable(sources.prefix()));
  if (!misfits.empty()) text += "; of another shape, begin anew: " + listed(misfits);
  if (!missing.empty()) text += "; not there, begin anew: " + listed(missing);
  if (!others.empty()) text += "; not used: " + listed(others);
  return text;
}

}  // namespace fast_train
