// Two workers on two hosts: how long a publication is under way, by path, from a neighbor that
// computes or sleeps; and what a round sends over the wire, by the interface's own counter.
#include <fast/algorithm/rules.hpp>
#include <fast/core/random.hpp>
#include <fast/exchange/group.hpp>
#include <fast/mpi/environment.hpp>
#include <fast/topology/stencil.hpp>
#include <fast/worker/worker.hpp>

#include <fmt/ranges.h>

#include <fstream>
#include <sstream>

#include "ranks.hpp"
#include "report.hpp"

using namespace fast;

namespace {

constexpr Seconds patience{120};

struct Setting {
  double megabytes = 10, step_ms = 300;
  int rounds = 10;
  std::string interface = "eth0";
};

double now_ms() {
  return std::chrono::duration<double, std::milli>(Clock::now().time_since_epoch()).count();
}

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

void require_two_hosts_with_one_clock(const Group& group) {
  const auto boots = group.all_gather(first_line("/proc/sys/kernel/random/boot_id"),
                                      Deadline(patience), "comparing clocks");
  require(group.size() == 2 && group.hosts()[1] == 1 && boots[0] == boots[1], ErrorKind::argument,
          "bench_remote: {} ranks, hosts by rank {}; it wants two ranks on two hosts of one "
          "machine, whose clock they share (bench/remote.sh makes them)",
          group.size(), fmt::join(group.hosts(), " "));
}

std::string name_of(RemotePathChoice path) {
  if (path == RemotePathChoice::measured) return "measured";
  return path == RemotePathChoice::pull ? "pull" : "two_sided";
}

/// Milliseconds from worker 1's publications to their arrival at worker 0, which only waits.
std::vector<double> delays(const Group& group, const Setting& setting, RemotePathChoice path,
                           bool computes) {
  const auto bytes = static_cast<std::size_t>(setting.megabytes * 1e6);
  ExchangeOptions options;
  options.deadline = patience;
  options.remote_path = path;
  const bool reads = group.rank() == 0;
  const EdgePlan plan = [reads](std::int64_t) {
    return reads ? RoundEdges{{1}, {}} : RoundEdges{{}, {0}};
  };
  Link link = group.open({bytes, 1, 1}, plan, options);
  std::vector<double> samples;
  for (int round = -1; round < setting.rounds; ++round) {
    const auto mark = static_cast<std::byte>(round + 2);
    if (reads) {
      const Arrival arrival = link.exchange->fetch(round + 1).at(0);
      if (round >= 0) samples.push_back(now_ms() - arrival.payload.scalars[0]);
      for (std::size_t b = 0; b < bytes; ++b)
        require(arrival.payload.data[b] == mark, ErrorKind::internal, "byte {} is wrong", b);
    } else {
      const MutablePayload payload = link.exchange->acquire();
      std::fill_n(payload.data, bytes, mark);
      payload.scalars[0] = now_ms();
      link.exchange->publish(round + 1);
      const double until = now_ms() + setting.step_ms;
      if (!computes) bench::sleep_ms(setting.step_ms);
      while (now_ms() < until) {
      }
    }
    link.exchange->complete(round + 2);
  }
  group.barrier(Deadline(patience), "all have read");
  return samples;
}

/// Bytes that this host has sent by the interface.
double sent_bytes(const std::string& interface) {
  std::ifstream file("/proc/net/dev");
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos || line.find(interface) > colon) continue;
    std::istringstream fields(line.substr(colon + 1));
    double value = 0;
    for (int field = 0; field < 9; ++field) fields >> value;
    return value;
  }
  fail(ErrorKind::argument, "--interface: {} is not among those of /proc/net/dev", interface);
}

struct Coding {
  std::string name, codec;
  bool sparse = false;
  RemotePathChoice path = RemotePathChoice::measured;
};

/// Rounds of a ring of two, without compute: bytes sent a round ÷ P and the rounds' times.
bench::Row rounds_by(const Group& group, const Setting& setting, const Coding& coding) {
  const auto count = static_cast<std::size_t>(setting.megabytes * 1e6 / sizeof(float));
  WorkerOptions options;
  options.initial = Initial::as_is;
  options.deadline = patience;
  options.codec = codec::by_name(coding.codec);
  options.remote_path = coding.path;
  if (coding.sparse) options.algorithm = algorithm::by_name("choco");
  std::vector<float> x(count);
  Rng rng(static_cast<std::uint64_t>(group.rank()));
  for (float& value : x) value = static_cast<float>(rng.uniform(-1, 1));
  Worker worker(group, stencil::ring(), {view_of("x", std::span(x))}, options);
  worker.step([] {});
  group.barrier(Deadline(patience), "counting");
  const double before = sent_bytes(setting.interface);
  std::vector<double> samples;
  for (int round = 0; round < setting.rounds; ++round) {
    const double begin = now_ms();
    worker.step([] {});
    samples.push_back(now_ms() - begin);
  }
  group.barrier(Deadline(patience), "counting");
  const double sent = (sent_bytes(setting.interface) - before) / setting.rounds;
  worker.await_finish();
  const auto timing = bench::timing_of(samples);
  return {{"method", "round, " + coding.name},
          {"path", name_of(coding.path)},
          {"bytes", 4 * count},
          {"sent / P", sent / (4.0 * static_cast<double>(count))},
          {"median_ms", timing.median_ms},
          {"low_ms", timing.low_ms},
          {"high_ms", timing.high_ms}};
}

void measure(const Group& group, const Setting& setting, bench::Report& report) {
  const auto bytes = static_cast<std::size_t>(setting.megabytes * 1e6);
  for (const auto path : {RemotePathChoice::pull, RemotePathChoice::two_sided}) {
    const auto idle = delays(group, setting, path, false);
    const auto busy = delays(group, setting, path, true);
    if (group.rank() != 0) continue;
    const auto idle_timing = bench::timing_of(idle), busy_timing = bench::timing_of(busy);
    const bench::Row row{{"path", name_of(path)}, {"bytes", bytes}};
    report.add("from an idle neighbor", row, idle_timing);
    bench::Row busy_row = row;
    busy_row["/ idle"] = busy_timing.median_ms / idle_timing.median_ms;
    report.add("from a computing neighbor", busy_row, busy_timing);
  }
  for (const Coding& coding : {Coding{"identity", "identity", false, RemotePathChoice::pull},
                               {"identity", "identity", false, RemotePathChoice::two_sided},
                               {"bf16", "bf16"},
                               {"int8", "int8"},
                               {"choco, top 1 %", "identity", true}}) {
    const auto row = rounds_by(group, setting, coding);
    if (group.rank() == 0) report.add(row);
  }
}

}  // namespace

int main(int argc, char** argv) {
  return mpi::run(argc, argv, [&](const mpi::Communicator& world) {
    bench::Report report("bench_remote");
    Setting setting;
    CLI::App app{"Publications between two hosts; bench/remote.sh makes the hosts"};
    app.add_option("--mb", setting.megabytes, "size of the weights, in 10^6 bytes")
        ->check(CLI::PositiveNumber)
        ->capture_default_str();
    app.add_option("--step-ms", setting.step_ms, "the neighbor's compute a round")
        ->check(CLI::PositiveNumber)
        ->capture_default_str();
    app.add_option("--rounds", setting.rounds, "rounds of each method")
        ->check(CLI::PositiveNumber)
        ->capture_default_str();
    app.add_option("--interface", setting.interface, "whose bytes are counted")
        ->capture_default_str();
    report.add_options(app);
    const Group group(world);
    if (!bench::parse(group, app, argc, argv)) return 0;
    require_two_hosts_with_one_clock(group);
    measure(group, setting, report);
    return world.rank() == 0 ? report.finish() : 0;
  });
}
