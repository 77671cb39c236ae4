#include <array>
#include <cstring>
#include <fast/core/error.hpp>
#include <optional>

#include "core/host.hpp"
#include "exchange/links/link_measurement.hpp"
#include "exchange/links/measured_links.hpp"
#include "exchange/links/mpi_trials.hpp"
#include "mpi/impl.hpp"
#include "mpi/launcher.hpp"

namespace fast {
namespace {

constexpr Seconds start_limit{60};

using Figures = std::array<double, 6>;

std::string packed(const MeasuredLinks& links) {
  const Figures figures = {links.latency_s, links.lone_bandwidth,   links.bandwidth,
                           links.jitter,    links.memory_bandwidth, links.seconds};
  return {reinterpret_cast<const char*>(figures.data()), sizeof(figures)};
}

MeasuredLinks unpacked(const std::string& bytes) {
  Figures figures{};
  require(bytes.size() == sizeof(figures), ErrorKind::internal,
          "measuring links: {} bytes of figures, {} were expected", bytes.size(), sizeof(figures));
  std::memcpy(figures.data(), bytes.data(), sizeof(figures));
  return {figures[0], figures[1], figures[2], figures[3], figures[4], figures[5], {}};
}

MeasuredLinks lead(exchange::MpiTrials& trials, const std::vector<int>& hosts,
                   const std::vector<std::string>& names, const LinkMeasureOptions& options) {
  std::optional<Error> failure;
  try {
    const MeasuredLinks found = exchange::LinkMeasurement(trials, hosts, names, options).measure();
    trials.finish(packed(found));
    return found;
  } catch (const Error& error) {
    failure = error;
  }
  trials.give_up(failure->what());
  throw Error(failure->kind(), failure->what(), true);
}

}  // namespace

MeasuredLinks measure_links(const mpi::Communicator& ranks, const std::vector<int>& hosts,
                            const LinkMeasureOptions& options) {
  require(ranks.size() > 1 && hosts.size() == static_cast<std::size_t>(ranks.size()),
          ErrorKind::argument,
          "measuring links: {} ranks with the hosts of {}; at least 2 ranks, with a host each, "
          "are required",
          ranks.size(), hosts.size());
  const mpi::Messages messages(ranks, Deadline(start_limit));
  const auto names = ranks.all_gather(host_name(), Deadline(start_limit), "measuring links");
  if (ranks.rank() != 0) {
    const auto ended = [&] { return mpi::ended_among(ranks.impl()->world_ranks); };
    return unpacked(exchange::serve_trials(messages, ranks.rank(), options.answer_within,
                                           2 * options.budget + 6 * options.answer_within, ended));
  }
  exchange::MpiTrials trials(messages, names, options.answer_within);
  return lead(trials, hosts, names, options);
}

}  // namespace fast
