// Which of this worker's publications to send to one reader next.
#pragma once

#include <optional>

#include "exchange/remote/replicator.hpp"

namespace fast::exchange {

/// A publication in this worker's own slots.
struct OwnPublication {
  std::uint64_t sequence = 0;
  std::int64_t first = 0, until = 0;  ///< rounds
};

class SendPlan {
 public:
  SendPlan(const RemoteEdges& edges, int reader) : edges_(edges), reader_(reader) {}

  /// At staleness 0, the oldest publication that the reader still needs; else the newest one that
  /// has not been sent.
  std::optional<OwnPublication> next() const;
  /// The last round that the publication sent last is for, if the reader has to know it.
  std::optional<std::int64_t> extension() const;

  void sent(const OwnPublication& publication) { sent_ = publication; }
  void extended(std::int64_t until) { sent_.until = until; }

 private:
  std::uint64_t newest() const;
  bool reader_has_finished() const;
  bool is_due(std::int64_t from, std::int64_t to) const;
  bool reader_is_behind(std::int64_t round) const;
  OwnPublication load(std::uint64_t sequence) const;
  std::optional<OwnPublication> if_intact(const OwnPublication& publication) const;

  const RemoteEdges& edges_;
  int reader_;
  OwnPublication sent_;  ///< sequence 0: none
};

}  // namespace fast::exchange
