// A word of each rank that all ranks can read at any time, also while others train.
#include <nanobind/nanobind.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstdint>
#include <fast/core/deadline.hpp>
#include <memory>
#include <vector>

#include "bindings.hpp"
#include "exchange/group_impl.hpp"
#include "membership/gossip.hpp"
#include "membership/periodic_thread.hpp"

namespace fast::python {
namespace {

using Release = nb::call_guard<nb::gil_scoped_release>;

/// Words of other hosts arrive by gossip: after a tenth of a second or so, and sooner while words
/// differ.
class Board {
 public:
  explicit Board(const Group& group)
      : region_(group.allocate(format.size_bytes(), Deadline(deadline))),
        records_(region_.parts, group.rank(), format),
        news_(records_, group.hosts(),
              GroupImpl::of(group).open_datagrams(region_.parts.size() * format.size_bytes(),
                                                  Deadline(deadline))) {
    if (news_.has_other_hosts())
      thread_ = std::make_unique<membership::PeriodicThread>([this](Seconds) { return tick(); });
  }
  Board(const Board&) = delete;
  Board& operator=(const Board&) = delete;

  void set(std::uint64_t value) { records_.raise(number, value); }

  std::vector<std::uint64_t> words() const {
    std::vector<std::uint64_t> all;
    for (int rank = 0; rank < records_.size(); ++rank) all.push_back(records_.read(rank, number));
    return all;
  }

 private:
  static constexpr Seconds deadline{300};
  static constexpr std::size_t number = 0;
  static constexpr membership::RecordBoard::Format format{.words = 2, .common = 1};

  /// True while ranks are at different places: some may wait for the others.
  bool tick() {
    while (news_.receive()) news_.take_over(records_);
    news_.note(records_);
    news_.send();
    const std::vector<std::uint64_t> all = words();
    return std::count(all.begin(), all.end(), all.front()) < records_.size();
  }

  Region region_;
  membership::RecordBoard records_;
  membership::Gossip news_;                             ///< the ticker's
  std::unique_ptr<membership::PeriodicThread> thread_;  ///< declared last; null on one host
};

}  // namespace

void bind_board(nb::module_& module) {
  nb::class_<Board>(module, "Board",
                    "A number of each worker, which all workers can read at any time.")
      .def(nb::init<const Group&>(), nb::arg("group"), Release())
      .def("set", &Board::set, nb::arg("value"), "The number of this worker. It only grows.")
      .def("words", &Board::words, "The newest known numbers of all workers, by rank; 0 at first.");
}

}  // namespace fast::python
