#include "worker/model_reader.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fast/core/error.hpp>
#include <fast/mixing/kernels.hpp>

#include "codec/block.hpp"
#include "core/floating.hpp"

namespace fast::worker {

namespace {
/// Before the model is read as a whole, worker by worker.
constexpr int attempts_by_block = 3;
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

void ReplicaSums::add(const std::byte* values) {
  ++count_;
  std::size_t at = 0;
  for (const ElementBlock& block : blocks_) {
    const std::byte* from = values + (block.offset_bytes - blocks_.front().offset_bytes);
    with_floating(block.dtype, [&]<class T>(T) {
      const T* elements = reinterpret_cast<const T*>(from);
      if constexpr (sizeof(T) == sizeof(BFloat16)) {
        codec::widen(widened_.data(), elements, block.element_count);
        add(widened_.data(), block, at);
      } else {
        add(elements, block, at);
      }
    });
    at += block.element_count;
  }
}

template <class T>
void ReplicaSums::add(const T* values, const ElementBlock& block, std::size_t at) {
  if (wanted_.mean) mixing::add(sums_.data() + at, values, block.element_count);
  if (!wanted_.distance || block.role != Role::parameter) return;
  T* first = reinterpret_cast<T*>(first_.data() + at * sizeof(double));
  if (count_ == 1) std::memcpy(first, values, block.element_count * sizeof(T));
  squares_ += mixing::add_differences(differences_.data() + at, values, first, block.element_count);
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
                         std::size_t block_elements)
    : exchange_(&exchange),
      peers_(std::move(peers)),
      mixer_(&mixer),
      shape_(shape),
      own_(own),
      block_elements_(block_elements) {}

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

/// Nothing if weights could not be read to their end: another publication has replaced them, or
/// their worker has died. `workers` loses those of whom nothing can be read.
std::optional<std::vector<ModelReader::Seen>> ModelReader::visit_blocks(
    std::vector<int>& workers, std::span<const ElementBlock> blocks, ReplicaSums::Wanted wanted,
    const Visit& visit) const {
  ReplicaSums sums(wanted);
  std::vector<Piece> pieces(workers.size());
  std::vector<std::byte> room;
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    sums.begin(blocks.subspan(b, 1));
    room.resize(blocks[b].size_bytes());
    for (std::size_t w = 0; w < workers.size(); ++w) {
      pieces[w].offset = blocks[b].offset_bytes;
      const Snapshot found = peers_->snapshot(workers[w], room, pieces[w]);
      note_read(workers[w], room.size());
      if (is_weights(found)) {
        sums.add(room.data());
        continue;
      }
      if (b > 0 || found != Snapshot::none) return std::nullopt;
      workers.erase(workers.begin() + static_cast<std::ptrdiff_t>(w));
      pieces.erase(pieces.begin() + static_cast<std::ptrdiff_t>(w--));
    }
    if (workers.empty()) break;
    visit(blocks.subspan(b, 1), sums);
  }
  std::vector<Seen> seen;
  for (std::size_t w = 0; w < workers.size(); ++w) seen.push_back({workers[w], pieces[w].round});
  return seen;
}

/// Worker by worker, with sums as long as the model.
std::vector<ModelReader::Seen> ModelReader::visit_whole(const std::vector<int>& workers,
                                                        ReplicaSums::Wanted wanted,
                                                        const Visit& visit) const {
  const ParameterLayout& layout = mixer_->layout();
  const auto all = blocks_of(layout, 0, element_count(layout), element_count(layout));
  const AlignedBuffer packed(layout.size_bytes());
  ReplicaSums sums(wanted);
  sums.begin(all);
  std::vector<Seen> seen;
  for (const int worker : workers) {
    const std::optional<std::int64_t> round = read(worker, packed);
    if (!round) continue;
    sums.add(packed.data() + all.front().offset_bytes);
    seen.push_back({worker, *round});
  }
  if (sums.count() > 0) visit(all, sums);
  return seen;
}

namespace {

std::vector<ModelReader::Seen> at_least_one(std::vector<ModelReader::Seen> seen) {
  require(!seen.empty(), ErrorKind::internal,
          "mean model: no worker's weights could be read whole");
  return seen;
}

}  // namespace

int ModelReader::visit(const std::vector<int>& workers, std::span<const ElementBlock> blocks,
                       ReplicaSums::Wanted wanted, const Visit& visit) const {
  exchange_->flush();
  std::vector<int> readable = workers;
  for (std::size_t attempt = 0; attempt <= workers.size(); ++attempt) {
    const auto seen = visit_blocks(readable, blocks, wanted, visit);
    if (seen) return static_cast<int>(blocks.empty() ? seen->size() : at_least_one(*seen).size());
  }
  return static_cast<int>(at_least_one({}).size());
}

/// While workers train on, their publications may be replaced before all parts are read.
std::vector<ModelReader::Seen> ModelReader::visit_all(const std::vector<int>& workers,
                                                      ReplicaSums::Wanted wanted,
                                                      const Visit& visit) const {
  const ParameterLayout& layout = mixer_->layout();
  exchange_->flush();
  const auto blocks = blocks_of(layout, 0, element_count(layout), block_elements_);
  for (int attempt = 0; attempt < attempts_by_block && holds_weights(); ++attempt) {
    std::vector<int> readable = workers;
    if (const auto seen = visit_blocks(readable, blocks, wanted, visit)) return at_least_one(*seen);
  }
  return at_least_one(visit_whole(workers, wanted, visit));
}

std::vector<ModelReader::Seen> ModelReader::read_mean(const std::vector<int>& workers,
                                                      std::span<std::byte> packed) const {
  return visit_all(workers, {.mean = true}, [&](auto blocks, const ReplicaSums& sums) {
    sums.store_mean(packed.data() + blocks.front().offset_bytes);
  });
}

double ModelReader::distance_among(const std::vector<int>& workers) const {
  double mean_square = 0;
  visit_all(workers, {.distance = true}, [&](auto blocks, const ReplicaSums& sums) {
    if (blocks.front().offset_bytes == 0) mean_square = 0;  // it may begin anew
    mean_square += sums.mean_square();
  });
  return std::sqrt(std::max(mean_square, 0.0));  // the first argument if it is NaN
}

}  // namespace fast::worker
