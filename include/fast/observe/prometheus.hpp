// An observer that Prometheus can scrape.
#pragma once

#include <fast/core/observer.hpp>

#include <memory>
#include <string>

namespace fast::observe {

/// Serves http://HOST:port/metrics until it is destroyed, on threads of its own. Every metric has
/// the label `worker`:
///
/// | metric | labels | meaning |
/// |---|---|---|
/// | fast_rounds_total | | rounds made |
/// | fast_phase_seconds_total | phase | time in each phase of rounds |
/// | fast_wait_seconds_total | peer | time waited for single workers |
/// | fast_publications_total | | publications |
/// | fast_reads_total | fresh | publications of neighbors combined |
/// | fast_read_age_rounds | | histogram: how many rounds behind they were |
/// | fast_clipped_reads_total | peer | of these, not kept as a whole by robust averaging |
/// | fast_clipped_share_total | peer | the shares that were left out, added up |
/// | fast_peer_events_total | event, peer | suspected, returned, rejoined, healed |
/// | fast_checkpoints_total | | checkpoints begun |
/// | fast_epoch | | epochs finished |
/// | fast_scalar_NAME | | scalars: fast_scalar_train_loss for "train/loss" |
///
/// Other hosts can scrape it if it listens on another address; 0.0.0.0: all. There is no encryption
/// and no password. Throws Error(resource) when the address or the port cannot be listened on.
std::shared_ptr<Observer> prometheus(int port, int worker,
                                     const std::string& address = "127.0.0.1");

}  // namespace fast::observe
