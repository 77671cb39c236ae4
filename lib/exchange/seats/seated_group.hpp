// A group whose workers are numbered by seats.
#pragma once

#include <memory>
#include <optional>

#include "exchange/group_impl.hpp"
#include "membership/members.hpp"

namespace fast::exchange {

/// Collective calls are those of the workers that began on a seat. Memory and messages are those of
/// all ranks, spares among them, by rank.
class SeatedGroup final : public GroupImpl {
 public:
  /// Collective over `everyone`.
  SeatedGroup(Group everyone, int spares, const Deadline& deadline);

  int rank() const override;
  int size() const override { return members_->map().seats(); }
  std::string name() const override { return everyone_.name(); }
  /// Of the ranks that began on the seats, or hold those where nobody began; a spare's own seat is
  /// on its own host.
  std::vector<int> hosts() const override;
  std::vector<std::string> all_gather(std::string_view bytes, const Deadline& deadline,
                                      std::string_view purpose) override;
  Region allocate(std::size_t bytes_per_worker, const Deadline& deadline) override {
    return everyone_.allocate(bytes_per_worker, deadline);
  }
  bool some_are_gone() const override { return everyone_.some_are_gone(); }
  std::vector<int> died() const override;
  void disable_collectives() override;

  const Group* everyone() const override { return &everyone_; }
  const Group* founders() const override { return founders_ ? &*founders_ : nullptr; }
  std::shared_ptr<membership::Members> members() const override { return members_; }

 private:
  Group everyone_;
  std::optional<Group> founders_;  ///< none on spares
  std::shared_ptr<membership::Members> members_;
};

}  // namespace fast::exchange
