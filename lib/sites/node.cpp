#include "sites/node.hpp"

#include <fast/core/error.hpp>

#include <algorithm>
#include <chrono>
#include <random>
#include <span>
#include <utility>

#include "core/message.hpp"
#include "core/timeline_clock.hpp"

namespace fast::sites {
namespace {

constexpr Seconds between_beats{0.2}, between_asks{1};
/// A site that has said nothing for so long may have died. A loaded site is late by less.
constexpr Seconds overdue{0.35};
/// A state that nobody has asked for so long is not held any more.
constexpr Seconds state_lives{30};
constexpr std::size_t held_messages = 2, held_while_read = 2, remembered_refusals = 8;
/// For all readers that are no sites: 4 MB a second.
constexpr double guest_chunks = 64;
/// Somebody who has got a part of a publication reads on within this time, or not at all.
constexpr Seconds reading_lasts{2};
/// A newer state does not take the place of one that is being read, for so long at most.
constexpr Seconds state_stays{30};

std::int64_t timeline_us() {
  return std::chrono::duration_cast<std::chrono::microseconds>(
             TimelineClock::of_process().at(Clock::now()))
      .count();
}

/// Later than all that is known. Where nobody knows of another process with this name, that which
/// began later, as far as clocks agree.
std::uint64_t incarnation_after(std::uint64_t known) {
  constexpr unsigned time_bits = 44, random_bits = 10;  // milliseconds of 500 years
  static_assert(time_bits + random_bits == first_generation_bit);
  const auto since_1970 = std::chrono::duration_cast<std::chrono::milliseconds>(
      std::chrono::system_clock::now().time_since_epoch());
  const auto time = static_cast<std::uint64_t>(since_1970.count()) & ((1ULL << time_bits) - 1);
  const std::uint64_t drawn = std::random_device{}() & ((1ULL << random_bits) - 1);
  constexpr std::uint64_t most = (std::uint64_t{1} << (64 - time_bits - random_bits)) - 1;
  const std::uint64_t before = known >> (time_bits + random_bits);
  const std::uint64_t generation = std::min(most, before + (known > 0 ? 1 : 0));
  const std::uint64_t begun = generation << (time_bits + random_bits) | time << random_bits | drawn;
  return std::max(begun, known + 1);
}

}  // namespace

Node::Node(std::unique_ptr<Bus> bus, NodeOptions options)
    : bus_(std::move(bus)),
      options_(std::move(options)),
      began_us_(timeline_us()),
      table_(options_.site, options_.silence) {
  own_.run = bus_->run();
  own_.site = options_.site;
  own_.about = options_.about;
  try {
    listen();
    beat_.emplace([this](Seconds) { return tick(); });
  } catch (...) {
    bus_->end();
    throw;
  }
}

void Node::listen() {
  const auto status = [this](std::string_view on, std::string_view text) { hear_status(on, text); };
  bus_->listen(own_.run + ".beat.*", status);
  bus_->listen(own_.run + ".new.*", status);
  bus_->listen(own_.run + ".data.*." + own_.site,
               [this](std::string_view on, std::string_view text) { hear_chunk(on, text); });
  if (options_.looks_on) return;
  const auto request = [this](std::string_view on, std::string_view text) {
    hear_request(on, text);
  };
  bus_->listen(subject("get", own_.site) + ".*", request);
  bus_->listen(subject("look", own_.site), request);
  bus_->listen(subject("ask", own_.site),
               [this](std::string_view, std::string_view text) { hear_wish(text); });
}

Node::~Node() {
  beat_.reset();
  bus_->end();
}

std::string Node::subject(std::string_view verb, const std::string& site) const {
  return fmt::format("{}.{}.{}", own_.run, verb, site);
}

void Node::send(const Outgoing& out) {
  for (const Outgoing::Letter& letter : out.letters) bus_->send(letter.subject, letter.text);
  for (const std::string& site : out.probed)
    bus_->probe(subject("get", site) + "." + own_.site, subject("data", site) + "." + own_.site);
  for (const std::string& warning : out.warnings)
    if (options_.log) options_.log(LogLevel::warning, warning);
}

// What this site says.

Status Node::own_status() const {
  Status status = own_;
  for (const Held& held : held_) status.newest.push_back(held.what);
  for (const auto& [site, incarnation] : table_.known()) {
    if (site == own_.site) continue;
    auto& names = table_.latest(site) != nullptr ? status.known : status.former;
    names.emplace_back(site, incarnation);
  }
  return status;
}

void Node::tell(Outgoing& out, std::string_view verb) const {
  out.letters.push_back({subject(verb, own_.site), encode(own_status())});
}

void Node::appear() {
  const std::lock_guard lock(mutex_);
  own_.incarnation = incarnation_after(table_.known(own_.site));
  appeared_ = true;
  said_ = {};
}

std::uint64_t Node::incarnation() const {
  const std::lock_guard lock(mutex_);
  return own_.incarnation;
}

void Node::begin(std::int64_t next, std::int64_t round) {
  Outgoing out;
  {
    const std::lock_guard lock(mutex_);
    own_.begun = true;
    own_.first = own_.next = next;
    std::erase_if(held_, [](const Held& held) {  // the weights may be others now
      return held.what.content == Content::state;
    });
    own_.round = round;
    tell(out, "new");
  }
  send(out);
}

void Node::set_progress(std::int64_t next, std::int64_t round) {
  Outgoing out;
  {
    const std::lock_guard lock(mutex_);
    const bool is_news = next != own_.next;
    own_.next = next;
    own_.round = round;
    if (is_news) tell(out, "new");
  }
  send(out);
}

void Node::publish(Publication what, std::shared_ptr<const AlignedBuffer> bytes) {
  const auto hashes = std::make_shared<const std::vector<std::string>>(
      chunk_hashes({bytes->data(), bytes->size_bytes()}));
  if (what.sha256.empty()) what.sha256 = hash_of_chunks(*hashes);
  Outgoing out;
  {
    const std::lock_guard lock(mutex_);
    const Content content = what.content;
    const auto now = Clock::now();
    held_.push_back({std::move(what), std::move(bytes), hashes, now});
    drop_replaced(content, now);
    if (content == Content::state) state_asked_ = false;
    tell(out, "new");
  }
  send(out);
}

/// A message that somebody reads stays for a while after newer ones: else a slow reader begins each
/// message and gets none whole. At staleness 0, sites wait for their readers.
void Node::drop_replaced(Content content, Clock::time_point now) {
  const auto is_such = [&](const Held& held) { return held.what.content == content; };
  const auto is_read = [&](const Held& held) {
    return !options_.exact && content == Content::message && is_being_read(held, now);
  };
  const auto count = static_cast<std::size_t>(std::ranges::count_if(held_, is_such));
  std::size_t older = count - std::min(count, content == Content::state ? 1 : held_messages);
  std::erase_if(held_, [&](const Held& held) {
    if (!is_such(held) || older == 0) return false;
    const bool are_too_many = older-- > held_while_read;
    return are_too_many || !is_read(held);
  });
}

bool Node::is_being_read(const Held& held, Clock::time_point now) const {
  return now - held.given < reading_lasts;
}

bool Node::is_asked_for_state() const {
  const std::lock_guard lock(mutex_);
  const auto now = Clock::now();
  return state_asked_ && std::ranges::none_of(held_, [&](const Held& held) {
           return held.what.content == Content::state && is_being_read(held, now) &&
                  now - held.published < state_stays;
         });
}

void Node::leave() {
  Outgoing out;
  {
    const std::lock_guard lock(mutex_);
    own_.leaving = true;
    if (appeared_) {  // it may be the last that others hear: twice, as one may be lost
      tell(out, "beat");
      tell(out, "new");
    }
  }
  send(out);
}

void Node::require_usable() const {
  bus_->require_usable();
  const std::lock_guard lock(mutex_);
  require(
      !replaced_, ErrorKind::argument,
      "site {}: another process with this name takes part in the run \"{}\" now; this one ends. "
      "Give each site a name of its own",
      own_.site, own_.run);
}

bool Node::takes_whole_request() {
  const std::lock_guard lock(mutex_);
  return std::exchange(whole_asked_, false);
}

void Node::hear_wish(std::string_view text) {
  const auto wish = decode_wish(text);
  if (!wish) return;
  const std::lock_guard lock(mutex_);
  const bool is_there =
      *wish == Content::state && std::ranges::any_of(held_, [&](const Held& held) {
        return held.what.content == Content::state && held.what.number == own_.next;
      });
  if (is_there) return;  // others may be reading it
  (*wish == Content::state ? state_asked_ : whole_asked_) = true;
  changed_.notify_all();
}

Node::Held* Node::find_held(Content content, std::int64_t number) {
  const auto found = std::ranges::find_if(held_, [&](const Held& one) {
    return one.what.content == content && one.what.number == number;
  });
  return found == held_.end() ? nullptr : &*found;
}

/// A site asks again for chunks that have not come, for all of them each 8 s at most. See Fetch.
Node::Limit Node::limit_of_site(std::size_t chunks) {
  const auto all = static_cast<double>(chunks + most_asked);
  return {4 * all, all / 4};
}

std::size_t Node::Allowance::left(const Limit& limit, Clock::time_point now) {
  used = std::max(0.0, used - limit.per_second * Seconds(now - since).count());
  since = now;
  return static_cast<std::size_t>(std::max(0.0, limit.at_once - used));
}

void Node::hear_request(std::string_view on, std::string_view text) {
  const std::int64_t heard_us = timeline_us();
  const auto request = decode_request(text);
  if (!request) return;
  // The server lets a site ask in its own name only, and those that are no sites look.
  const bool is_guest = on == subject("look", own_.site);
  if (!is_guest && on != subject("get", own_.site) + "." + request->reader) return;
  const auto portion = portion_for(*request, is_guest);
  if (!portion) return;
  const std::vector<std::size_t> sent = give(*request, *portion, heard_us);
  if (!sent.empty()) note_given(*request, is_guest, sent);
}

/// None: it is for another process, or nothing is answered. It may be told of what is not held.
std::optional<Node::Portion> Node::portion_for(const ChunkRequest& request, bool is_guest) {
  const std::lock_guard lock(mutex_);
  const auto now = Clock::now();
  // Another process with this name may hear it, too.
  if (!appeared_ || replaced_ || request.incarnation != own_.incarnation) return std::nullopt;
  if (is_guest && table_.living(request.reader, now) != nullptr) return std::nullopt;
  Held* const held = find_held(request.content, request.number);
  if (held == nullptr) return Portion{};
  const std::size_t chunks = held->hashes->size(), first = std::min(request.first, chunks);
  const std::size_t asked = std::min({request.count, most_asked, chunks - first});
  const Limit limit = is_guest ? Limit{guest_chunks, guest_chunks} : limit_of_site(chunks);
  const std::size_t allowed = allowance(*held, request, is_guest).left(limit, now);
  const std::size_t count = std::min(asked, allowed);
  if (count > 0) held->given = now;
  return Portion{held->bytes, held->hashes, first, count};
}

Node::Allowance& Node::allowance(Held& held, const ChunkRequest& request, bool is_guest) {
  return is_guest ? guests_ : held.readers[request.reader];
}

/// Returns the sizes of the chunks that were sent.
std::vector<std::size_t> Node::give(const ChunkRequest& request, const Portion& portion,
                                    std::int64_t heard_us) {
  const std::string to = subject("data", own_.site) + "." + request.reader;
  Chunk chunk{.site = own_.site,
              .incarnation = request.incarnation,
              .content = request.content,
              .number = request.number,
              .gone = portion.bytes == nullptr,
              .sha256 = {},
              .bytes = {},
              .asked_us = request.sent_us,
              .heard_us = heard_us,
              .sent_us = heard_us};
  std::vector<std::size_t> sent;
  if (chunk.gone) {
    bus_->send(to, encode(chunk));
    return sent;
  }
  const std::span<const std::byte> all(portion.bytes->data(), portion.bytes->size_bytes());
  for (std::size_t k = 0; k < portion.count; ++k) {
    chunk.index = portion.first + k;
    const auto rest = all.subspan(chunk.index * chunk_bytes);
    chunk.bytes = rest.first(std::min(chunk_bytes, rest.size()));
    chunk.sha256 = (*portion.hashes)[chunk.index];
    chunk.sent_us = timeline_us();
    if (!bus_->send(to, encode(chunk))) break;
    sent.push_back(chunk.bytes.size());
  }
  return sent;
}

void Node::note_given(const ChunkRequest& request, bool is_guest,
                      const std::vector<std::size_t>& sent) {
  const std::lock_guard lock(mutex_);
  for (const std::size_t bytes : sent) bytes_sent_ += static_cast<double>(bytes);
  const auto chunks = static_cast<double>(sent.size());
  if (Held* const held = find_held(request.content, request.number)) {
    held->given = Clock::now();
    allowance(*held, request, is_guest).used += chunks;
  } else if (is_guest) {
    guests_.used += chunks;
  }
}

// What the others say.

void Node::hear_status(std::string_view on, std::string_view text) {
  const auto status = decode_status(text);
  if (!status) return note_format(on, text);
  if (status->run != own_.run || !is_plausible(*status)) return;
  // The server lets a site publish under its own name only.
  if (on != subject("beat", status->site) && on != subject("new", status->site)) return;
  Outgoing out;
  {
    const std::lock_guard lock(mutex_);
    const auto now = Clock::now();
    if (status->site == own_.site && status->incarnation == own_.incarnation) return;
    if (!table_.hear(*status, now)) return;
    if (appeared_ && status->site == own_.site && status->incarnation > own_.incarnation)
      replaced_ = true;
    if (reads()) read_on(out, now);
    changed_.notify_all();
  }
  send(out);
}

/// A site of another version. It is told of once.
void Node::note_format(std::string_view on, std::string_view text) {
  constexpr std::size_t most_told = 100;
  const std::string begin = subject("beat", "");
  if (!on.starts_with(begin)) return;
  const auto format = other_format(text);
  if (!format) return;
  const std::string site(on.substr(begin.size()));
  {
    const std::lock_guard lock(mutex_);
    if (other_formats_.size() >= most_told || !other_formats_.insert(site).second) return;
  }
  Outgoing out;
  out.warnings.push_back(
      fmt::format("{}: site {} speaks format {}, and this one {}: they do not hear each other; "
                  "update the older",
                  own_.site, printable(site), *format, wire_format));
  send(out);
}

/// A site that goes on for a lost rank counts the latest exchange as not made.
bool Node::is_plausible(const Status& status) const {
  if (options_.every == 0 || status.about != own_.about) return true;
  const std::int64_t made = status.round / options_.every;
  return status.first <= status.next && (status.next == made || status.next + 1 == made);
}

bool Node::tick() {
  try {
    Outgoing out;
    {
      const std::lock_guard lock(mutex_);
      const auto now = Clock::now();
      forget_old(now);
      if (appeared_ && !replaced_ && now - said_ >= between_beats) {
        tell(out, "beat");
        said_ = now;
      }
      ask_for_states(out, now);
      if (appeared_)
        for (const Status* site : table_.living(now))
          if (is_overdue(site->site, now)) out.probed.push_back(site->site);
      if (reads()) read_on(out, now);
      changed_.notify_all();  // somebody may be silent for too long now
    }
    send(out);
  } catch (const std::exception&) {  // no memory; the next beat comes soon
  }
  return false;
}

bool Node::is_overdue(const std::string& site, Clock::time_point now) const {
  return table_.silent_s(site, now).value_or(0) > overdue.count();
}

void Node::ask_for_states(Outgoing& out, Clock::time_point now) {
  for (auto& [site, mailbox] : mailboxes_) {
    const bool waits = awaits_state(mailbox) && !mailbox.fetch;
    if (!waits || now - mailbox.asked < between_asks) continue;
    mailbox.asked = now;
    out.letters.push_back({subject("ask", site), encode(Content::state)});
  }
}

/// Frees memory that nobody needs any more.
void Node::forget_old(Clock::time_point now) {
  table_.forget(now);
  std::erase_if(held_, [&](const Held& held) {
    const auto last = std::max(held.given, held.published);
    return held.what.content == Content::state && now - last > state_lives;
  });
  drop_replaced(Content::message, now);
  std::erase_if(mailboxes_, [&](const auto& entry) {
    const auto& [site, mailbox] = entry;
    return table_.living(site, now) == nullptr && !followed_.contains(site) && !mailbox.wants_state;
  });
}

bool Node::wait(const std::function<bool()>& is_over, const Deadline& deadline) {
  std::unique_lock lock(mutex_);
  while (!is_over()) {
    require_usable();
    if (deadline.expired()) return false;
    changed_.wait_for(lock, std::chrono::milliseconds(50));
    lock.unlock();
    check_wait();
    lock.lock();
  }
  return true;
}

std::vector<Status> Node::living() const {
  const std::lock_guard lock(mutex_);
  std::vector<Status> found;
  for (const Status* status : table_.living(Clock::now())) found.push_back(*status);
  return found;
}

std::vector<Status> Node::alike() const {
  std::vector<Status> sites = living();
  std::erase_if(sites, [this](const Status& site) { return site.about != options_.about; });
  return sites;
}

std::optional<Status> Node::living(const std::string& site) const {
  const std::lock_guard lock(mutex_);
  const Status* status = table_.living(site, Clock::now());
  return status == nullptr ? std::nullopt : std::optional(*status);
}

std::optional<double> Node::silent_s(const std::string& site) const {
  const std::lock_guard lock(mutex_);
  return table_.silent_s(site, Clock::now());
}

void Node::look_at(OtherSite& site) const {
  const std::lock_guard lock(mutex_);
  site.seen_s = table_.silent_s(site.name, Clock::now()).value_or(0);
  if (const Status* status = table_.latest(site.name)) site.round = status->round;
  const auto mailbox = mailboxes_.find(site.name);
  if (mailbox == mailboxes_.end()) return;
  site.delay_s = mailbox->second.delay_s;
  site.clock_ahead_s = mailbox->second.clock.seconds();
}

// What this site reads.

void Node::follow(std::set<std::string> sites, std::int64_t least) {
  Outgoing out;
  {
    const std::lock_guard lock(mutex_);
    followed_ = std::move(sites);
    least_ = least;
    for (auto& [site, mailbox] : mailboxes_) {
      // At staleness 0, a later exchange may need what a fast neighbor of an earlier one sent.
      if (!options_.exact && !followed_.contains(site)) mailbox.messages.clear();
      std::erase_if(mailbox.messages,
                    [&](const auto& message) { return message->what.number < least; });
    }
    read_on(out, Clock::now());
  }
  send(out);
}

bool Node::has(const Mailbox& mailbox, const Publication& what) const {
  return std::ranges::any_of(
      mailbox.messages, [&](const auto& message) { return message->what.number == what.number; });
}

bool Node::fits_state(std::uint64_t bytes) const {
  if (!options_.looks_on) return bytes == options_.state_bytes;
  return bytes > 0 && bytes <= options_.state_bytes;
}

/// While a site waits for a state, messages of the other site would hold it up.
bool Node::awaits_state(const Mailbox& mailbox) { return mailbox.wants_state && !mailbox.state; }

/// What was looked at makes this useless: it is the same, or an older message where the newest
/// counts.
bool Node::makes_useless(const Publication& seen, const Publication& what) const {
  if (seen == what) return true;
  return !options_.exact && seen.content == Content::message && what.content == Content::message &&
         what.number <= seen.number;
}

/// What is needed before message `number` fills the mailbox: its site is far ahead.
bool Node::are_enough(const Mailbox& mailbox, std::int64_t number) const {
  return std::ranges::count_if(mailbox.messages, [&](const auto& message) {
           return message->what.number >= least_ && message->what.number < number;
         }) >= static_cast<std::ptrdiff_t>(held_messages);
}

/// The lowest number that is not there, or the newest message. Of states, one that is not older
/// than the latest exchange.
std::optional<Publication> Node::wanted(const Mailbox& mailbox, const Status& from) const {
  std::optional<Publication> best;
  for (const Publication& what : from.newest) {
    const bool is_refused = std::ranges::any_of(mailbox.refused, [&](const auto& refused) {
      return refused.first == from.incarnation && makes_useless(refused.second, what);
    });
    if (is_refused) continue;
    if (what.content == Content::state) {
      const bool is_recent = what.number + 1 >= from.next;
      if (awaits_state(mailbox) && is_recent && fits_state(what.bytes)) return what;
      continue;
    }
    if (awaits_state(mailbox) || !followed_.contains(from.site) || what.number < least_) continue;
    if (what.bytes != (what.base < 0 ? options_.message_bytes : options_.difference_bytes))
      continue;
    if (options_.exact && (has(mailbox, what) || are_enough(mailbox, what.number))) continue;
    const bool is_better =
        !best || (options_.exact ? what.number < best->number : what.number > best->number);
    if (is_better) best = what;
  }
  if (best && has(mailbox, *best)) return std::nullopt;
  return best;
}

/// Its site is there, and nothing has taken the place of what it reads.
bool Node::is_wanted(const std::string& site, const Fetch& fetch, Clock::time_point now) const {
  const Status* from = table_.living(site, now);
  if (from == nullptr || from->incarnation != fetch.incarnation()) return false;
  const Mailbox& mailbox = mailboxes_.at(site);
  if (fetch.what().content == Content::state) return mailbox.wants_state;
  return !awaits_state(mailbox) && followed_.contains(site) && fetch.what().number >= least_;
}

void Node::read_on(Outgoing& out, Clock::time_point now) {
  std::size_t reading = 0, under_way = 0;
  for (auto& [site, mailbox] : mailboxes_) {
    if (mailbox.fetch && !is_wanted(site, *mailbox.fetch, now)) mailbox.fetch.reset();
  }
  for (const Status* from : table_.living(now)) begin_fetch(mailboxes_[from->site], *from, now);
  for (const auto& [site, mailbox] : mailboxes_) {
    if (!mailbox.fetch) continue;
    ++reading;
    under_way += mailbox.fetch->under_way();
  }
  if (reading == 0) return;
  if (under_way == 0) window_.begin(now);
  const std::size_t most = std::max<std::size_t>(1, window_.chunks() / reading);
  for (auto& [site, mailbox] : mailboxes_) {
    if (mailbox.fetch) ask(out, site, *mailbox.fetch, most, now);
  }
}

/// What a process has published before another one took its place counts no more, but for exchanges
/// that the later one does not make.
void Node::drop_former(Mailbox& mailbox, const Status& from) const {
  if (!from.begun) return;
  std::erase_if(mailbox.messages, [&](const auto& message) {
    return message->incarnation != from.incarnation &&
           (!options_.exact || message->what.number >= from.first);
  });
}

void Node::begin_fetch(Mailbox& mailbox, const Status& from, Clock::time_point now) {
  drop_former(mailbox, from);
  if (mailbox.fetch || (from.about != own_.about && !options_.looks_on)) return;
  const auto what = wanted(mailbox, from);
  if (!what) return;
  mailbox.fetch.emplace(from.incarnation, *what, now);
  if (options_.looks_on) mailbox.fetch->ask_evenly();  // what a site gives comes by the second
}

void Node::ask(Outgoing& out, const std::string& site, Fetch& fetch, std::size_t most,
               Clock::time_point now) {
  while (const auto run = fetch.next(most, now)) {
    const ChunkRequest request{own_.site,           fetch.incarnation(), fetch.what().content,
                               fetch.what().number, run->first,          run->count,
                               timeline_us()};
    const std::string to =
        options_.looks_on ? subject("look", site) : subject("get", site) + "." + own_.site;
    out.letters.push_back({to, encode(request)});
  }
}

/// The answer to a probe: no process listens in that site's name. Its server knows as soon as the
/// connection has ended. It may have spoken since.
void Node::hear_nobody(std::string_view on) {
  on.remove_prefix(own_.run.size() + std::string_view(".data.").size());
  on.remove_suffix(own_.site.size() + 1);
  const std::string site(on);
  const std::lock_guard lock(mutex_);
  if (!is_overdue(site, Clock::now())) return;
  table_.lose(site);
  changed_.notify_all();
}

void Node::hear_chunk(std::string_view on, std::string_view text) {
  if (text.empty()) return hear_nobody(on);
  const auto chunk = decode_chunk(text);
  if (!chunk || on != subject("data", chunk->site) + "." + own_.site) return;
  Outgoing out;
  std::optional<Fetch> whole;
  {
    const std::lock_guard lock(mutex_);
    const auto now = Clock::now();
    const auto found = mailboxes_.find(chunk->site);
    if (found == mailboxes_.end()) return;
    Mailbox& mailbox = found->second;
    if (!mailbox.fetch || !mailbox.fetch->is_of(*chunk)) return;
    mailbox.clock.add(*chunk, timeline_us(), began_us_);
    if (!chunk->gone && mailbox.fetch->take(*chunk, now)) {
      bytes_received_ += static_cast<double>(chunk->bytes.size());
      mailbox.delay_s = mailbox.fetch->delay().value_or(Seconds(mailbox.delay_s)).count();
      if (chunk->content == Content::state) mailbox.given = now;
      window_.arrived(chunk->bytes.size(), now);
      if (mailbox.fetch->is_whole()) whole = std::move(mailbox.fetch);
    }
    if (chunk->gone) table_.note_gone(chunk->site, mailbox.fetch->what());
    if (whole) {
      mailbox.refused.emplace_back(whole->incarnation(), whole->what());
      if (mailbox.refused.size() > remembered_refusals)
        mailbox.refused.erase(mailbox.refused.begin());
    }
    if (chunk->gone || whole) mailbox.fetch.reset();
    if (!whole) read_on(out, now);
    if (chunk->gone) changed_.notify_all();
  }
  send(out);
  if (whole) keep(chunk->site, *whole);
}

/// If there are too many: at staleness 0, what an exchange needs first stays; above, what is
/// newest. What comes too late takes no place.
void Node::put(Mailbox& mailbox, std::shared_ptr<const Received> message) const {
  if (options_.exact && message->what.number < least_) return;
  auto& messages = mailbox.messages;
  messages.push_back(std::move(message));
  if (messages.size() <= held_messages) return;
  const auto by_number = [](const auto& one) { return one->what.number; };
  messages.erase(options_.exact ? std::ranges::max_element(messages, {}, by_number)
                                : std::ranges::min_element(messages, {}, by_number));
}

void Node::keep(const std::string& site, const Fetch& fetch) {
  Outgoing out;
  {
    const std::lock_guard lock(mutex_);
    Mailbox& mailbox = mailboxes_[site];
    if (!fetch.is_as_announced()) {
      out.warnings.push_back(fmt::format(
          "site {}: publication {} of site {} is not what was announced; it is left out", own_.site,
          fetch.what().number, site));
    } else {
      auto received = std::make_shared<Received>(
          Received{site, fetch.incarnation(), fetch.what(), fetch.bytes()});
      // Whoever needs each message, or asks for a state again, may read it again. Above staleness
      // 0, a newer message will come.
      if (options_.exact || fetch.what().content == Content::state)
        std::erase(mailbox.refused, std::pair(fetch.incarnation(), fetch.what()));
      if (fetch.what().content != Content::state)
        put(mailbox, std::move(received));
      else if (mailbox.wants_state)
        mailbox.state = std::move(received);
    }
    read_on(out, Clock::now());
    changed_.notify_all();
  }
  send(out);
}

std::shared_ptr<const Received> Node::message(const std::string& site, std::int64_t number,
                                              bool newest) const {
  const std::lock_guard lock(mutex_);
  const auto found = mailboxes_.find(site);
  std::shared_ptr<const Received> best;
  if (found == mailboxes_.end()) return best;
  for (const auto& message : found->second.messages) {
    const std::int64_t its = message->what.number;
    if (newest ? its >= number && (!best || its > best->what.number) : its == number)
      best = message;
  }
  return best;
}

void Node::ask_for_state(const std::string& site) {
  const std::lock_guard lock(mutex_);
  Mailbox& mailbox = mailboxes_[site];
  mailbox.wants_state = true;
  mailbox.given = Clock::now();
  mailbox.state.reset();
}

std::shared_ptr<const Received> Node::state(const std::string& site) const {
  const std::lock_guard lock(mutex_);
  const auto found = mailboxes_.find(site);
  return found == mailboxes_.end() ? nullptr : found->second.state;
}

double Node::state_silent_s(const std::string& site) const {
  const std::lock_guard lock(mutex_);
  const auto found = mailboxes_.find(site);
  return found == mailboxes_.end() ? 0 : Seconds(Clock::now() - found->second.given).count();
}

void Node::ask_for_whole(const std::string& site) {
  bus_->send(subject("ask", site), encode(Content::message));
}

void Node::forget_state(const std::string& site) {
  const std::lock_guard lock(mutex_);
  mailboxes_[site].wants_state = false;
  mailboxes_[site].state.reset();
}

double Node::bytes_sent() const {
  const std::lock_guard lock(mutex_);
  return bytes_sent_;
}
double Node::bytes_received() const {
  const std::lock_guard lock(mutex_);
  return bytes_received_;
}

}  // namespace fast::sites
