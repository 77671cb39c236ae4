#include "exchange/links/mpi_trials.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <fast/core/deadline.hpp>
#include <fast/core/error.hpp>
#include <map>
#include <set>

#include "core/contains.hpp"
#include "core/leak_until_exit.hpp"
#include "core/waits.hpp"
#include "exchange/links/flow_run.hpp"

namespace fast::exchange {
namespace {

constexpr int order_tag = 1, contents_tag = 2, report_tag = 3;
constexpr Seconds report_grace{2};  ///< after the deadline of those who report
constexpr Seconds end_limit{2};     ///< for the last orders to leave
constexpr Seconds look_again{0.2};  ///< for ranks that have ended
constexpr auto between_looks = std::chrono::microseconds(100);

enum OrderKind : std::int64_t { trial_order, finish_order, give_up_order };

/// Before an order's contents.
struct OrderHead {
  std::int64_t kind = trial_order;
  std::int64_t count = 0;  ///< of messages of a flow
  std::int64_t size_bytes = 0;
};

/// A report's first number; else the rank that has not answered.
constexpr double all_answered = -1;

std::vector<Flow> flows_in(const std::string& bytes) {
  std::vector<Flow> flows(bytes.size() / sizeof(Flow));
  if (!flows.empty()) std::memcpy(flows.data(), bytes.data(), flows.size() * sizeof(Flow));
  return flows;
}

std::vector<double> report_of(FlowRun& run, const Deadline& deadline) {
  std::vector<double> report = {all_answered};
  if (!run.run(deadline)) report.front() = run.waits_for();
  report.insert(report.end(), run.seconds().begin(), run.seconds().end());
  return report;
}

/// Receives what a rank may still be sent after the deadline. Of a rank 0 that has ended, messages
/// may be on their way for a moment.
template <class Buffer>
bool received(const mpi::Messages& messages, int tag, const std::shared_ptr<Buffer>& buffer,
              std::size_t size_bytes, const Deadline& deadline,
              const std::function<std::vector<int>()>& ended) {
  mpi::Request request = messages.receive(0, tag, buffer->data(), size_bytes);
  try {
    for (bool is_over = false; !is_over;) {
      is_over = deadline.expired() || contains(ended(), 0);
      if (request.wait(Deadline(look_again))) return true;
    }
  } catch (...) {
    leak_until_exit(buffer);
    throw;
  }
  leak_until_exit(buffer);
  return false;
}

/// One of the ranks that rank 0 has left reports that.
ErrorKind kind_for(int rank, std::vector<int> ended) {
  ended.push_back(0);
  return living_below(rank, ended) == 0 ? ErrorKind::deadline : ErrorKind::peer_failed;
}

}  // namespace

struct MpiTrials::Order {
  std::array<OrderHead, 1> head{};
  std::string contents;
  std::vector<mpi::Request> requests;

  bool has_left() {
    return std::ranges::all_of(requests, [](auto& each) { return each.test(); });
  }
};

struct MpiTrials::Report {
  int rank = 0;
  std::shared_ptr<std::vector<double>> numbers;
  mpi::Request request;
  bool is_there = false;
};

MpiTrials::MpiTrials(const mpi::Messages& messages, const std::vector<std::string>& name_of_rank,
                     Seconds answer_within)
    : messages_(messages), names_(name_of_rank), answer_within_(answer_within) {}

MpiTrials::~MpiTrials() {
  for (auto& order : orders_) leak_until_exit(order);
}

void MpiTrials::send_order(int rank, std::shared_ptr<Order> order) {
  order->head.front().size_bytes = static_cast<std::int64_t>(order->contents.size());
  order->requests.push_back(messages_.send(rank, order_tag, order->head.data(), sizeof(OrderHead)));
  order->requests.push_back(
      messages_.send(rank, contents_tag, order->contents.data(), order->contents.size()));
  orders_.push_back(std::move(order));
}

TrialTimes MpiTrials::run(const std::vector<Flow>& flows, int count) {
  const auto began = Clock::now();
  std::vector<Report> reports = order_all(flows, count);
  FlowRun own(messages_, 0, flows, count);
  std::vector<double> own_report = report_of(own, Deadline(answer_within_));
  collect(reports, Deadline(answer_within_ + report_grace));
  const bool complete = std::ranges::all_of(reports, [](const Report& each) {
    return each.is_there && each.numbers->front() == all_answered;
  });
  if (!complete || own_report.front() != all_answered) {
    fail_for(reports, static_cast<int>(own_report.front()));
  }
  std::map<int, std::vector<double>::const_iterator> next;  // number of a rank's report
  for (const Report& each : reports) next[each.rank] = each.numbers->begin() + 1;
  next[0] = own_report.begin() + 1;
  TrialTimes times;
  for (const Flow& flow : flows) {
    auto& from = next.at(flow.from);
    times.seconds.emplace_back(from, from + count);
    from += count;
  }
  std::erase_if(orders_, [](const auto& order) { return order->has_left(); });
  times.total_s = Seconds(Clock::now() - began).count();
  return times;
}

/// Tells each rank its flows, and awaits its report.
std::vector<MpiTrials::Report> MpiTrials::order_all(const std::vector<Flow>& flows, int count) {
  std::map<int, std::vector<Flow>> parts;
  std::map<int, std::size_t> messages_from;
  for (const Flow& flow : flows) {
    parts[flow.from].push_back(flow);
    parts[flow.to].push_back(flow);
    ++messages_from[flow.from];
  }
  parts.erase(0);
  std::vector<Report> reports;
  for (const auto& [rank, part] : parts) {
    const std::size_t numbers = 1 + messages_from[rank] * static_cast<std::size_t>(count);
    auto report = std::make_shared<std::vector<double>>(numbers);
    mpi::Request request =
        messages_.receive(rank, report_tag, report->data(), numbers * sizeof(double));
    reports.push_back({rank, std::move(report), std::move(request), false});
    auto order = std::make_shared<Order>();
    order->head.front() = {trial_order, count, 0};
    order->contents.assign(reinterpret_cast<const char*>(part.data()), part.size() * sizeof(Flow));
    send_order(rank, std::move(order));
  }
  return reports;
}

void MpiTrials::collect(std::vector<Report>& reports, const Deadline& deadline) {
  const auto all_are_there = [&] {
    bool all = true;
    for (Report& report : reports) {
      if (!report.is_there) report.is_there = report.request.test();
      all = all && report.is_there;
    }
    return all;
  };
  // A wait for each would give each its own patience.
  if (look_until(all_are_there, deadline, between_looks)) return;
  for (Report& report : reports) {
    if (!report.is_there) leak_until_exit(report.numbers);
  }
}

/// Those who do not report are named; if all do, those who were not heard by others.
void MpiTrials::fail_for(const std::vector<Report>& reports, int own_missing) const {
  std::vector<int> silent, unheard;
  if (own_missing >= 0) unheard.push_back(own_missing);
  for (const Report& each : reports) {
    if (!each.is_there) silent.push_back(each.rank);
    if (each.is_there && each.numbers->front() != all_answered) {
      unheard.push_back(static_cast<int>(each.numbers->front()));
    }
  }
  fail(ErrorKind::deadline,
       "measuring links: {} not answered for {:.0f} s; look for a process that hangs or a link "
       "that is down, or start without that host",
       hosts_of(silent.empty() ? unheard : silent), answer_within_.count());
}

/// "host b (rank 2) has".
std::string MpiTrials::hosts_of(const std::vector<int>& ranks) const {
  std::map<std::string, std::set<int>> by_host;
  for (const int rank : ranks) by_host[names_[static_cast<std::size_t>(rank)]].insert(rank);
  std::vector<std::string> texts;
  for (const auto& [host, its] : by_host) {
    texts.push_back(fmt::format("host {} ({} {})", host, its.size() == 1 ? "rank" : "ranks",
                                fmt::join(its, ", ")));
  }
  return fmt::format("{} {}", fmt::join(texts, ", "), texts.size() == 1 ? "has" : "have");
}

void MpiTrials::end(std::int64_t kind, std::string_view bytes) {
  for (std::size_t rank = 1; rank < names_.size(); ++rank) {
    auto order = std::make_shared<Order>();
    order->head.front() = {kind, 0, 0};
    order->contents = std::string(bytes);
    send_order(static_cast<int>(rank), std::move(order));
  }
  const auto all_have_left = [&] {
    std::erase_if(orders_, [](const auto& order) { return order->has_left(); });
    return orders_.empty();
  };
  look_until(all_have_left, Deadline(end_limit), between_looks);
}

void MpiTrials::finish(std::string_view bytes) { end(finish_order, bytes); }
void MpiTrials::give_up(std::string_view error) { end(give_up_order, error); }

std::string serve_trials(const mpi::Messages& messages, int rank, Seconds answer_within,
                         Seconds patience, const std::function<std::vector<int>()>& ended) {
  const auto known = [&] { return ended ? ended() : std::vector<int>{}; };
  for (;;) {
    const Deadline deadline(patience);
    const auto head = std::make_shared<std::array<OrderHead, 1>>();
    const auto contents = std::make_shared<std::string>();
    bool is_there = received(messages, order_tag, head, sizeof(OrderHead), deadline, known);
    if (is_there) {
      contents->resize(static_cast<std::size_t>(head->front().size_bytes));
      is_there = received(messages, contents_tag, contents, contents->size(), deadline, known);
    }
    require(is_there, kind_for(rank, known()),
            "measuring links: rank {} has heard nothing from rank 0 for {:.1f} s; look for a "
            "process that has died or hangs, or a link that is down",
            rank, deadline.elapsed_s());
    if (head->front().kind == finish_order) return *contents;
    if (head->front().kind == give_up_order) throw Error(ErrorKind::deadline, *contents, true);
    FlowRun run(messages, rank, flows_in(*contents), static_cast<int>(head->front().count));
    const auto report =
        std::make_shared<std::vector<double>>(report_of(run, Deadline(answer_within)));
    mpi::Request sent =
        messages.send(0, report_tag, report->data(), report->size() * sizeof(double));
    leak_until_exit(report);  // MPI may read it after the deadline
    static_cast<void>(sent.wait(Deadline(answer_within)));
  }
}

}  // namespace fast::exchange
