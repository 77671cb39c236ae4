// A server that keeps streams of messages: what fast-serve and fast-train need of it.
#pragma once

#include <fast/core/observer.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fast::stream {

// Where a stream is: NATS servers, what proves who the client and the server are, and a subject.

/// Files that prove who somebody is. An empty path: none. Secrets stand in files only, so that no
/// list of processes and no log shows them.
struct Security {
  /// PEM: who signs certificates of servers. They are trusted beside those of the system.
  std::string ca_file{};
  std::string certificate_file{}, key_file{};  ///< PEM, of the client: both, or none
  // At most one of these three logs in.
  std::string password_file{};     ///< first line: the user's password; without a user, a token
  std::string nkey_file{};         ///< a line with the user's seed (SU...), one with its key (U...)
  std::string credentials_file{};  ///< of nsc: the user's JWT and seed
};

/// Where `given` has no file, takes that of FAST_NATS_CA_FILE, FAST_NATS_CERTIFICATE_FILE and
/// FAST_NATS_KEY_FILE, FAST_NATS_PASSWORD_FILE, FAST_NATS_NKEY_FILE, FAST_NATS_CREDENTIALS_FILE.
/// The last three count only if `given` has none of them, and the key only with its certificate.
Security with_environment(Security given);

/// The public key in the file of an nkey. Empty: there is none.
std::string public_nkey(const std::string& file);

/// nats://[USER[:PASSWORD]@]HOST[:PORT][,nats://HOST...][/SUBJECT], or tls:// instead of nats://.
/// tls:// means TLS 1.2 or later, and a server whose certificate is checked, with its host name.
/// Servers are tried in this order, now and when the connection is lost; no others are.
struct Address {
  std::vector<std::string> servers{};  ///< for the client: without user and password
  std::string shown{};                 ///< for messages: without user and password
  std::string subject{};               ///< empty: none is given
  std::string user{}, secret{};        ///< a secret without a user is a token
  Security security{};
  /// What a program should tell once: a password that lists of processes show, a secret's file
  /// that others may read.
  std::vector<std::string> notices{};

  bool is_tls() const { return shown.starts_with("tls://"); }
};

/// Whether the text begins as the address of a stream does.
bool is_address(std::string_view text);

/// Reads the files of with_environment(security) as far as needed to say what is wrong with them.
/// Throws Error(argument), naming `option`, when the text is not of that form, a file cannot be
/// used, or two things log in at the same time.
Address read_address(std::string_view text, std::string_view option, Security security = {});

/// Parts of one character or more with dots between them, without spaces. "*" stands for one part,
/// ">" at the end for one or more; both only where `wildcards` allows it.
bool is_subject(std::string_view text, bool wildcards);

/// Whether a message of the subject `subject` is among those of `filter`, which may have wildcards.
bool subject_matches(std::string_view filter, std::string_view subject);

using Headers = std::map<std::string, std::string>;

/// A message as the stream keeps it.
struct Message {
  std::string subject, body;
  Headers headers{};
  std::uint64_t sequence = 0;          ///< its number in the stream, from 1
  std::int64_t stored_ns = 0;          ///< when the stream took it, since 1970
  std::shared_ptr<void> receipt = {};  ///< what acknowledge() needs
  bool has_damaged_headers = false;    ///< which cannot be read; `headers` is empty then
};

inline constexpr char damaged_headers[] =
    "its headers cannot be read; see that each has a name and a value";

/// A message to be published. The stream drops it when it had one of the same id within its
/// duplicate window.
struct Outgoing {
  std::string subject, body;
  Headers headers{};
  std::string id;
};

enum class Stored { now, before };

/// Messages of a durable consumer: each is delivered again until it is acknowledged. One thread
/// uses it.
class Source {
 public:
  virtual ~Source() = default;
  /// What is there, `most` at most; waits for the first one. Empty: none has come, or the
  /// connection is lost. Throws Error(resource) when it is lost for longer than the patience.
  virtual std::vector<Message> fetch(std::size_t most, std::chrono::milliseconds wait) = 0;
  /// The message is not delivered again. Lost acknowledgments are no error: it is then.
  virtual void acknowledge(const Message& message) = 0;
  /// When this object was made, all messages up to this number had been acknowledged.
  virtual std::uint64_t acknowledged_before() const = 0;
};

/// One thread uses it; interrupt() is for any.
class Sink {
 public:
  virtual ~Sink() = default;
  /// Returns when the stream has stored all, and what became of each. Messages without an answer
  /// of the stream are sent again. Throws Error(resource) when one is not stored within the
  /// patience, or after interrupt().
  virtual std::vector<Stored> publish(std::span<const Outgoing> messages) = 0;
  /// Ends a publish() that waits, and those that follow.
  virtual void interrupt() = 0;
  /// Of body and headers: what the server and the stream take.
  virtual std::size_t most_bytes() const = 0;
};

/// The numbers of the messages that a stream holds: from `first` to `end` - 1, if none is removed
/// between them. Equal without messages.
struct Extent {
  std::uint64_t first = 1, end = 1;
};

/// Reads messages by their numbers, and leaves them in the stream.
class Reader {
 public:
  virtual ~Reader() = default;
  /// Any thread. A stream that is deleted and made again has another. Empty: not known.
  virtual std::string identity() = 0;
  /// Any thread. While the connection is lost, the last one that is known. Throws Error(resource)
  /// when it is lost for longer than the patience.
  virtual Extent extent() = 0;
  /// Those of the messages [begin, begin + count) that the stream holds and that have the subject,
  /// ascending. Numbers beyond the extent are not waited for. Waits for a lost connection, and
  /// throws as extent(), and after interrupt(). One thread.
  virtual std::vector<Message> read(std::uint64_t begin, std::size_t count) = 0;
  /// Any thread. Ends a read() that waits, and those that follow.
  virtual void interrupt() = 0;
};

struct SourceOptions {
  std::string subject;
  std::string consumer;  ///< name of the durable consumer, which is made if there is none
  std::chrono::milliseconds acknowledge_within{30'000};  ///< else the message is delivered again
  std::size_t most_held = 64;                            ///< messages that wait to be acknowledged
};

struct BrokerOptions {
  std::string name;                            ///< of the program
  std::chrono::milliseconds patience{30'000};  ///< for a lost connection
  LogSink log = {};                            ///< told when it is lost, and when it is back
  /// A server that is silent for three of them has lost the connection.
  std::chrono::milliseconds ping_interval{5'000};
  std::string inbox_prefix{};  ///< subjects of answers to this program; empty: _INBOX
  bool sends_at_once = false;  ///< else the client library waits for 1 ms for more
  int buffer_bytes = 0;        ///< what the client library reads and writes at once; 0: its default
};

class Broker {
 public:
  using IsWanted = std::function<bool(std::string_view id)>;

  virtual ~Broker() = default;
  /// Throws Error(argument) when no stream has the subject; Error(resource) on other refusals.
  virtual std::unique_ptr<Source> source(const SourceOptions& options) = 0;
  /// Of the stream that has the subject. Throws as source().
  virtual std::unique_ptr<Reader> reader(const std::string& subject) = 0;
  /// Throws Error(argument) when no stream takes the subject.
  virtual std::unique_ptr<Sink> sink(const std::string& subject) = 0;
  /// The wanted ids (Nats-Msg-Id) of messages of the stream of this subject. Begins with the last
  /// message, and ends before `others` messages in a row without a wanted id, or after 10,000 ids.
  virtual std::set<std::string> latest_ids(const std::string& subject, std::size_t others,
                                           const IsWanted& is_wanted) = 0;
  /// In which the stream of this subject drops messages of the same id.
  virtual std::chrono::milliseconds duplicate_window(const std::string& subject) = 0;
};

/// Throws Error(resource) when the server cannot be reached or has no streams, and when this
/// program was built without the client library.
std::unique_ptr<Broker> connect(const Address& address, const BrokerOptions& options);

}  // namespace fast::stream
