#include "fast_serve/batcher.hpp"

#include <algorithm>

#include "fast_serve/request_parser.hpp"

namespace fast::serve {
namespace {

Refusal abandoned() { return {503, "the server ends, and computes no more"}; }

}  // namespace

Batcher::Batcher(const BatchOptions& options, OnPass on_pass)
    : options_(options), on_pass_(std::move(on_pass)) {
  for (int thread = 0; thread < options_.threads; ++thread) {
    threads_.emplace_back([this] { work(); });
  }
}

Batcher::~Batcher() {
  {
    const std::lock_guard lock(mutex_);
    stops_ = true;
  }
  changed_.notify_all();
}

std::future<std::vector<float>> Batcher::submit(std::shared_ptr<const ModelVersion> version,
                                                std::vector<float> inputs, std::size_t count,
                                                bool may_compute) {
  Job job{std::move(inputs), count, Clock::now(), {}};
  std::future<std::vector<float>> result = job.result.get_future();
  bool is_own = false;
  {
    const std::lock_guard lock(mutex_);
    refuse_if_abandoned();
    if (may_compute && count >= options_.max_batch && lines_.empty() && can_begin()) {
      ++computing_;
      is_own = true;
    } else if (waiting_ > 0 && waiting_ + count > options_.most_waiting) {
      refuse(503, "{} samples wait to be computed; try again later", waiting_);
    }
    if (!is_own) add(std::move(version), std::move(job));
  }
  if (is_own) {
    std::vector<Job> alone;
    alone.push_back(std::move(job));
    compute(*version, std::move(alone));
    const std::lock_guard lock(mutex_);
    --computing_;
  }
  changed_.notify_all();
  return result;
}

/// Under the lock.
void Batcher::add(std::shared_ptr<const ModelVersion> version, Job job) {
  auto line = std::ranges::find(lines_, version, &Line::version);
  if (line == lines_.end()) line = lines_.insert(lines_.end(), Line{std::move(version), {}, 0});
  line->samples += job.count;
  waiting_ += job.count;
  line->jobs.push_back(std::move(job));
}

bool Batcher::can_begin() const { return computing_ < options_.threads; }

std::size_t Batcher::waiting() const {
  const std::lock_guard lock(mutex_);
  return waiting_;
}

void Batcher::refuse_if_abandoned() const {
  if (is_abandoned_) throw abandoned();
}

void Batcher::abandon() {
  Lines left;
  {
    const std::lock_guard lock(mutex_);
    is_abandoned_ = true;
    left.swap(lines_);
    waiting_ = 0;
  }
  changed_.notify_all();
  for (Line& line : left) {
    for (Job& job : line.jobs) {
      job.result.set_exception(std::make_exception_ptr(abandoned()));
    }
  }
}

/// Waits until a line is ready, and computes its batch outside of the lock.
void Batcher::work() {
  std::unique_lock lock(mutex_);
  while (!stops_ || !lines_.empty()) {
    if (lines_.empty() || !can_begin()) {
      changed_.wait(lock);
      continue;
    }
    auto line = std::ranges::find_if(lines_, [this](const Line& each) { return is_ready(each); });
    if (line == lines_.end()) {
      changed_.wait_until(lock, oldest()->jobs.front().arrived + options_.max_delay);
      continue;
    }
    const std::shared_ptr<const ModelVersion> version = line->version;
    std::vector<Job> jobs = take_batch(*line);
    // What is left goes behind the lines of other versions.
    if (line->jobs.empty()) {
      lines_.erase(line);
    } else {
      lines_.splice(lines_.end(), lines_, line);
    }
    ++computing_;
    lock.unlock();
    compute(*version, std::move(jobs));
    lock.lock();
    if (computing_-- == options_.threads) changed_.notify_all();
  }
}

Batcher::Lines::iterator Batcher::oldest() {
  return std::ranges::min_element(lines_, [](const Line& a, const Line& b) {
    return a.jobs.front().arrived < b.jobs.front().arrived;
  });
}

bool Batcher::is_ready(const Line& line) const {
  return stops_ || line.samples >= options_.max_batch ||
         Clock::now() >= line.jobs.front().arrived + options_.max_delay;
}

/// The oldest jobs that fit into a batch; the first one always.
std::vector<Batcher::Job> Batcher::take_batch(Line& line) {
  std::vector<Job> jobs;
  std::size_t samples = 0;
  while (!line.jobs.empty() &&
         (jobs.empty() || samples + line.jobs.front().count <= options_.max_batch)) {
    samples += line.jobs.front().count;
    jobs.push_back(std::move(line.jobs.front()));
    line.jobs.pop_front();
  }
  line.samples -= samples;
  waiting_ -= samples;
  return jobs;
}

/// A fault of one job is not that of the others: they are computed again, each alone.
void Batcher::compute(const ModelVersion& version, std::vector<Job> jobs) const {
  std::vector<std::vector<float>> results;
  try {
    if (jobs.size() > 1) results = pass_together(version, jobs);
  } catch (...) {
    results.clear();
  }
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    Job& job = jobs[i];
    try {
      job.result.set_value(results.empty() ? pass(version, job.inputs, job.count)
                                           : std::move(results[i]));
    } catch (...) {
      job.result.set_exception(std::current_exception());
    }
  }
}

/// The logits of each job.
std::vector<std::vector<float>> Batcher::pass_together(const ModelVersion& version,
                                                       std::span<const Job> jobs) const {
  std::vector<float> inputs;
  std::size_t count = 0;
  for (const Job& job : jobs) {
    inputs.insert(inputs.end(), job.inputs.begin(), job.inputs.end());
    count += job.count;
  }
  const std::vector<float> logits = pass(version, inputs, count);
  std::vector<std::vector<float>> results;
  auto from = logits.begin();
  for (const Job& job : jobs) {
    const auto to = from + static_cast<std::ptrdiff_t>(job.count * version.classes());
    results.emplace_back(from, to);
    from = to;
  }
  return results;
}

/// In parts of max_batch samples.
std::vector<float> Batcher::pass(const ModelVersion& version, std::span<const float> inputs,
                                 std::size_t count) const {
  std::vector<float> all;
  for (std::size_t first = 0; first < count; first += options_.max_batch) {
    refuse_if_abandoned();
    const std::size_t part = std::min(options_.max_batch, count - first);
    const auto began = Clock::now();
    std::vector<float> logits = version.forward(
        inputs.subspan(first * version.sample_values(), part * version.sample_values()), part);
    if (on_pass_) {
      on_pass_(version, part, std::chrono::duration<double>(Clock::now() - began).count());
    }
    if (part == count) return logits;
    all.insert(all.end(), logits.begin(), logits.end());
  }
  return all;
}

}  // namespace fast::serve
