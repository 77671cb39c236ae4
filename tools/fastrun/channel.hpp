// How fastrun and its wrappers talk: lines of text over TCP.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fastrun {

/// A descriptor that is closed at the end.
class Descriptor {
 public:
  explicit Descriptor(int value = -1) : value_(value) {}
  Descriptor(Descriptor&& other) noexcept : value_(other.release()) {}
  Descriptor& operator=(Descriptor&& other) noexcept;
  ~Descriptor();
  int get() const { return value_; }
  int release() {
    const int value = value_;
    value_ = -1;
    return value;
  }

 private:
  int value_;
};

/// Lines in and out of a descriptor.
class Lines {
 public:
  explicit Lines(Descriptor descriptor) : descriptor_(std::move(descriptor)) {}
  int descriptor() const { return descriptor_.get(); }
  /// False when the other side has gone. Newlines within are sent as spaces.
  bool send(std::string line) const;
  /// Reads what is there; the whole lines of it. Empty optional: the other side has gone.
  std::optional<std::vector<std::string>> receive();
  /// The descriptor, and what has been received of a line that has not ended.
  std::pair<Descriptor, std::string> release();

 private:
  Descriptor descriptor_;
  std::string begun_;
};

struct Listener {
  Descriptor descriptor;
  int port = 0;
};
/// At the loopback, or at all addresses of this machine.
Listener listen_for_ranks(bool are_on_this_host);

/// This machine's addresses, loopback last, separated by commas.
std::string own_addresses();
/// Whether a name or an address means this machine.
bool is_this_host(const std::string& name);
/// The first of the addresses that answers; Descriptor(-1) when none does.
Descriptor connect_to(std::string_view addresses, int port);

/// Whether a write of a few bytes would not block.
bool is_writable(int descriptor);

}  // namespace fastrun
