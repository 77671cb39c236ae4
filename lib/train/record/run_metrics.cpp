#include "train/record/run_metrics.hpp"

#include <algorithm>
#include <fast/core/error.hpp>
#include <iterator>
#include <limits>
#include <map>
#include <utility>

#include "core/site_scalar.hpp"
#include "mpi/launcher.hpp"

namespace fast::train {

double RoundFigures::age_mean() const {
  if (reads == 0) return std::numeric_limits<double>::quiet_NaN();
  return static_cast<double>(age_sum) / static_cast<double>(reads);
}

template <class Add>
void RoundTally::add_to_both(const Add& add) {
  for (RoundFigures& window : windows_) add(window);
}

/// The waits for single workers within a phase end before it does. Those of another thread than
/// the worker's run beside its phases.
void RoundTally::add(const PhaseEvent& event) {
  const double took_s = Seconds(event.ended - event.began).count();
  const std::lock_guard lock(mutex_);
  if (event.peer >= 0) {
    if (std::this_thread::get_id() == rounds_) peers_wait_s_ += took_s;
    const auto peer = static_cast<std::size_t>(event.peer);
    return add_to_both([&](RoundFigures& sum) {
      sum.waits_s.resize(std::max(sum.waits_s.size(), peer + 1));
      sum.waits_s[peer] += took_s;
    });
  }
  rounds_ = std::this_thread::get_id();
  const double waited_s = std::min(std::exchange(peers_wait_s_, 0), took_s);
  const double worked_s = took_s - waited_s;
  add_to_both([&](RoundFigures& sum) {
    switch (event.phase) {
      case Phase::step:
        sum.step_s += took_s;
        return;
      case Phase::wait:
        sum.wait_s += took_s;
        return;
      case Phase::publish:
        sum.publish_s += worked_s;
        break;
      case Phase::mix:
        sum.mix_s += worked_s;
        break;
      case Phase::commit:
        break;
    }
    sum.wait_s += waited_s;
  });
}

void RoundTally::add(const MessageEvent& event) {
  if (event.kind != MessageEvent::Kind::read) return;
  const std::lock_guard lock(mutex_);
  add_to_both([&](RoundFigures& sum) {
    ++sum.reads;
    sum.age_sum += event.age;
    sum.age_max = std::max(sum.age_max, event.age);
    const auto from = static_cast<std::size_t>(event.from);
    if (from >= sum.kept.size()) sum.kept.resize(from + 1);
    RoundFigures::Kept& kept = sum.kept[from];
    ++kept.reads;
    kept.share += event.kept;
  });
}

void RoundTally::add_wait_within_step(double seconds) {
  const std::lock_guard lock(mutex_);
  add_to_both([&](RoundFigures& sum) {
    sum.step_s -= seconds;
    sum.wait_s += seconds;
  });
}

RoundFigures RoundTally::take(Window window) {
  const std::lock_guard lock(mutex_);
  return std::exchange(windows_[static_cast<std::size_t>(window)], {});
}

namespace {

constexpr auto metrics_interval = std::chrono::seconds(2);

void append(std::vector<Metric>& line, std::vector<Metric> more) {
  line.insert(line.end(), std::make_move_iterator(more.begin()),
              std::make_move_iterator(more.end()));
}

Figures phases_of(const RoundFigures& rounds, double elapsed_s) {
  const double known_s = rounds.step_s + rounds.publish_s + rounds.wait_s + rounds.mix_s;
  return {{"step", rounds.step_s},
          {"publish", rounds.publish_s},
          {"wait", rounds.wait_s},
          {"mix", rounds.mix_s},
          {"rest", std::max(0.0, elapsed_s - known_s)}};
}

Figures waits_of(const RoundFigures& rounds) {
  Figures waits;
  for (std::size_t peer = 0; peer < rounds.waits_s.size(); ++peer) {
    if (rounds.waits_s[peer] > 0) waits.emplace_back(std::to_string(peer), rounds.waits_s[peer]);
  }
  return waits;
}

/// Of the workers of whom something was left out.
Figures kept_of(const RoundFigures& rounds) {
  Figures shares;
  for (std::size_t worker = 0; worker < rounds.kept.size(); ++worker) {
    const RoundFigures::Kept& kept = rounds.kept[worker];
    const auto reads = static_cast<double>(kept.reads);
    if (kept.share < reads) shares.emplace_back(std::to_string(worker), kept.share / reads);
  }
  return shares;
}

}  // namespace

/// A part of training that has ended.
struct RunMetrics::SpanFigures {
  double elapsed_s = 0, samples = 0;
  RoundFigures rounds;

  double samples_per_second() const { return samples / elapsed_s; }

  /// The ages are those of reads.
  std::vector<Metric> line() const {
    std::vector<Metric> line = {{"samples", static_cast<std::int64_t>(samples)},
                                {"samples_per_second", samples_per_second()},
                                {"phases", phases_of(rounds, elapsed_s)},
                                {"waits", waits_of(rounds)}};
    if (rounds.reads > 0) {
      append(line, {{"age_mean", rounds.age_mean()}, {"age_max", rounds.age_max}});
    }
    if (const Figures kept = kept_of(rounds); !kept.empty()) append(line, {{"kept", kept}});
    return line;
  }

  /// For fastrun --watch.
  std::string status() const {
    std::string text = fmt::format("samples_per_second {:.1f} wait {:.3f}", samples_per_second(),
                                   rounds.wait_s / elapsed_s);
    if (rounds.reads > 0) text += fmt::format(" age {:.2f}", rounds.age_mean());
    return text;
  }
};

RunMetrics::RunMetrics(LogSink log, std::function<bool()> may_write)
    : log_(std::move(log)), may_write_(std::move(may_write)) {}

void RunMetrics::open(const std::filesystem::path& directory, int rank) {
  const std::lock_guard lock(writing_);
  writer_.emplace(directory, rank);
  rank_ = rank;
}

void RunMetrics::start(std::vector<Metric> facts, std::int64_t step) {
  now_.step = step;
  begin(Clock::now());
  add("start", std::move(facts));
  begin_intervals();
}

/// Other threads may write lines already.
void RunMetrics::begin(Clock::time_point at) {
  const std::lock_guard lock(writing_);
  if (writer_) writer_->begin(at);
}

void RunMetrics::join(std::int64_t step) {
  now_.step = step;
  begin(made_);
  event("seat taken", step, rank_);
  begin_intervals();
}

void RunMetrics::begin_intervals() {
  if (notifies_launcher_) mpi::notify_launcher_status("");
  interval_ = {};
  tally_.take(RoundTally::Window::interval);
}

void RunMetrics::begin_epoch() {
  epoch_ = {.samples = now_.samples};
  tally_.take(RoundTally::Window::epoch);
}

bool RunMetrics::after_round(const RunFigures& figures) {
  const double reduced_s = figures.reduce_s - now_.reduce_s;
  if (reduced_s > 0) tally_.add_wait_within_step(reduced_s);
  now_ = figures;
  const bool is_due = Clock::now() - interval_.began >= metrics_interval;
  if (is_due) add_interval();
  return is_due;
}

void RunMetrics::add_interval() {
  const SpanFigures figures = figures_of(RoundTally::Window::interval, interval_);
  std::vector<Metric> line = {{"step", now_.step}};
  append(line, figures.line());
  append_site(line);
  add("interval", std::move(line));
  if (notifies_launcher_) {
    mpi::notify_launcher_status(
        fmt::format("step {} epoch {} {}", now_.step, now_.epoch, figures.status()));
    notify_sites();
  }
  interval_ = {.samples = now_.samples};
}

/// Of what the rank that has the connection knows of other sites: figures "of/NAME/WHAT".
void RunMetrics::notify_sites() const {
  std::map<std::string, std::string> lines;
  for (const auto& [name, value] : site_) {
    const std::string scalar = std::string(site_scalars) + name;
    if (const auto other = other_site_scalar(scalar))
      lines[std::string(other->site)] += fmt::format(" {} {:.3f}", other->what, value);
  }
  for (const auto& [site, figures] : lines)
    mpi::notify_launcher_status(fmt::format("site {}{}", site, figures));
}

void RunMetrics::append_site(std::vector<Metric>& line) const {
  if (!site_.empty()) line.emplace_back("site", site_);
}

void RunMetrics::end_rounds() {
  epoch_figures_ = figures_of(RoundTally::Window::epoch, epoch_).line();
}

void RunMetrics::end_epoch(std::vector<Metric> results) {
  append(results, std::exchange(epoch_figures_, {}));
  append_site(results);
  add("epoch", std::move(results));
}

void RunMetrics::end(std::int64_t step, const char* state, std::vector<Metric> results) {
  std::vector<Metric> line = {{"state", state}, {"step", step}};
  append(line, std::move(results));
  add("end", std::move(line));
  if (notifies_launcher_) mpi::notify_launcher_status(fmt::format("step {}", step));
}

RunMetrics::SpanFigures RunMetrics::figures_of(RoundTally::Window window, const Span& span) {
  return {Seconds(Clock::now() - span.began).count(), now_.samples - span.samples,
          tally_.take(window)};
}

void RunMetrics::add(std::string_view kind, std::vector<Metric> line) {
  std::string warning;
  {
    const std::lock_guard lock(writing_);
    if (!writer_ || (may_write_ && !may_write_())) return;
    try {
      writer_->write(kind, line);
    } catch (const Error& error) {
      if (std::exchange(warned_, true)) return;
      warning =
          fmt::format("worker {}: {}; training goes on without such lines", rank_, error.what());
    }
  }
  // Without the lock: a log of Python waits for the interpreter, which another thread may hold
  // while it adds a line.
  if (!warning.empty() && log_) log_(LogLevel::warning, warning);
}

void RunMetrics::event(std::string_view name, std::int64_t step, int worker, std::string text) {
  std::vector<Metric> line = {{"event", std::string(name)}};
  if (worker >= 0) line.emplace_back("worker", worker);
  line.emplace_back("step", step);
  if (!text.empty()) line.emplace_back("text", std::move(text));
  add("event", std::move(line));
}

void RunMetrics::fail(std::string text) {
  event("failed", now_.step, rank_, std::move(text));
  add("end", {{"state", "failed"}, {"step", now_.step}});
}

void RunMetrics::on_peer(const PeerEvent& event) noexcept {
  this->event(name(event.kind), event.round, event.peer);
}

void RunMetrics::on_milestone(const MilestoneEvent& event) noexcept {
  if (event.kind == MilestoneEvent::Kind::saved) this->event("checkpoint", event.round);
}

void RunMetrics::on_site(const SiteEvent& event) noexcept {
  if (event.kind != SiteEvent::Kind::forgotten) return;
  std::erase_if(site_, [&](const auto& figure) {
    const std::string scalar = std::string(site_scalars) + figure.first;
    const auto other = other_site_scalar(scalar);
    return other && other->site == event.site;
  });
}

void RunMetrics::on_scalar(const ScalarEvent& event) noexcept {
  if (!event.name.starts_with(site_scalars)) return;
  const std::string name(event.name.substr(site_scalars.size()));
  const auto found = std::ranges::find(site_, name, &Figures::value_type::first);
  if (found == site_.end())
    site_.emplace_back(name, event.value);
  else
    found->second = event.value;
}

}  // namespace fast::train
