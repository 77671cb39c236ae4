#include "ranks.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <fast/core/error.hpp>
#include <thread>

namespace fast::bench {
namespace {

constexpr Seconds patience{300};
constexpr std::chrono::milliseconds lead_time{3};  // in which all ranks learn when to start

}  // namespace

bool parse(const Group& group, CLI::App& app, int argc, char** argv) {
  bool read = false;
  agree(group, Deadline(patience), "reading options", [&] {
    try {
      app.parse(argc, argv);
      read = true;
    } catch (const CLI::CallForHelp&) {
      if (group.rank() == 0) std::fputs(app.help().c_str(), stdout);
    } catch (const CLI::ParseError& error) {
      fail(ErrorKind::argument, "{}: {}; --help lists the options", app.get_name(), error.what());
    }
  });
  return read;
}

void add_block(CLI::App& app, std::size_t& batch, int& steps) {
  app.add_option("--batch", batch, "samples a step and worker")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--steps", steps, "steps in a block")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
}

std::int64_t staleness_of(const std::string& text) {
  if (text == "inf") return unbounded_staleness;
  std::int64_t value = -1;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  require(error == std::errc{} && stop == end && value >= 0, ErrorKind::argument,
          "--staleness: \"{}\"; a number of rounds, 0 or more, or inf is required", text);
  return value;
}

Clock::time_point start_together(const Group& group) {
  const auto hosts = group.hosts();
  require(std::count(hosts.begin(), hosts.end(), hosts.front()) == group.size(),
          ErrorKind::argument,
          "the ranks are on several hosts, whose clocks differ; start all of them on one");
  group.barrier(Deadline(patience), "starting together");
  const auto proposal = (Clock::now() + lead_time).time_since_epoch().count();
  Clock::rep latest = 0;
  for (const std::string& text :
       group.all_gather(std::to_string(proposal), Deadline(patience), "starting together")) {
    latest = std::max<Clock::rep>(latest, std::stoll(text));
  }
  const Clock::time_point start{Clock::duration(latest)};
  std::this_thread::sleep_until(start);
  return start;
}

std::vector<std::vector<double>> gather(const Group& group, const std::vector<double>& values) {
  const std::string_view bytes(reinterpret_cast<const char*>(values.data()),
                               values.size() * sizeof(double));
  std::vector<std::vector<double>> all;
  for (const std::string& text : group.all_gather(bytes, Deadline(patience), "gathering figures")) {
    all.emplace_back(text.size() / sizeof(double));
    std::memcpy(all.back().data(), text.data(), text.size());
  }
  return all;
}

void sleep_ms(double duration_ms) {
  std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(duration_ms));
}

}  // namespace fast::bench
