#include "worker/model_reader.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fast/core/error.hpp>
#include <fast/mixing/kernels.hpp>
#include <functional>
#include <memory>
#include <numeric>

#include "codec/block.hpp"
#include "core/floating.hpp"
#include "core/thread_crew.hpp"

namespace fast::worker {

namespace {
/// Before the model is read as a whole, worker by worker.
constexpr int attempts_by_block = 3;
/// That a thread reads in turn.
constexpr std::size_t blocks_at_once = 8;
/// The type in which elements stored as T are summed.
template <class T>
using Compute = std::conditional_t<std::is_same_v<T, double>, double, float>;

/// Null if the caller's thread works alone, as where the system makes no more.
std::unique_ptr<ThreadCrew> crew_of(std::size_t threads) try {
  return threads > 1 ? std::make_unique<ThreadCrew>(static_cast<int>(threads)) : nullptr;
} catch (const Error& error) {
  if (error.kind() != ErrorKind::resource) throw;
  return nullptr;
}
}  // namespace

std::size_t element_count(const ParameterLayout& layout) {
  std::size_t count = 0;
  for (const Segment& segment : layout.segments()) count += segment.element_count;
  return count;
}

std::vector<ElementBlock> blocks_of(const ParameterLayout& layout, std::size_t first,
                                    std::size_t last, std::size_t most) {
  std::vector<ElementBlock> blocks;
  std::size_t before = 0;  // elements of the segments before
  for (const Segment& segment : layout.segments()) {
    const std::size_t end = std::min(last, before + segment.element_count);
    for (std::size_t e = std::max(first, before); e < end;) {
      const std::size_t count = std::min(most, end - e);
      blocks.push_back({segment.offset_bytes + (e - before) * size_bytes(segment.dtype), count,
                        segment.dtype, segment.role});
      e += count;
    }
    before += segment.element_count;
  }
  return blocks;
}

void ReplicaSums::begin(std::span<const ElementBlock> blocks) {
  blocks_.assign(blocks.begin(), blocks.end());
  std::size_t elements = 0, longest = 0;
  for (const ElementBlock& block : blocks) {
    elements += block.element_count;
    const bool is_short = size_bytes(block.dtype) == sizeof(BFloat16);
    if (is_short) longest = std::max(longest, block.element_count);
  }
  if (wanted_.mean) sums_.assign(elements, 0);
  if (wanted_.distance) {
    differences_.assign(elements, 0);
    first_.resize(elements * sizeof(double));
  }
  widened_.resize(longest);
  squares_ = 0;
  count_ = 0;
}

void ReplicaSums::add(std::span<const std::byte* const> values) {
  std::size_t at = 0;
  for (const ElementBlock& block : blocks_) {
    const std::size_t begin = block.offset_bytes - blocks_.front().offset_bytes;
    with_floating(block.dtype, [&]<class T>(T) {
      std::vector<Compute<T>> widened;
      std::vector<const Compute<T>*> elements;
      if constexpr (sizeof(T) == sizeof(BFloat16)) {
        widened.resize(block.element_count * values.size());
        for (std::size_t j = 0; j < values.size(); ++j) {
          elements.push_back(widened.data() + j * block.element_count);
          codec::widen(widened.data() + j * block.element_count,
                       reinterpret_cast<const T*>(values[j] + begin), block.element_count);
        }
      } else {
        for (const std::byte* replica : values)
          elements.push_back(reinterpret_cast<const T*>(replica + begin));
      }
      add<Compute<T>>(elements, block, at);
    });
    at += block.element_count;
  }
  count_ += static_cast<int>(values.size());
}

template <class T>
void ReplicaSums::add(std::span<const T* const> values, const ElementBlock& block, std::size_t at) {
  if (wanted_.mean) mixing::add(sums_.data() + at, values, block.element_count);
  if (!wanted_.distance || block.role != Role::parameter || values.empty()) return;
  T* first = reinterpret_cast<T*>(first_.data() + at * sizeof(double));
  if (count_ == 0) std::memcpy(first, values[0], block.element_count * sizeof(T));
  squares_ = mixing::add_differences(differences_.data() + at, squares_, values, first,
                                     block.element_count);
}

void ReplicaSums::store_mean(std::byte* to) const {
  const double* sums = sums_.data();
  for (const ElementBlock& block : blocks_) {
    std::byte* at = to + (block.offset_bytes - blocks_.front().offset_bytes);
    const std::size_t count = block.element_count;
    with_floating(block.dtype, [&]<class T>(T) {
      if constexpr (sizeof(T) == sizeof(BFloat16)) {
        mixing::divide(widened_.data(), sums, count_, count);
        codec::narrow(reinterpret_cast<T*>(at), widened_.data(), count);
      } else {
        mixing::divide(reinterpret_cast<T*>(at), sums, count_, count);
      }
    });
    sums += count;
  }
}

/// Around the first replica r: mean ‖x_i - r‖² - ‖x̄ - r‖².
double ReplicaSums::mean_square() const {
  const double workers = count_;
  const double of_mean = mixing::sum_of_squares(differences_.data(), differences_.size());
  return squares_ / workers - of_mean / (workers * workers);
}

ModelReader::ModelReader(Exchange& exchange, std::shared_ptr<const Peers> peers,
                         const combine::Mixer& mixer, const PayloadShape& shape, int own,
                         std::size_t block_elements, int threads)
    : exchange_(&exchange),
      peers_(std::move(peers)),
      mixer_(&mixer),
      shape_(shape),
      own_(own),
      block_elements_(block_elements),
      threads_(block_elements == on_host ? threads : 1) {}

bool ModelReader::is_weights(Snapshot found) const {
  return found == Snapshot::weights ||
         (found == Snapshot::message && mixer_->coded().kind() == codec::Kind::identity);
}

bool ModelReader::holds_weights() const {
  return mixer_->coded().kind() == codec::Kind::identity || shape_.weights_bytes > 0;
}

std::optional<std::int64_t> ModelReader::read(int worker, const AlignedBuffer& packed) const {
  exchange_->flush();
  const codec::CodedLayout& coded = mixer_->coded();
  note_read(worker, holds_weights() ? packed.size_bytes() : coded.size_bytes());
  Piece piece;
  if (coded.kind() == codec::Kind::identity) {
    const Snapshot found = peers_->snapshot(worker, {packed.data(), packed.size_bytes()}, piece);
    return found == Snapshot::none ? std::nullopt : std::optional(piece.round);
  }
  const AlignedBuffer room(std::max(shape_.vector_bytes, shape_.weights_bytes));
  const Snapshot found = peers_->snapshot(worker, {room.data(), room.size_bytes()}, piece);
  if (found == Snapshot::weights) std::memcpy(packed.data(), room.data(), packed.size_bytes());
  if (found == Snapshot::message) codec::decode(coded, room.data(), packed.data());
  return found == Snapshot::none ? std::nullopt : std::optional(piece.round);
}

/// Of sources that can be read; the first block says which these are. What is read in place is
/// summed together, in the order of the sources. False: a later block could not be read.
bool ModelReader::add_block(std::vector<Source>& sources, const ElementBlock& block,
                            std::vector<std::byte>& room, ReplicaSums& sums) const {
  std::vector<const std::byte*> values;
  std::vector<const Source*> watched;
  sums.begin({&block, 1});
  room.resize(block.size_bytes());
  for (Source& source : sources) {
    source.piece.offset = block.offset_bytes;
    note_read(source.worker, room.size());
    const bool is_first = source.piece.sequence == 0;
    const std::byte* there =
        is_first ? nullptr : peers_->in_place(source.worker, source.found, source.piece);
    if (there != nullptr) {
      values.push_back(there);
      watched.push_back(&source);
      continue;
    }
    sums.add(values);
    values.clear();
    source.found = peers_->snapshot(source.worker, room, source.piece);
    if (is_weights(source.found)) {
      sums.add(room.data());
    } else if (!is_first || source.found != Snapshot::none) {
      return false;
    }
  }
  sums.add(values);
  const bool intact = std::ranges::all_of(watched, [&](const Source* source) {
    return peers_->is_intact(source->worker, source->piece);
  });
  std::erase_if(sources, [&](const Source& source) { return !is_weights(source.found); });
  return intact;
}

/// Nothing if weights could not be read to their end: another publication has replaced them, or
/// their worker has died. `workers` loses those of whom nothing can be read.
std::optional<ModelReader::Found> ModelReader::visit_blocks(std::vector<int>& workers,
                                                            std::span<const ElementBlock> blocks,
                                                            ReplicaSums::Wanted wanted,
                                                            const Visit& visit) const {
  std::vector<Source> sources;
  for (const int worker : workers) sources.push_back({worker, Snapshot::none, {}});
  std::vector<double> squares(blocks.size());
  std::atomic<bool> whole = true;
  const auto visit_range = [&](std::vector<Source>& from, std::size_t first, std::size_t end) {
    ReplicaSums sums(wanted);
    std::vector<std::byte> room;
    for (std::size_t b = first; b < end && whole && !from.empty(); ++b) {
      if (!add_block(from, blocks[b], room, sums)) whole = false;
      if (!whole || from.empty()) return;
      visit(blocks.subspan(b, 1), sums);
      if (wanted.distance) squares[b] = sums.mean_square();
    }
  };
  visit_range(sources, 0, std::min<std::size_t>(blocks.size(), 1));
  std::erase_if(workers, [&](int worker) {
    return !blocks.empty() && std::ranges::find(sources, worker, &Source::worker) == sources.end();
  });
  const std::size_t parts =
      blocks.empty() ? 0 : (blocks.size() + blocks_at_once - 2) / blocks_at_once;
  const auto visit_part = [&](std::size_t p) {
    std::vector<Source> own = sources;
    const std::size_t first = 1 + p * blocks_at_once;
    visit_range(own, first, std::min(blocks.size(), first + blocks_at_once));
  };
  const std::size_t elements =
      std::transform_reduce(blocks.begin(), blocks.end(), std::size_t{0}, std::plus(),
                            [](const ElementBlock& block) { return block.element_count; });
  // Threads take longer to begin than short models to be read.
  const std::size_t threads = whole && elements > blocks_at_once * on_host
                                  ? std::min(parts, static_cast<std::size_t>(threads_))
                                  : 1;
  if (const auto crew = crew_of(threads)) {
    crew->each(parts, visit_part);
  } else {
    for (std::size_t p = 0; p < parts; ++p) visit_part(p);
  }
  if (!whole) return std::nullopt;
  Found found;
  for (const Source& source : sources) found.seen.push_back({source.worker, source.piece.round});
  for (const double each : squares) found.mean_square += each;
  return found;
}

/// Worker by worker, with sums as long as the model.
ModelReader::Found ModelReader::visit_whole(const std::vector<int>& workers,
                                            ReplicaSums::Wanted wanted, const Visit& visit) const {
  const ParameterLayout& layout = mixer_->layout();
  const auto all = blocks_of(layout, 0, element_count(layout), element_count(layout));
  const AlignedBuffer packed(layout.size_bytes());
  ReplicaSums sums(wanted);
  sums.begin(all);
  Found found;
  for (const int worker : workers) {
    const std::optional<std::int64_t> round = read(worker, packed);
    if (!round) continue;
    sums.add(packed.data() + all.front().offset_bytes);
    found.seen.push_back({worker, *round});
  }
  if (sums.count() > 0) visit(all, sums);
  if (sums.count() > 0 && wanted.distance) found.mean_square = sums.mean_square();
  return found;
}

namespace {

ModelReader::Found at_least_one(ModelReader::Found found) {
  require(!found.seen.empty(), ErrorKind::internal,
          "mean model: no worker's weights could be read whole");
  return found;
}

}  // namespace

ModelReader::Found ModelReader::visit(const std::vector<int>& workers,
                                      std::span<const ElementBlock> blocks,
                                      ReplicaSums::Wanted wanted, const Visit& visit) const {
  exchange_->flush();
  std::vector<int> readable = workers;
  for (std::size_t attempt = 0; attempt <= workers.size(); ++attempt) {
    auto found = visit_blocks(readable, blocks, wanted, visit);
    if (found) return blocks.empty() ? *found : at_least_one(std::move(*found));
  }
  return at_least_one({});
}

/// While workers train on, their publications may be replaced before all parts are read.
ModelReader::Found ModelReader::visit_all(const std::vector<int>& workers,
                                          ReplicaSums::Wanted wanted, const Visit& visit) const {
  const ParameterLayout& layout = mixer_->layout();
  exchange_->flush();
  const auto blocks = blocks_of(layout, 0, element_count(layout), block_elements_);
  for (int attempt = 0; attempt < attempts_by_block && holds_weights(); ++attempt) {
    std::vector<int> readable = workers;
    if (auto found = visit_blocks(readable, blocks, wanted, visit))
      return at_least_one(std::move(*found));
  }
  return at_least_one(visit_whole(workers, wanted, visit));
}

std::vector<ModelReader::Seen> ModelReader::read_mean(const std::vector<int>& workers,
                                                      std::span<std::byte> packed) const {
  const auto store = [&](auto blocks, const ReplicaSums& sums) {
    sums.store_mean(packed.data() + blocks.front().offset_bytes);
  };
  return visit_all(workers, {.mean = true}, store).seen;
}

double ModelReader::distance_among(const std::vector<int>& workers) const {
  const auto found = visit_all(workers, {.distance = true}, [](auto, const ReplicaSums&) {});
  return std::sqrt(std::max(found.mean_square, 0.0));  // the first argument if it is NaN
}

}  // namespace fast::worker
