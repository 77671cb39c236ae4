#include "scaling/parameter_server.hpp"

#include <algorithm>
#include <fast/core/error.hpp>

#include "core/stopwatch.hpp"

namespace fast::bench {
namespace {

constexpr int to_server = 1, to_worker = 2;
constexpr auto idle = std::chrono::microseconds(50);

std::size_t bytes_of(const std::vector<float>& values) { return values.size() * sizeof(float); }

}  // namespace

ParameterServer::ParameterServer(const mpi::Messages& messages, int workers,
                                 std::span<const float> weights, bool waits_for_all,
                                 Seconds patience)
    : messages_(messages),
      weights_(weights.begin(), weights.end()),
      waits_for_all_(waits_for_all),
      patience_(patience),
      inboxes_(static_cast<std::size_t>(workers)),
      thread_([this] { serve(); }) {}

ParameterServer::~ParameterServer() { thread_.join(); }

void ParameterServer::serve() {
  for (int worker = 0; worker < static_cast<int>(inboxes_.size()); ++worker) {
    inboxes_[static_cast<std::size_t>(worker)].step.resize(weights_.size() + 1);
    expect(worker);
  }
  Deadline deadline(patience_);
  const auto is_over = [](const Inbox& inbox) {
    return inbox.is_done && !inbox.answer.is_under_way();
  };
  while (!std::all_of(inboxes_.begin(), inboxes_.end(), is_over) && !deadline.expired()) {
    if (turn()) {
      deadline = Deadline(patience_);
    } else {
      std::this_thread::sleep_for(idle);
    }
  }
}

void ParameterServer::expect(int worker) {
  Inbox& inbox = inboxes_[static_cast<std::size_t>(worker)];
  inbox.is_here = false;
  inbox.request = messages_.receive(worker, to_server, inbox.step.data(), bytes_of(inbox.step));
}

/// True when something has come or gone.
bool ParameterServer::turn() {
  bool moved = false;
  for (std::size_t worker = 0; worker < inboxes_.size(); ++worker) {
    Inbox& inbox = inboxes_[worker];
    if (inbox.answer.is_under_way()) moved |= inbox.answer.test();
    if (inbox.is_done || inbox.is_here || inbox.answer.is_under_way()) continue;
    if (!inbox.request.test()) continue;
    moved = inbox.is_here = true;
    inbox.is_done = inbox.step.back() != 0;
    if (!inbox.is_done) take(inbox);
    if (!inbox.is_done && !waits_for_all_) answer(static_cast<int>(worker));
  }
  const auto is_ready = [](const Inbox& inbox) { return inbox.is_here || inbox.is_done; };
  if (!waits_for_all_ || !std::all_of(inboxes_.begin(), inboxes_.end(), is_ready)) return moved;
  for (std::size_t worker = 0; worker < inboxes_.size(); ++worker) {
    if (inboxes_[worker].is_here && !inboxes_[worker].is_done) answer(static_cast<int>(worker));
  }
  return true;
}

void ParameterServer::take(Inbox& inbox) {
  const float share = 1 / static_cast<float>(inboxes_.size());
  for (std::size_t e = 0; e < weights_.size(); ++e) weights_[e] += share * inbox.step[e];
}

void ParameterServer::answer(int worker) {
  Inbox& inbox = inboxes_[static_cast<std::size_t>(worker)];
  inbox.sent = weights_;
  inbox.answer = messages_.send(worker, to_worker, inbox.sent.data(), bytes_of(inbox.sent));
  expect(worker);
}

ServedWorker::ServedWorker(const mpi::Communicator& world, std::span<float> weights,
                           bool waits_for_all, Seconds patience)
    : patience_(patience),
      messages_(world, Deadline(patience)),
      weights_(weights),
      step_(weights.size() + 1) {
  const std::string first =
      world.rank() == 0
          ? std::string(reinterpret_cast<const char*>(weights.data()), weights.size_bytes())
          : std::string();
  const auto all = world.all_gather(first, Deadline(patience), "the server's weights");
  std::copy_n(all.front().data(), weights.size_bytes(), reinterpret_cast<char*>(weights.data()));
  if (world.rank() == 0)
    server_ = std::make_unique<ParameterServer>(messages_, world.size(), weights, waits_for_all,
                                                patience);
}

void ServedWorker::round(const std::function<void()>& step) {
  before_.assign(weights_.begin(), weights_.end());
  {
    const Stopwatch watch(anatomy_.step_s);
    step();
  }
  mpi::Request answer;
  {
    const Stopwatch watch(anatomy_.publish_s);
    for (std::size_t e = 0; e < before_.size(); ++e) step_[e] = weights_[e] - before_[e];
    step_.back() = 0;
    answer = messages_.receive(0, to_worker, weights_.data(), weights_.size_bytes());
  }
  const Stopwatch watch(anatomy_.wait_s);
  mpi::Request request = messages_.send(0, to_server, step_.data(), bytes_of(step_));
  wait(request);
  wait(answer);
}

void ServedWorker::finish() {
  step_.back() = 1;
  mpi::Request request = messages_.send(0, to_server, step_.data(), bytes_of(step_));
  wait(request);
  server_.reset();
}

void ServedWorker::wait(mpi::Request& request) {
  require(request.wait(Deadline(patience_)), ErrorKind::deadline,
          "the parameter server has not answered in {:.0f} s", patience_.count());
}

}  // namespace fast::bench
