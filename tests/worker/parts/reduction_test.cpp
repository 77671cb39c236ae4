// The reduction at the end of training, when workers die in its middle.
#include "worker/mean_model.hpp"

#include <fast/exchange/local.hpp>
#include <fast/topology/stencil.hpp>

#include <atomic>
#include <cmath>
#include <mutex>

#include "support/catch.hpp"
#include "worker/parts/fakes.hpp"

using namespace fast;
using testing::Scene;

namespace {

constexpr std::size_t count = 1200;  // of doubles: more than the least that is reduced in parts
constexpr std::size_t replica_bytes = count * sizeof(double);

double value_of(int worker, std::size_t e) {
  return std::sin(static_cast<double>(1 + e)) + 3.0 * worker;
}

/// Where a worker dies.
enum class Death { before, at_its_part, at_the_whole };

struct Died {};

/// The memory of all workers.
struct Memory {
  struct Part {
    std::vector<double> weights, room = std::vector<double>(count);
    std::atomic<bool> dead{false};
    std::mutex mutex;
    Reduced shown;
  };
  explicit Memory(int workers) : parts(static_cast<std::size_t>(workers)) {
    for (std::size_t w = 0; w < parts.size(); ++w) {
      for (std::size_t e = 0; e < count; ++e)
        parts[w].weights.push_back(value_of(static_cast<int>(w), e));
    }
  }
  Part& of(int worker) { return parts[static_cast<std::size_t>(worker)]; }
  std::deque<Part> parts;
  bool stays = true;  ///< can be read after its worker's death, as on one host
};

/// What worker `rank` sees of it. A worker that dies throws Died.
class View final : public Peers, public Results {
 public:
  View(Memory& memory, int rank, std::optional<Death> death)
      : memory_(memory), rank_(rank), death_(death) {}

  PeerState peer(int) const override {
    PeerState state;
    state.status = WorkerStatus::finished;
    return state;
  }
  bool is_suspect(int worker) const override { return memory_.of(worker).dead; }
  Seconds suspect_after(int) const override { return Seconds(1); }
  void note_progress() override {}
  bool announce(WorkerStatus) override { return false; }
  using Peers::snapshot;
  Snapshot snapshot(int worker, std::span<std::byte> to, Piece& piece) const override {
    if (is_lost(worker)) return Snapshot::none;
    const auto bytes = std::as_bytes(std::span(memory_.of(worker).weights)).subspan(piece.offset);
    std::memcpy(to.data(), bytes.data(), std::min(bytes.size(), to.size()));
    piece.sequence = 1;
    return Snapshot::message;
  }

  Results* results() override { return this; }
  std::span<std::byte> room() override {
    if (death_ == Death::before) die();
    return std::as_writable_bytes(std::span(memory_.of(rank_).room));
  }
  void trim() override {}
  void show(const Reduced& reduced) override {
    const bool is_part = reduced.stage == Reduced::Stage::part;
    if (death_ == (is_part ? Death::at_its_part : Death::at_the_whole)) die();
    const std::lock_guard lock(memory_.of(rank_).mutex);
    memory_.of(rank_).shown = reduced;
  }
  Reduced shown(int worker) const override {
    if (is_lost(worker)) return {};
    const std::lock_guard lock(memory_.of(worker).mutex);
    return memory_.of(worker).shown;
  }
  bool read(int worker, std::size_t offset, std::span<std::byte> to) const override {
    if (is_lost(worker)) return false;
    const auto bytes = std::as_bytes(std::span(memory_.of(worker).room));
    std::memcpy(to.data(), bytes.data() + offset, to.size());
    return true;
  }

 private:
  bool is_lost(int worker) const { return !memory_.stays && memory_.of(worker).dead; }
  void die() {
    memory_.of(rank_).dead = true;
    throw Died();
  }

  Memory& memory_;
  int rank_;
  std::optional<Death> death_;
};

struct Outcome {
  std::vector<std::vector<double>> means;  ///< of the survivors
  std::vector<double> distances;
  std::vector<int> workers;
  double bytes_read = 0;  ///< by the survivors
};

Outcome reduce(Memory& memory, int dies = -1, Death death = Death::before) {
  Outcome outcome;
  std::mutex mutex;
  const int workers = static_cast<int>(memory.parts.size());
  std::vector<int> all;
  for (int w = 0; w < workers; ++w) all.push_back(w);
  local::run(workers, [&](const Group& group) {
    const int rank = group.rank();
    Scene scene(rank, workers, stencil::ring());
    std::vector<double> x(count);
    combine::HostMixer mixer(ParameterLayout({view_of("x", std::span(x))}), algorithm::awc().make(),
                             {}, false);
    const PayloadShape shape{replica_bytes, 1, 0};
    const auto view =
        std::make_shared<View>(memory, rank, rank == dies ? std::optional(death) : std::nullopt);
    const worker::ModelReader reader(scene.exchange, view, mixer, shape, rank, 100);
    const worker::Context context{scene.setting, scene.progress, scene.exchange, mixer};
    worker::Reduction reduction(context, view, reader);
    std::vector<double> mean(count);
    try {
      const auto found = reduction.run(all, std::as_writable_bytes(std::span(mean)));
      const std::lock_guard lock(mutex);
      outcome.means.push_back(mean);
      outcome.distances.push_back(found.distance);
      outcome.workers.push_back(found.workers);
      outcome.bytes_read += reader.bytes_read();
    } catch (const Died&) {
    }
  });
  return outcome;
}

double mean_of(int workers, std::size_t e, int without = -1) {
  double sum = 0;
  for (int w = 0; w < workers; ++w) sum += w == without ? 0 : value_of(w, e);
  return sum / (without < 0 ? workers : workers - 1);
}

}  // namespace

TEST_CASE("a reduction is the mean and the distance, and reads at most 2 N P bytes") {
  for (const int workers : {2, 3, 4, 7}) {
    Memory memory(workers);
    const Outcome outcome = reduce(memory);
    REQUIRE(outcome.means.size() == static_cast<std::size_t>(workers));
    // Element by element, workers are at 3 w from a common value.
    const double distance = std::sqrt(count * 9.0 * (workers * workers - 1) / 12);
    for (const double found : outcome.distances) CHECK(found == Approx(distance).epsilon(1e-12));
    for (const auto& mean : outcome.means) {
      CHECK(mean == outcome.means.front());
      for (std::size_t e = 0; e < count; ++e)
        REQUIRE(mean[e] == Approx(mean_of(workers, e)).epsilon(1e-14));
    }
    CHECK(outcome.bytes_read <= 2.0 * workers * replica_bytes);
    CHECK(outcome.bytes_read == Approx(2.0 * (workers - 1) * replica_bytes).epsilon(1e-12));
  }
}

TEST_CASE("a worker that dies in the middle of a reduction holds nobody") {
  for (const int workers : {2, 3, 4, 7}) {
    for (int dies = 0; dies < workers; ++dies) {
      for (const Death death : {Death::before, Death::at_its_part, Death::at_the_whole}) {
        for (const bool stays : {true, false}) {
          Memory memory(workers);
          memory.stays = stays;
          const Outcome outcome = reduce(memory, dies, death);
          INFO(workers << " workers, " << dies << " dies at " << static_cast<int>(death)
                       << ", its memory stays: " << stays);
          REQUIRE(outcome.means.size() == static_cast<std::size_t>(workers - 1));
          // Without its memory, a worker counts in the parts that were read while it lived. Its own
          // part may be read by one worker, and computed anew for another one.
          for (const auto& mean : outcome.means) {
            CHECK((!stays || mean == outcome.means.front()));
            for (std::size_t e = 0; e < count; ++e) {
              const double all = mean_of(workers, e), rest = mean_of(workers, e, dies);
              const bool is_all = std::abs(mean[e] - all) < 1e-12;
              const bool is_rest = std::abs(mean[e] - rest) < 1e-12;
              REQUIRE((is_all || (!stays && is_rest)));
            }
          }
          for (const int seen : outcome.workers) CHECK(seen >= workers - 1);
          CHECK(outcome.bytes_read <= 2.0 * workers * replica_bytes);
        }
      }
    }
  }
}

TEST_CASE("a small model is read directly") {
  Scene scene(0, 2, stencil::ring());
  scene.peers->weights[0] = std::vector<double>(Scene::count, 1);
  scene.peers->weights[1] = std::vector<double>(Scene::count, 3);
  const worker::ModelReader reader(scene.exchange, scene.peers, scene.mixer, scene.setting.shape);
  worker::Reduction reduction(scene.context, scene.peers, reader);
  std::vector<double> mean(Scene::count);
  const auto found = reduction.run({0, 1}, std::as_writable_bytes(std::span(mean)));
  CHECK(mean == std::vector<double>(Scene::count, 2));
  CHECK(found.distance == Approx(std::sqrt(Scene::count * 1.0)));
}
