#include "serve/served_model.hpp"

#include <fast/core/error.hpp>
#include <fast/core/message.hpp>

#include "serve/split.hpp"

namespace fast::serve {

ServedModel::ServedModel(std::string name, std::optional<double> new_share)
    : name_(std::move(name)), new_share_(new_share) {}

/// What clients send and get stays the same.
void ServedModel::check_fit(const ModelVersion& version) const {
  const auto& present = new_.version ? new_.version : old_.version;
  if (!present) return;
  require(
      version.sample() == present->sample() && version.classes() == present->classes() &&
          version.loss() == present->loss(),
      ErrorKind::data,
      "{}: it takes samples of the shape {} and has {} outputs for {}; model {} has {}, {} and {}",
      printable(version.source()), nn::describe(version.sample()), version.classes(),
      nn::name(version.loss()), printable(name_), nn::describe(present->sample()),
      present->classes(), nn::name(present->loss()));
}

bool ServedModel::install(std::shared_ptr<const ModelVersion> version, Becomes role) {
  const std::lock_guard lock(mutex_);
  check_fit(*version);
  Held& place = role == Becomes::old_one ? old_ : new_;
  if (place.version && place.version->hash() == version->hash()) return false;
  if (role == Becomes::newest && new_share_ && new_.version) old_ = new_;
  place = {std::move(version), std::chrono::system_clock::now()};
  return true;
}

std::shared_ptr<const ModelVersion> ServedModel::choose() {
  const std::lock_guard lock(mutex_);
  if (!old_.version) return new_.version;
  return is_for_new(requests_++, new_share_.value_or(1)) ? new_.version : old_.version;
}

std::shared_ptr<const ModelVersion> ServedModel::find(std::string_view hash) const {
  const std::lock_guard lock(mutex_);
  for (const Held* held : {&new_, &old_}) {
    if (held->version && held->version->hash() == hash) return held->version;
  }
  return nullptr;
}

std::vector<Standing> ServedModel::standings() const {
  const std::lock_guard lock(mutex_);
  const double new_share = old_.version ? new_share_.value_or(1) : 1;
  std::vector<Standing> all;
  if (new_.version) all.push_back({new_.version, "new", new_share, new_.since});
  if (old_.version) all.push_back({old_.version, "old", 1 - new_share, old_.since});
  return all;
}

}  // namespace fast::serve
