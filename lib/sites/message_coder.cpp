#include "sites/message_coder.hpp"

#include <fast/algorithm/algorithm.hpp>
#include <fast/core/error.hpp>

#include <algorithm>
#include <cstring>
#include <functional>
#include <utility>

#include "combine/model_memory.hpp"
#include "sites/packed_model.hpp"

namespace fast::sites {
namespace {

using codec::Kind;

bool is_coarse(Kind kind) {
  constexpr int fine = 8;
  return kind == Kind::sparse || codec::bits(kind) < fine;
}

/// Calls part(piece, T{}) for each piece.
template <class Part>
void for_pieces(const codec::CodedLayout& layout, const Part& part) {
  for (const codec::Piece& piece : layout.pieces())
    piece.segment.dtype == DType::f64 ? part(piece, double{}) : part(piece, float{});
}

template <class T>
T* elements_of(const codec::Piece& piece, const AlignedBuffer& packed) {
  return elements<T>(piece.segment, packed.data()).data();
}

}  // namespace

MessageCoder::MessageCoder(ParameterLayout layout, Kind kind, double fraction)
    : layout_(std::move(layout)),
      kind_(kind),
      sends_differences_(is_coarse(kind_)),
      whole_(layout_, sends_differences_ ? Kind::bf16 : kind_),
      difference_(layout_, kind_,
                  kind_ == Kind::sparse
                      ? algorithm::Sparsity{.fraction = fraction}.of(layout_.parameter_count())
                      : 0) {
  if (kind_ == Kind::identity) return;
  own_.values = AlignedBuffer(layout_.size_bytes());
  if (codec::record_of(kind_).feeds_back && !sends_differences_)
    error_ = AlignedBuffer(layout_.size_bytes());
}

MessageCoder::Coded MessageCoder::encode(std::shared_ptr<const AlignedBuffer> message,
                                         std::int64_t number, bool whole) {
  message_ = std::move(message);
  if (kind_ == Kind::identity) return {message_, -1};
  const std::int64_t base = whole || !sends_differences_ ? -1 : own_.number;
  const codec::CodedLayout& layout = base < 0 ? whole_ : difference_;
  const auto coded = std::make_shared<AlignedBuffer>(layout.size_bytes());
  if (base < 0) {
    encode_whole(coded->data());
    codec::decode(whole_, coded->data(), own_.values.data());
  } else {
    encode_difference(coded->data());
    add_difference(coded->data(), own_.values);
  }
  require(combine::is_finite(layout_, own_.values.data()), ErrorKind::numeric,
          "sites: a weight is too large for codec {}; take another one",
          kind_ == Kind::sparse ? "sparse" : codec::name({.kind = kind_}));
  own_.number = number;
  return {coded, base};
}

void MessageCoder::keep_only(const std::vector<std::string>& sites) {
  std::erase_if(copies_, [&](const auto& copy) {
    return std::ranges::find(sites, copy.first) == sites.end();
  });
}

void MessageCoder::restart() {
  own_.number = -1;
  std::ranges::fill(error_.as<std::byte>(), std::byte{0});
}

void MessageCoder::encode_whole(std::byte* to) {
  for_pieces(whole_, [&]<class T>(const codec::Piece& piece, T) {
    const T* from = elements_of<T>(piece, *message_);
    const std::size_t count = piece.segment.element_count;
    std::byte* code = to + piece.offset_bytes;
    if (piece.kind == Kind::identity)
      std::memcpy(code, from, count * sizeof(T));
    else if (error_.size_bytes() > 0)
      codec::encode_with_feedback(piece.kind, from, elements_of<T>(piece, error_), count, code);
    else
      codec::encode(piece.kind, from, count, code);
  });
}

template <class Part>
void MessageCoder::for_differences(const Part& part) const {
  for_pieces(difference_, [&]<class T>(const codec::Piece& piece, T) {
    if (piece.kind == Kind::identity) return;
    const T* from = elements_of<T>(piece, *message_);
    std::vector<T> difference(piece.segment.element_count);
    std::transform(from, from + difference.size(), elements_of<T>(piece, own_.values),
                   difference.begin(), std::minus<>());
    part(piece, difference);
  });
}

/// Buffers, which are not coded, travel as they are.
void MessageCoder::encode_buffers(std::byte* to) const {
  for_pieces(difference_, [&]<class T>(const codec::Piece& piece, T) {
    if (piece.kind != Kind::identity) return;
    std::memcpy(to + piece.offset_bytes, elements_of<T>(piece, *message_),
                piece.segment.element_count * sizeof(T));
  });
}

void MessageCoder::encode_difference(std::byte* to) {
  encode_buffers(to);
  if (kind_ == Kind::sparse) return encode_largest(to);
  for_differences([&](const codec::Piece& piece, const auto& difference) {
    codec::encode(piece.kind, difference.data(), difference.size(), to + piece.offset_bytes);
  });
}

void MessageCoder::encode_largest(std::byte* to) {
  largest_.begin(static_cast<std::size_t>(layout_.parameter_count()));
  for_differences([&](const codec::Piece&, const auto& difference) {
    for (const auto value : difference) largest_.add(static_cast<double>(value));
  });
  largest_.choose(std::min(largest_.count(), difference_.sparse().capacity));
  codec::SparseWriter writer(difference_.sparse(), to);
  for_differences([&]<class T>(const codec::Piece& piece, std::vector<T>& difference) {
    for (T& value : difference)
      if (!largest_.takes(static_cast<double>(value))) value = 0;
    writer.append(difference.data(), piece.first, difference.size());
  });
}

void MessageCoder::add_difference(const std::byte* coded, AlignedBuffer& values) const {
  for_pieces(difference_, [&]<class T>(const codec::Piece& piece, T) {
    T* to = elements_of<T>(piece, values);
    const std::size_t count = piece.segment.element_count;
    if (piece.kind == Kind::identity) {
      std::memcpy(to, coded + piece.offset_bytes, count * sizeof(T));
      return;
    }
    std::vector<T> difference(count);
    if (piece.kind == Kind::sparse)
      codec::decode_sparse(difference_.sparse(), coded, piece.first, count, difference.data());
    else
      codec::decode(piece.kind, coded + piece.offset_bytes, count, difference.data());
    std::transform(to, to + count, difference.begin(), to, std::plus<>());
  });
}

std::shared_ptr<const AlignedBuffer> MessageCoder::decode(const Received& message) {
  if (kind_ == Kind::identity) return message.bytes;
  Copy passing;  // whole messages of codecs without differences are not needed again
  Copy& copy = sends_differences_ ? copies_[message.site] : passing;
  if (message.what.base >= 0) {
    const bool is_next =
        copy.incarnation == message.incarnation && copy.number == message.what.base;
    if (!is_next) return nullptr;
    add_difference(message.bytes->data(), copy.values);
  } else {
    if (copy.values.size_bytes() == 0) copy.values = AlignedBuffer(layout_.size_bytes());
    codec::decode(whole_, message.bytes->data(), copy.values.data());
  }
  copy.incarnation = message.incarnation;
  copy.number = message.what.number;
  auto result = std::make_shared<AlignedBuffer>(layout_.size_bytes());
  for_pieces(whole_, [&]<class T>(const codec::Piece& piece, T) {
    const T* theirs = elements_of<T>(piece, copy.values);
    const T* sent = elements_of<T>(piece, own_.values);
    const T* own = elements_of<T>(piece, *message_);
    T* to = elements_of<T>(piece, *result);
    for (std::size_t e = 0; e < piece.segment.element_count; ++e)
      to[e] = own[e] + (theirs[e] - sent[e]);
  });
  return result;
}

}  // namespace fast::sites
