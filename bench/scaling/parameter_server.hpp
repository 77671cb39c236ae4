// A parameter server: rank 0 holds the weights, workers send it their steps and fetch the weights.
// It is the baseline of M. Li et al., Scaling Distributed Machine Learning with the Parameter
// Server, OSDI 2014, with one server.
#pragma once

#include <fast/core/deadline.hpp>
#include <fast/mpi/communicator.hpp>
#include <memory>
#include <span>
#include <thread>
#include <vector>

#include "mpi/request.hpp"
#include "scaling/contender.hpp"

namespace fast::bench {

constexpr Seconds server_patience{300};

/// A thread of rank 0. With `waits_for_all` it answers when all workers' steps of a round have
/// come: w += Σ δ_i / n. Else it answers each at once: w += δ_i / n. It gives up when no
/// message has come or gone for `patience`, however long it has run.
class ParameterServer {
 public:
  ParameterServer(const mpi::Messages& messages, int workers, std::span<const float> weights,
                  bool waits_for_all, Seconds patience);
  ParameterServer(const ParameterServer&) = delete;
  ParameterServer& operator=(const ParameterServer&) = delete;
  /// Waits until all workers have said that they are done, or until the server gives up.
  ~ParameterServer();

 private:
  /// A worker's message: δ, and then whether it is the last one.
  struct Inbox {
    std::vector<float> step;
    mpi::Request request, answer;
    std::vector<float> sent;  ///< what the answer carries
    bool is_here = false, is_done = false;
  };
  void serve();
  void expect(int worker);
  bool turn();
  void take(Inbox& inbox);
  void answer(int worker);

  const mpi::Messages& messages_;
  std::vector<float> weights_;
  bool waits_for_all_;
  Seconds patience_;
  std::vector<Inbox> inboxes_;  ///< by worker
  std::thread thread_;
};

/// A worker of such a server.
class ServedWorker final : public Contender {
 public:
  /// Collective: rank 0 has the server, too. `patience` limits each wait. A round throws
  /// Error(deadline) if the server has not answered by then.
  ServedWorker(const mpi::Communicator& world, std::span<float> weights, bool waits_for_all,
               Seconds patience = server_patience);
  void round(const std::function<void()>& step) override;
  void finish() override;
  Anatomy anatomy() const override { return anatomy_; }

 private:
  void wait(mpi::Request& request);

  Seconds patience_;
  mpi::Messages messages_;
  std::span<float> weights_;
  std::vector<float> before_, step_;
  std::unique_ptr<ParameterServer> server_;  ///< of rank 0
  Anatomy anatomy_;
};

}  // namespace fast::bench
