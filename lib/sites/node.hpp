// One site among the others: says what it holds, hears what they say, and reads what they publish.
#pragma once

#include <fast/core/deadline.hpp>
#include <fast/core/memory.hpp>
#include <fast/core/observer.hpp>

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "membership/periodic_thread.hpp"
#include "sites/bus.hpp"
#include "sites/clock_ahead.hpp"
#include "sites/fetch.hpp"
#include "sites/site_table.hpp"

namespace fast::sites {

/// A publication of another site that has come whole.
struct Received {
  std::string site;
  std::uint64_t incarnation = 0;
  Publication what;
  std::shared_ptr<const AlignedBuffer> bytes;
};

struct NodeOptions {
  std::string site, about;
  Seconds silence{2};
  /// Rounds from one exchange to the next: what sites of the same model say must fit. 0: any fit.
  std::int64_t every = 0;
  /// Bytes of a whole message, of a difference, of a state: others are not read.
  std::uint64_t message_bytes = 0, difference_bytes = 0, state_bytes = 0;
  /// Each message of a neighbor is read; else only its newest one.
  bool exact = true;
  LogSink log{};
  /// It is no site: it does not appear, and reads states of any model, up to state_bytes.
  bool looks_on = false;
};

/// Any thread may call it.
class Node {
 public:
  Node(std::unique_ptr<Bus> bus, NodeOptions options);
  ~Node();

  // Of this site.

  /// From now on the others hear of this site. Its incarnation is later than all that it has heard
  /// of.
  void appear();
  std::uint64_t incarnation() const;
  /// It takes part from exchange `next` on, and so many rounds count as made.
  void begin(std::int64_t next, std::int64_t round);
  void set_progress(std::int64_t next, std::int64_t round);
  /// Holds the publication for the others, and sets its hash if it has none. Two messages and one
  /// state are held; at staleness above 0 also two older messages, while somebody reads them.
  void publish(Publication what, std::shared_ptr<const AlignedBuffer> bytes);
  /// A site asks for a state, and none of the next exchange is held.
  bool is_asked_for_state() const;
  /// A reader has asked for a whole message since the last call.
  bool takes_whole_request();
  void leave();
  /// Throws Error(argument) when another process has taken this site's name, and Error(resource)
  /// when the server will not take this one back.
  void require_usable() const;

  // Of the others.

  /// Waits until `is_over`, which is called with the lock held, again and again. False if the
  /// deadline has passed before.
  bool wait(const std::function<bool()>& is_over, const Deadline& deadline);

  // Inside of wait() or not: each takes the lock.
  std::vector<Status> living() const;
  /// Those of them with the model and the options of this site.
  std::vector<Status> alike() const;
  std::optional<Status> living(const std::string& site) const;
  /// Seconds since the site said something; none: never.
  std::optional<double> silent_s(const std::string& site) const;
  /// Sets what is heard of that site: seen_s, delay_s and round.
  void look_at(OtherSite& site) const;
  /// Reads messages of these sites as they publish them, with numbers of at least `least`.
  void follow(std::set<std::string> sites, std::int64_t least);
  /// The message with that number; with `newest`, the newest one of at least `number`. Null: it has
  /// not come.
  std::shared_ptr<const Received> message(const std::string& site, std::int64_t number,
                                          bool newest = false) const;
  /// From now on, until it is there.
  void ask_for_state(const std::string& site);
  std::shared_ptr<const Received> state(const std::string& site) const;
  /// Seconds since a part of it has come, or since ask_for_state().
  double state_silent_s(const std::string& site) const;
  /// Differences of that site refer to what this one has not read.
  void ask_for_whole(const std::string& site);
  /// The memory of that state is free again.
  void forget_state(const std::string& site);

  double bytes_sent() const;
  double bytes_received() const;

 private:
  /// Chunks that a reader may have at once, and those that time makes up for in a second.
  struct Limit {
    double at_once, per_second;
  };
  /// Chunks that a reader has had, less those that time has made up for.
  struct Allowance {
    double used = 0;
    Clock::time_point since{};
    /// Chunks that it may have now.
    std::size_t left(const Limit& limit, Clock::time_point now);
  };
  static Limit limit_of_site(std::size_t chunks);
  struct Held {
    Publication what;
    std::shared_ptr<const AlignedBuffer> bytes;
    std::shared_ptr<const std::vector<std::string>> hashes;  ///< of its chunks
    Clock::time_point published;
    Clock::time_point given{};                   ///< somebody was given a part of it
    std::map<std::string, Allowance> readers{};  ///< by the site that reads
  };
  /// What one request gets of a publication.
  struct Portion {
    std::shared_ptr<const AlignedBuffer> bytes;  ///< null: it is not held
    std::shared_ptr<const std::vector<std::string>> hashes;
    std::size_t first = 0, count = 0;  ///< chunks
  };
  /// Of one other site.
  struct Mailbox {
    std::optional<Fetch> fetch;
    std::vector<std::shared_ptr<const Received>> messages;
    std::shared_ptr<const Received> state;
    bool wants_state = false;
    Clock::time_point asked{};  ///< for a state
    Clock::time_point given{};  ///< a part of it, or it was first asked for
    double delay_s = 0;         ///< of the latest fetch that has brought something
    ClockAhead clock{};
    /// What is not to be read again: it is damaged or being looked at; or a newer one will come.
    std::vector<std::pair<std::uint64_t, Publication>> refused;
  };
  /// What is done when the lock is open again.
  struct Outgoing {
    struct Letter {
      std::string subject, text;
    };
    std::vector<Letter> letters;
    std::vector<std::string> probed;  ///< sites
    std::vector<std::string> warnings;
  };

  void listen();
  void hear_status(std::string_view on, std::string_view text);
  void hear_request(std::string_view on, std::string_view text);
  std::optional<Portion> portion_for(const ChunkRequest& request, bool is_guest);
  std::vector<std::size_t> give(const ChunkRequest& request, const Portion& portion,
                                std::int64_t heard_us);
  void note_given(const ChunkRequest& request, bool is_guest, const std::vector<std::size_t>& sent);
  void hear_chunk(std::string_view on, std::string_view text);
  void hear_nobody(std::string_view on);
  void hear_wish(std::string_view text);
  void note_format(std::string_view on, std::string_view text);
  bool tick();
  void keep(const std::string& site, const Fetch& fetch);
  // With the lock held.
  Status own_status() const;
  bool reads() const { return appeared_ || options_.looks_on; }
  bool fits_state(std::uint64_t bytes) const;
  bool is_plausible(const Status& status) const;
  void tell(Outgoing& out, std::string_view verb) const;
  std::optional<Publication> wanted(const Mailbox& mailbox, const Status& from) const;
  bool has(const Mailbox& mailbox, const Publication& what) const;
  bool is_wanted(const std::string& site, const Fetch& fetch, Clock::time_point now) const;
  static bool awaits_state(const Mailbox& mailbox);
  bool makes_useless(const Publication& seen, const Publication& what) const;
  bool are_enough(const Mailbox& mailbox, std::int64_t number) const;
  void drop_former(Mailbox& mailbox, const Status& from) const;
  void put(Mailbox& mailbox, std::shared_ptr<const Received> message) const;
  void read_on(Outgoing& out, Clock::time_point now);
  void begin_fetch(Mailbox& mailbox, const Status& from, Clock::time_point now);
  void ask(Outgoing& out, const std::string& site, Fetch& fetch, std::size_t most,
           Clock::time_point now);
  void ask_for_states(Outgoing& out, Clock::time_point now);
  bool is_overdue(const std::string& site, Clock::time_point now) const;
  bool is_being_read(const Held& held, Clock::time_point now) const;
  Held* find_held(Content content, std::int64_t number);
  Allowance& allowance(Held& held, const ChunkRequest& request, bool is_guest);
  void drop_replaced(Content content, Clock::time_point now);
  void forget_old(Clock::time_point now);
  // With the lock open.
  void send(const Outgoing& out);
  std::string subject(std::string_view verb, const std::string& site) const;

  std::unique_ptr<Bus> bus_;
  const NodeOptions options_;
  const std::int64_t began_us_;  ///< by this site's clock
  mutable std::recursive_mutex mutex_;
  std::condition_variable_any changed_;
  SiteTable table_;
  Status own_;
  bool appeared_ = false, replaced_ = false, state_asked_ = false, whole_asked_ = false;
  std::vector<Held> held_;
  std::set<std::string> followed_, other_formats_;  ///< sites
  std::int64_t least_ = 0;
  std::map<std::string, Mailbox> mailboxes_;
  FetchWindow window_;
  double bytes_sent_ = 0, bytes_received_ = 0;
  Clock::time_point said_{};
  Allowance guests_;  ///< of all readers that are no sites
  std::optional<membership::PeriodicThread> beat_;
};

}  // namespace fast::sites
