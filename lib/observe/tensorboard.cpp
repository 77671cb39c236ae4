#include <fast/observe/tensorboard.hpp>

#include <fmt/core.h>
#include <unistd.h>
#include <protozero/pbf_writer.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "core/host.hpp"
#include "observe/output_file.hpp"
#include "observe/tensorboard_record.hpp"

namespace fast::observe {
namespace {

constexpr std::array<std::uint32_t, 256> crc_table() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t byte = 0; byte < table.size(); ++byte) {
    std::uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1U ^ ((crc & 1U) != 0 ? 0x82f63b78U : 0U);
    table[byte] = crc;
  }
  return table;
}

/// TensorFlow's: a check sum of bytes that contain check sums would be weak.
std::uint32_t masked(std::uint32_t crc) { return (crc >> 15U | crc << 17U) + 0xa282ead8U; }

template <class Number>
std::string little_endian(Number number) {
  std::string bytes;
  for (std::size_t k = 0; k < sizeof number; ++k) {
    bytes += static_cast<char>(number >> (8 * k) & 0xffU);
  }
  return bytes;
}

}  // namespace

std::uint32_t crc32c(std::string_view bytes) {
  static constexpr auto table = crc_table();
  std::uint32_t crc = ~0U;
  for (const char byte : bytes) {
    crc = crc >> 8U ^ table[(crc ^ static_cast<unsigned char>(byte)) & 0xffU];
  }
  return ~crc;
}

std::string record(std::string_view bytes) {
  const std::string length = little_endian(static_cast<std::uint64_t>(bytes.size()));
  std::string all = length + little_endian(masked(crc32c(length)));
  all += bytes;
  return all + little_endian(masked(crc32c(bytes)));
}

namespace {

using protozero::pbf_writer;

// Numbers of fields and a value, of tensorflow/core/util/event.proto and
// framework/{summary,histogram}.proto.
namespace board_event {
constexpr int wall_time = 1, step = 2, file_version = 3, summary = 5, session_log = 7;
}
namespace board_session {
constexpr int status = 1, start = 1;
}
namespace board_summary {
constexpr int value = 1, tag = 1, simple_value = 2, histogram = 5;
}
namespace board_histogram {
constexpr int min = 1, max = 2, count = 3, sum = 4, sum_of_squares = 5, limits = 6, buckets = 7;
}

double wall_time_s() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

struct Histogram {
  double min = 0, max = 0, count = 0, sum = 0, sum_of_squares = 0;
  std::vector<double> limits, buckets;  ///< upper limits
};

/// Of finite values, in bins of equal width.
Histogram histogram_of(std::span<const float> values) {
  constexpr std::size_t bins = 64;
  Histogram all;
  for (const float value : values) {
    if (!std::isfinite(value)) continue;
    const double v = value;
    all.min = all.count == 0 ? v : std::min(all.min, v);
    all.max = all.count == 0 ? v : std::max(all.max, v);
    ++all.count;
    all.sum += v;
    all.sum_of_squares += v * v;
  }
  const double width = std::max((all.max - all.min) / bins, 1e-12);
  all.buckets.assign(bins, 0);
  for (std::size_t b = 1; b <= bins; ++b) {
    all.limits.push_back(all.min + width * static_cast<double>(b));
  }
  for (const float value : values) {
    if (!std::isfinite(value)) continue;
    const auto bin = static_cast<std::size_t>((value - all.min) / width);
    ++all.buckets[std::min(bin, bins - 1)];
  }
  return all;
}

class TensorBoard final : public Observer {
 public:
  TensorBoard(const std::filesystem::path& directory, LogSink log)
      : file_("tensorboard", directory / file_name(), std::move(log), Existing::refused) {
    std::string event;
    pbf_writer writer(event);
    writer.add_double(board_event::wall_time, wall_time_s());
    writer.add_string(board_event::file_version, "brain.Event:2");
    file_.append(record(event));
  }

  void on_phase(const PhaseEvent& event) noexcept override {
    if (event.peer >= 0) return;
    const std::lock_guard lock(mutex_);
    phases_s_[static_cast<std::size_t>(event.phase)] += Seconds(event.ended - event.began).count();
  }

  void on_message(const MessageEvent& event) noexcept override {
    if (event.kind != MessageEvent::Kind::read) return;
    const std::lock_guard lock(mutex_);
    const auto age = static_cast<std::size_t>(event.age);
    ++ages_[std::min(age, ages_.size() - 1)];
  }

  void on_scalar(const ScalarEvent& event) noexcept override {
    const std::lock_guard lock(mutex_);
    write_scalar(event.name, event.value, event.round);
  }

  void on_values(const ValuesEvent& event) noexcept override {
    const std::lock_guard lock(mutex_);
    write_histogram(event.name, histogram_of(event.values), event.round);
  }

  void on_milestone(const MilestoneEvent& event) noexcept override {
    if (event.kind != MilestoneEvent::Kind::epoch_ended) return;
    const std::lock_guard lock(mutex_);
    for (std::size_t p = 0; p < phases_s_.size(); ++p) {
      const auto phase = static_cast<Phase>(p);
      write_scalar(fmt::format("seconds/{}", name(phase)), phases_s_[p], event.round);
    }
    write_histogram("ages", histogram_of_ages(), event.round);
    ages_ = {};
  }

 private:
  static constexpr std::size_t phases = 5, most_rounds = 32;

  /// A process may have several, also in one second.
  static std::string file_name() {
    static std::atomic<int> made{0};
    return fmt::format("events.out.tfevents.{}.{}.{}.{}", static_cast<long>(wall_time_s()),
                       host_name(), getpid(), made++);
  }

  /// Whole rounds; the last bin takes the rest.
  Histogram histogram_of_ages() const {
    Histogram all;
    bool first = true;
    for (std::size_t age = 0; age < ages_.size(); ++age) {
      const auto count = static_cast<double>(ages_[age]), value = static_cast<double>(age);
      all.limits.push_back(value + 0.5);
      all.buckets.push_back(count);
      if (count == 0) continue;
      if (std::exchange(first, false)) all.min = value;
      all.max = value;
      all.count += count;
      all.sum += count * value;
      all.sum_of_squares += count * value * value;
    }
    return all;
  }

  /// The run begins or goes on in this round. In the files of an earlier process in the directory,
  /// TensorBoard passes over what is of this round or later ones: a resumed run makes them again.
  void write_start(std::int64_t round) {
    std::string event;
    {
      pbf_writer writer(event);
      writer.add_double(board_event::wall_time, wall_time_s());
      writer.add_int64(board_event::step, round);
      pbf_writer session(writer, board_event::session_log);
      session.add_enum(board_session::status, board_session::start);
    }
    file_.append(record(event));
  }

  /// An event whose summary has one value, which `fill` writes.
  template <class Fill>
  void write(std::string_view tag, std::int64_t round, const Fill& fill) {
    if (!std::exchange(has_started_, true)) write_start(round);
    std::string event;
    {
      pbf_writer writer(event);
      writer.add_double(board_event::wall_time, wall_time_s());
      writer.add_int64(board_event::step, round);
      pbf_writer summary(writer, board_event::summary);
      pbf_writer value(summary, board_summary::value);
      value.add_string(board_summary::tag, tag.data(), tag.size());
      fill(value);
    }
    file_.append(record(event));
  }

  void write_scalar(std::string_view tag, double number, std::int64_t round) {
    write(tag, round, [&](pbf_writer& value) {
      value.add_float(board_summary::simple_value, static_cast<float>(number));
    });
  }

  void write_histogram(std::string_view tag, const Histogram& all, std::int64_t round) {
    write(tag, round, [&](pbf_writer& value) {
      pbf_writer histogram(value, board_summary::histogram);
      histogram.add_double(board_histogram::min, all.min);
      histogram.add_double(board_histogram::max, all.max);
      histogram.add_double(board_histogram::count, all.count);
      histogram.add_double(board_histogram::sum, all.sum);
      histogram.add_double(board_histogram::sum_of_squares, all.sum_of_squares);
      histogram.add_packed_double(board_histogram::limits, all.limits.begin(), all.limits.end());
      histogram.add_packed_double(board_histogram::buckets, all.buckets.begin(), all.buckets.end());
    });
  }

  std::mutex mutex_;
  OutputFile file_;
  bool has_started_ = false;
  std::array<double, phases> phases_s_{};
  std::array<std::int64_t, most_rounds> ages_{};
};

}  // namespace

std::shared_ptr<Observer> tensorboard(const std::filesystem::path& directory, LogSink log) {
  return std::make_shared<TensorBoard>(directory, std::move(log));
}

}  // namespace fast::observe
