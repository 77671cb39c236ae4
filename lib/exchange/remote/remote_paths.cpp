#include "exchange/remote/remote_paths.hpp"

#include <fmt/format.h>

#include <fast/core/deadline.hpp>
#include <fast/core/error.hpp>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>
#include <utility>

#include "core/leak_until_exit.hpp"

namespace fast::exchange {
namespace {

/// A short sample first: over a slow link a long one would take most of the start.
constexpr std::size_t short_sample = std::size_t{64} << 10, long_sample = std::size_t{1} << 20;
constexpr double longest_sample_s = 0.25;
constexpr int repetitions = 3;
constexpr int sample_tag = 2;

/// Seconds that a directed edge took on each path.
struct EdgeTimes {
  double pull = 0, two_sided = 0;
};
using Edge = std::pair<int, int>;              ///< source, reader
using Requests = std::map<int, mpi::Request>;  ///< by worker

class PathMeasurement {
 public:
  PathMeasurement(const mpi::Communicator& communicator, const RemoteEdges& edges,
                  const mpi::RemoteWindow& window, const mpi::Messages& messages,
                  const std::vector<bool>& is_remote, Seconds deadline)
      : communicator_(communicator),
        edges_(edges),
        window_(window),
        messages_(messages),
        deadline_(deadline),
        longest_(std::min(long_sample, edges.board->layout().message_bytes())),
        bytes_(std::min(short_sample, longest_)) {
    buffers_->sample.resize(longest_);
    for (const std::int64_t round : {0, 1}) {
      for (const int source : edges.plan(round).sources) add(sources_, source, is_remote);
      for (const int reader : edges.plan(round).destinations) add(readers_, reader, is_remote);
    }
  }

  /// Collective. The times of all workers' edges.
  std::map<Edge, EdgeTimes> run() {
    try {
      std::map<Edge, EdgeTimes> times = gather(measure());
      const double growth = static_cast<double>(longest_) / static_cast<double>(bytes_);
      if (growth == 1 || slowest_s(times) * growth > longest_sample_s) return times;
      bytes_ = longest_;
      return gather(measure());
    } catch (const Error&) {
      leak_until_exit(std::pair(buffers_, messages_));
      throw;
    }
  }

 private:
  static constexpr std::string_view purpose = "measuring remote edges";

  static double slowest_s(const std::map<Edge, EdgeTimes>& times) {
    double slowest = 0;
    for (const auto& [edge, taken] : times)
      slowest = std::max({slowest, taken.pull, taken.two_sided});
    return slowest;
  }

  std::map<int, EdgeTimes> measure() {
    std::map<int, EdgeTimes> mine;
    for (int repetition = 0; repetition < repetitions; ++repetition) {
      keep_least(mine, &EdgeTimes::pull, time_pulls());
      keep_least(mine, &EdgeTimes::two_sided, time_messages());
    }
    return mine;
  }

  std::map<Edge, EdgeTimes> gather(const std::map<int, EdgeTimes>& mine) {
    auto lines = nlohmann::json::array();
    for (const auto& [source, times] : mine) lines.push_back({source, times.pull, times.two_sided});
    std::map<Edge, EdgeTimes> all;
    int reader = 0;
    for (const auto& text : communicator_.all_gather(lines.dump(), Deadline(deadline_), purpose)) {
      for (const auto& line : nlohmann::json::parse(text))
        all[{line[0], reader}] = {line[1], line[2]};
      ++reader;
    }
    return all;
  }

  static void add(std::set<int>& to, int worker, const std::vector<bool>& is_remote) {
    if (is_remote[static_cast<std::size_t>(worker)]) to.insert(worker);
  }

  static void keep_least(std::map<int, EdgeTimes>& to, double EdgeTimes::*path,
                         const std::map<int, double>& times) {
    for (const auto& [source, time] : times) {
      double& least = to[source].*path;
      least = least == 0 ? time : std::min(least, time);
    }
  }

  /// Waits for the requests and polls MPI as rarely as beside a step. Returns the seconds by
  /// worker.
  std::map<int, double> finish(Requests& requests) {
    const auto start = Clock::now();
    std::map<int, double> times;
    Deadline deadline(deadline_);  // since the latest one that has ended
    while (times.size() < requests.size()) {
      for (auto& [worker, request] : requests) {
        if (times.contains(worker) || !request.test()) continue;
        times[worker] = Seconds(Clock::now() - start).count();
        deadline = Deadline(deadline_);
      }
      require(
          !deadline.expired(), ErrorKind::deadline,
          "{}: worker {} waited {:.1f} s for {} of {} neighbors; look for one that hangs or has "
          "ended",
          purpose, edges_.rank, deadline.elapsed_s(), requests.size() - times.size(),
          requests.size());
      check_wait();
      std::this_thread::sleep_for(poll_period_beside_step);
    }
    return times;
  }

  /// As the RmaReplicator reads: a header, a payload, the header again.
  std::map<int, double> time_pulls() {
    communicator_.barrier(Deadline(deadline_), purpose);
    std::map<int, double> times;
    for (const auto& [offset, bytes] : {std::pair{std::size_t{0}, sizeof(WorkerHeader)},
                                        {SlotLayout::header_bytes, bytes_},
                                        {std::size_t{0}, sizeof(WorkerHeader)}}) {
      Requests requests;
      for (const int source : sources_)
        requests[source] = window_.get(source, offset, room(source), bytes);
      for (const auto& [source, time] : finish(requests)) times[source] += time;
    }
    return times;
  }

  std::map<int, double> time_messages() {
    Requests requests, sends;
    for (const int source : sources_)
      requests[source] = messages_.receive(source, sample_tag, room(source), bytes_);
    communicator_.barrier(Deadline(deadline_), purpose);
    for (const int reader : readers_)
      sends[reader] = messages_.send_expected(reader, sample_tag, buffers_->sample.data(), bytes_);
    auto times = finish(requests);
    finish(sends);
    return times;
  }

  std::byte* room(int source) {
    auto& bytes = buffers_->rooms[source];
    bytes.resize(std::max(longest_, sizeof(WorkerHeader)));
    return bytes.data();
  }

  /// Of reads and messages. Kept for good after an error, because MPI may still use them.
  struct Buffers {
    std::vector<std::byte> sample;
    std::map<int, std::vector<std::byte>> rooms;
  };

  const mpi::Communicator& communicator_;
  const RemoteEdges& edges_;
  const mpi::RemoteWindow& window_;
  const mpi::Messages& messages_;
  Seconds deadline_;             ///< of each step of the measurement
  std::size_t longest_, bytes_;  ///< of a sample
  std::shared_ptr<Buffers> buffers_ = std::make_shared<Buffers>();
  std::set<int> sources_, readers_;
};

RemotePath faster(const EdgeTimes& times) {
  return times.two_sided <= times.pull ? RemotePath::two_sided : RemotePath::pull;
}

}  // namespace

std::vector<RemotePath> choose_paths(const mpi::Communicator& communicator,
                                     const RemoteEdges& edges, const mpi::RemoteWindow& window,
                                     const mpi::Messages& messages,
                                     const std::vector<bool>& is_remote,
                                     const ExchangeOptions& options) {
  std::vector<RemotePath> paths(is_remote.size(), RemotePath::none);
  EdgeTimes total;
  std::map<Edge, EdgeTimes> pairs;
  // Above staleness 0 no worker waits for a slow reader, and a pull over a slow link would always
  // find its slot overwritten.
  if (options.remote_path == RemotePathChoice::measured && edges.exact()) {
    const auto times =
        PathMeasurement(communicator, edges, window, messages, is_remote, options.deadline).run();
    for (const auto& [edge, taken] : times) {
      EdgeTimes& pair = pairs[std::minmax(edge.first, edge.second)];
      for (EdgeTimes* sum : {&pair, &total}) {
        sum->pull += taken.pull;
        sum->two_sided += taken.two_sided;
      }
    }
  }
  const bool pulls = options.remote_path == RemotePathChoice::pull;
  const RemotePath otherwise = pulls ? RemotePath::pull : faster(total);
  for (std::size_t worker = 0; worker < paths.size(); ++worker) {
    if (!is_remote[worker]) continue;
    const auto pair = pairs.find(std::minmax(edges.rank, static_cast<int>(worker)));
    paths[worker] = pair == pairs.end() ? otherwise : faster(pair->second);
  }
  if (edges.rank == 0 && options.log && !pairs.empty()) {
    const auto by_messages = std::ranges::count_if(
        pairs, [](const auto& pair) { return faster(pair.second) == RemotePath::two_sided; });
    options.log(
        LogLevel::info,
        fmt::format("remote edges: {} of {} pairs of neighbors use messages, the others reads "
                    "(measured: messages {:.3g} ms, reads {:.3g} ms a part)",
                    by_messages, pairs.size(),
                    1e3 * total.two_sided / static_cast<double>(pairs.size()),
                    1e3 * total.pull / static_cast<double>(pairs.size())));
  }
  return paths;
}

}  // namespace fast::exchange
