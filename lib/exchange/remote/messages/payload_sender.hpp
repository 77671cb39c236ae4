// Sends one long payload to one reader, in parts.
#pragma once

#include <memory>
#include <vector>

#include "exchange/remote/messages/send_buffers.hpp"
#include "exchange/remote/throttle.hpp"
#include "mpi/messages.hpp"

namespace fast::exchange {

/// With MPICH, parts are sent without waiting for the earlier ones: an answer would wait behind the
/// data in the other direction. With Open MPI, two are under way.
class PayloadSender {
 public:
  PayloadSender(const mpi::Messages& messages, int reader, Throttle& throttle)
      : messages_(messages), reader_(reader), throttle_(throttle) {}

  void begin(std::shared_ptr<SendBuffer> buffer);
  /// Starts a few further sends, as far as the throttle allows. True when it has started any.
  bool start_parts();
  /// True when the sends of all parts have been started.
  bool all_started() const { return started_bytes_ == buffer_->size(); }
  /// Removes the sends that are done. True when there were any.
  bool remove_done();
  /// True when no send is under way any more; then releases the buffer.
  bool release();

  const SendBuffer& buffer() const { return *buffer_; }

 private:
  const mpi::Messages& messages_;
  int reader_;
  Throttle& throttle_;
  std::shared_ptr<SendBuffer> buffer_;
  std::vector<mpi::Request> under_way_;
  std::size_t started_bytes_ = 0;
};

}  // namespace fast::exchange
