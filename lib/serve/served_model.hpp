// A model under its name: the version that answers, or two that share the requests.
#pragma once

#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "serve/model_version.hpp"

namespace fast::serve {

/// What a version becomes. newest: the new one, and with a share, the new one before it is the old
/// one. For models whose two versions come from two places: the new one or the old one, and the
/// other stays.
enum class Becomes { newest, new_one, old_one };

/// One version with its part in a model.
struct Standing {
  std::shared_ptr<const ModelVersion> version;
  std::string role;  ///< "new" or "old"
  double share = 1;
  std::chrono::system_clock::time_point since;
};

/// Several threads may use it.
class ServedModel {
 public:
  /// Without a share, the newest version alone answers, and no other is kept.
  ServedModel(std::string name, std::optional<double> new_share);

  const std::string& name() const { return name_; }

  /// Of the same hash as the one in its place: nothing happens, and false is returned. Throws
  /// Error(data) when samples or classes are not those of the versions that are there.
  bool install(std::shared_ptr<const ModelVersion> version, Becomes role = Becomes::newest);

  /// The version for the next request, by the shares.
  std::shared_ptr<const ModelVersion> choose();
  /// Null: there is none of that hash.
  std::shared_ptr<const ModelVersion> find(std::string_view hash) const;
  /// The new version first. Shares add up to 1.
  std::vector<Standing> standings() const;

 private:
  struct Held {
    std::shared_ptr<const ModelVersion> version;
    std::chrono::system_clock::time_point since;
  };
  void check_fit(const ModelVersion& version) const;

  const std::string name_;
  const std::optional<double> new_share_;
  mutable std::mutex mutex_;
  Held new_, old_;
  std::uint64_t requests_ = 0;
};

}  // namespace fast::serve
