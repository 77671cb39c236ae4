// A word of each rank that all ranks can read at any time, also while others train.
#include <nanobind/nanobind.h>
#include <nanobind/stl/vector.h>

#include <atomic>
#include <cstdint>
#include <fast/core/deadline.hpp>
#include <memory>
#include <vector>

#include "bindings.hpp"
#include "exchange/gossip.hpp"
#include "exchange/ticker.hpp"

namespace fast::python {
namespace {

using Release = nb::call_guard<nb::gil_scoped_release>;
using Word = std::atomic<std::uint64_t>;
static_assert(Word::is_always_lock_free && sizeof(Word) == sizeof(std::uint64_t));

/// Words only grow, so that the larger one of two copies is the newer one. Words of other hosts
/// arrive by gossip: after a tenth of a second or so, and sooner while words differ.
class Board {
 public:
  explicit Board(const Group& group)
      : own_(static_cast<std::size_t>(group.rank())),
        region_(group.allocate(sizeof(Word), Deadline(deadline))),
        news_(group, 1, Deadline(deadline)) {
    if (news_.has_other_hosts())
      ticker_ = std::make_unique<exchange::Ticker>([this](Seconds) { return tick(); });
  }
  Board(const Board&) = delete;
  Board& operator=(const Board&) = delete;

  void set(std::uint64_t value) { raise(own_, value); }

  std::vector<std::uint64_t> words() const {
    std::vector<std::uint64_t> all;
    for (std::size_t rank = 0; rank < region_.parts.size(); ++rank)
      all.push_back(word(rank).load());
    return all;
  }

 private:
  static constexpr Seconds deadline{300};

  Word& word(std::size_t rank) const { return *reinterpret_cast<Word*>(region_.parts[rank]); }

  void raise(std::size_t rank, std::uint64_t value) {
    std::uint64_t before = word(rank).load();
    while (before < value && !word(rank).compare_exchange_weak(before, value)) {
    }
  }

  /// True while ranks are at different places: some may wait for the others.
  bool tick() {
    while (news_.receive()) {
      for (std::size_t rank = 0; rank < region_.parts.size(); ++rank)
        if (!news_.here()[rank]) raise(rank, news_.words()[rank]);
    }
    bool differ = false;
    for (std::size_t rank = 0; rank < region_.parts.size(); ++rank) {
      news_.words()[rank] = word(rank).load();
      differ = differ || news_.words()[rank] != news_.words()[0];
    }
    news_.send();
    return differ;
  }

  std::size_t own_;
  Region region_;
  exchange::Gossip news_;                     ///< the ticker's
  std::unique_ptr<exchange::Ticker> ticker_;  ///< declared last; null on one host
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
