// What sites' messages are coded with: few bits an element, and what a site's readers make of them.
#pragma once

#include <fast/codec/codec.hpp>
#include <fast/core/memory.hpp>
#include <fast/core/tensor_view.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "algorithm/top_k.hpp"
#include "codec/coded_layout.hpp"
#include "sites/node.hpp"

namespace fast::sites {

/// Codes u_i, the message of this site, and decodes those of others.
///
/// 8 and 16 bits code u_i itself; what the code loses is added to the next message. int4, int2 and
/// sparse code the difference to x̂_i, the sum of what this site has sent, which its readers hold,
/// too (Koloskova, Stich, Jaggi 2019, arXiv 1902.00340). The first message, and one after readers
/// have changed, is whole, in bf16. Of sparse, the largest entries travel, exactly.
///
/// A rule takes u_i + (x̂_j - x̂_i) for the message of site j. This site's own u_i is never rounded,
/// and with symmetric weights the sites' mean is that without a codec.
class MessageCoder {
 public:
  /// For packed models of that layout, whose elements are f32 or f64, and a kind of codec::names(),
  /// or Kind::sparse, of which that fraction of the parameters travels.
  MessageCoder(ParameterLayout layout, codec::Kind kind, double fraction = 1);

  bool sends_differences() const { return sends_differences_; }
  std::uint64_t whole_bytes() const { return whole_.size_bytes(); }
  std::uint64_t difference_bytes() const { return difference_.size_bytes(); }

  struct Coded {
    std::shared_ptr<const AlignedBuffer> bytes;
    std::int64_t base = -1;  ///< the exchange to whose message it is the difference; -1: whole
  };
  /// Codes u_i of exchange `number`, as a difference to the latest one if that may be. Throws
  /// Error(numeric) if the code cannot hold a value.
  Coded encode(std::shared_ptr<const AlignedBuffer> message, std::int64_t number, bool whole);
  /// Makes of a message what the rule takes. Null: it is the difference to one that this site has
  /// not read, and a whole one is needed. To be called once for each, after encode().
  std::shared_ptr<const AlignedBuffer> decode(const Received& message);
  /// The site's next message is to be whole.
  void forget(const std::string& site) { copies_.erase(site); }
  /// Others than these are not read any more.
  void keep_only(const std::vector<std::string>& sites);
  /// The weights are others: the next message has nothing to do with those before.
  void restart();

 private:
  /// What readers hold of a site.
  struct Copy {
    AlignedBuffer values;
    std::uint64_t incarnation = 0;
    std::int64_t number = -1;
  };
  /// Calls part(piece, values) with the pieces of the difference to what was sent.
  template <class Part>
  void for_differences(const Part& part) const;
  void add_difference(const std::byte* coded, AlignedBuffer& values) const;
  void encode_whole(std::byte* to);
  void encode_difference(std::byte* to);
  void encode_buffers(std::byte* to) const;
  void encode_largest(std::byte* to);

  ParameterLayout layout_;
  codec::Kind kind_;
  bool sends_differences_;
  codec::CodedLayout whole_, difference_;
  std::shared_ptr<const AlignedBuffer> message_;  ///< u_i
  Copy own_;                                      ///< x̂_i
  algorithm::TopK largest_;                       ///< of a sparse difference
  AlignedBuffer error_;                           ///< what the whole messages' code has lost
  std::map<std::string, Copy> copies_;            ///< x̂_j, if differences refer to them
};

}  // namespace fast::sites
