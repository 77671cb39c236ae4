#include "exchange/remote/remote_paths.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <fast/core/error.hpp>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "mpi/impl.hpp"

namespace fast::exchange {
namespace {

constexpr std::size_t longest_sample = std::size_t{1} << 20;
constexpr int repetitions = 3;
constexpr int sample_tag = 2;

/// Seconds that a directed edge took by each path.
struct EdgeTimes {
  double pull = 0, two_sided = 0;
};
using Edge = std::pair<int, int>;  ///< source, reader

class PathMeasurement {
 public:
  PathMeasurement(const mpi::Communicator& communicator, const RemoteEdges& edges,
                  const mpi::RemoteWindow& window, const mpi::Messages& messages,
                  const std::vector<bool>& is_remote, const Deadline& deadline)
      : communicator_(communicator),
        edges_(edges),
        window_(window),
        messages_(messages),
        deadline_(deadline),
        bytes_(std::min(longest_sample, SlotBoard::message_bytes(edges.board->shape()))),
        sample_(bytes_) {
    for (const std::int64_t round : {0, 1}) {
      for (const int source : edges.plan(round).sources) add(sources_, source, is_remote);
      for (const int reader : edges.plan(round).destinations) add(readers_, reader, is_remote);
    }
  }

  /// Collective. The times of all workers' edges.
  std::map<Edge, EdgeTimes> run() {
    std::map<int, EdgeTimes> mine;
    for (int repetition = 0; repetition < repetitions; ++repetition) {
      keep_least(mine, &EdgeTimes::pull, time_pulls());
      keep_least(mine, &EdgeTimes::two_sided, time_messages());
    }
    auto lines = nlohmann::json::array();
    for (const auto& [source, times] : mine) lines.push_back({source, times.pull, times.two_sided});
    std::map<Edge, EdgeTimes> all;
    int reader = 0;
    for (const auto& text : communicator_.all_gather(lines.dump(), deadline_, purpose)) {
      for (const auto& line : nlohmann::json::parse(text))
        all[{line[0], reader}] = {line[1], line[2]};
      ++reader;
    }
    return all;
  }

 private:
  static constexpr std::string_view purpose = "measuring remote edges";

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

  /// Waits for the requests, by worker, while MPI serves the others, as seldom as beside a step.
  std::map<int, double> finish(std::map<int, MPI_Request>& requests) {
    const auto start = Clock::now();
    std::map<int, double> times;
    while (times.size() < requests.size()) {
      for (auto& [worker, request] : requests) {
        if (!times.contains(worker) && mpi::done(request))
          times[worker] = Seconds(Clock::now() - start).count();
      }
      require(!deadline_.expired(), ErrorKind::deadline,
              "{}: worker {} waited {:.1f} s for {} of {} neighbors", purpose, edges_.rank,
              deadline_.elapsed_s(), requests.size() - times.size(), requests.size());
      std::this_thread::sleep_for(nap_beside_work);
    }
    return times;
  }

  /// As the Puller does it: a header, a payload, the header again.
  std::map<int, double> time_pulls() {
    communicator_.barrier(deadline_, purpose);
    std::map<int, double> times;
    const std::size_t payload = SlotBoard::slot_offset(edges_.board->shape(), 0);
    for (const auto& [offset, bytes] : {std::pair{std::size_t{0}, sizeof(WorkerHeader)},
                                        {payload, bytes_},
                                        {std::size_t{0}, sizeof(WorkerHeader)}}) {
      std::map<int, MPI_Request> requests;
      for (const int source : sources_)
        requests[source] = window_.get(source, offset, room(source), bytes);
      for (const auto& [source, time] : finish(requests)) times[source] += time;
    }
    return times;
  }

  std::map<int, double> time_messages() {
    std::map<int, MPI_Request> requests, sends;
    for (const int source : sources_)
      requests[source] = messages_.receive(source, sample_tag, room(source), bytes_);
    communicator_.barrier(deadline_, purpose);
    for (const int reader : readers_)
      sends[reader] = messages_.send(reader, sample_tag, sample_.data(), bytes_);
    auto times = finish(requests);
    finish(sends);
    return times;
  }

  std::byte* room(int source) {
    auto& bytes = rooms_[source];
    bytes.resize(std::max(bytes_, sizeof(WorkerHeader)));
    return bytes.data();
  }

  const mpi::Communicator& communicator_;
  const RemoteEdges& edges_;
  const mpi::RemoteWindow& window_;
  const mpi::Messages& messages_;
  const Deadline& deadline_;
  std::size_t bytes_;
  std::vector<std::byte> sample_;
  std::map<int, std::vector<std::byte>> rooms_;
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
  // A slow reader that nobody waits for would never find a slot unchanged to the end of a pull.
  if (options.remote_path == RemotePathChoice::measured && edges.exact()) {
    const Deadline deadline(options.deadline);
    const auto times =
        PathMeasurement(communicator, edges, window, messages, is_remote, deadline).run();
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
    const auto by_messages = std::count_if(pairs.begin(), pairs.end(), [](const auto& pair) {
      return faster(pair.second) == RemotePath::two_sided;
    });
    options.log(LogLevel::info,
                fmt::format("remote edges: {} of {} pairs of neighbors by messages, the others by "
                            "reading (measured: messages {:.3g} ms, reads {:.3g} ms a part)",
                            by_messages, pairs.size(),
                            1e3 * total.two_sided / static_cast<double>(pairs.size()),
                            1e3 * total.pull / static_cast<double>(pairs.size())));
  }
  return paths;
}

}  // namespace fast::exchange
