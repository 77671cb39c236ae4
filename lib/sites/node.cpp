#include "sites/node.hpp"

#include <fast/core/error.hpp>

#include <algorithm>
#include <chrono>
#include <utility>

#include "core/message.hpp"

namespace fast::sites {
namespace {

constexpr Seconds between_beats{0.25}, between_asks{1};
constexpr std::size_t held_messages = 2;

/// Later than all that is known. Where nobody knows of another process with this name, that which
/// began later, as far as clocks agree.
std::uint64_t incarnation_after(std::uint64_t known) {
  constexpr unsigned bits = 44;  // of milliseconds: 500 years
  const auto since_1970 = std::chrono::duration_cast<std::chrono::milliseconds>(
      std::chrono::system_clock::now().time_since_epoch());
  const std::uint64_t generation = (known >> bits) + (known > 0 ? 1 : 0);
  return generation << bits |
         (static_cast<std::uint64_t>(since_1970.count()) & ((1ULL << bits) - 1));
}

}  // namespace

Node::Node(std::unique_ptr<Bus> bus, NodeOptions options)
    : bus_(std::move(bus)), options_(std::move(options)), table_(options_.site, options_.silence) {
  own_.run = bus_->run();
  own_.site = options_.site;
  own_.about = options_.about;
  const auto status = [this](std::string_view text) { hear_status(text); };
  bus_->listen(own_.run + ".beat.*", status);
  bus_->listen(own_.run + ".new.*", status);
  bus_->listen(subject("get", own_.site), [this](std::string_view text) { hear_request(text); });
  bus_->listen(subject("ask", own_.site), [this](std::string_view) { hear_state_request(); });
  bus_->listen(own_.run + ".data.*." + own_.site,
               [this](std::string_view text) { hear_chunk(text); });
  beat_.emplace([this](Seconds elapsed) { return tick(elapsed); });
}

Node::~Node() {
  beat_.reset();
  bus_->end();
}

std::string Node::subject(std::string_view verb, const std::string& site) const {
  return fmt::format("{}.{}.{}", own_.run, verb, site);
}

void Node::send(const Letters& letters) {
  for (const Letter& letter : letters) bus_->send(letter.subject, letter.text);
}

void Node::report_once(const std::string& key, const std::string& text) {
  if (reported_.insert(key).second && options_.log) options_.log(LogLevel::warning, text);
}

// What this site says.

Status Node::own_status() const {
  Status status = own_;
  for (const Held& held : held_) status.newest.push_back(held.what);
  for (const auto& [site, incarnation] : table_.known())
    if (site != own_.site) status.known.emplace_back(site, incarnation);
  return status;
}

void Node::appear() {
  const std::lock_guard lock(mutex_);
  own_.incarnation = incarnation_after(table_.known(own_.site));
  appeared_ = true;
  said_ = {};
}

void Node::begin(std::int64_t next, std::int64_t round) {
  {
    const std::lock_guard lock(mutex_);
    own_.begun = true;
    own_.first = next;
    own_.next = -1;
  }
  set_progress(next, round);
}

void Node::set_progress(std::int64_t next, std::int64_t round) {
  Letters letters;
  {
    const std::lock_guard lock(mutex_);
    const bool is_news = next != own_.next;
    own_.next = next;
    own_.round = round;
    if (is_news) letters.push_back({subject("new", own_.site), encode(own_status())});
  }
  send(letters);
}

void Node::publish(Publication what, std::shared_ptr<const AlignedBuffer> bytes) {
  Letters letters;
  {
    const std::lock_guard lock(mutex_);
    const Content content = what.content;
    held_.push_back({std::move(what), std::move(bytes)});
    const auto is_such = [&](const Held& held) { return held.what.content == content; };
    const std::size_t most = content == Content::state ? 1 : held_messages;
    while (static_cast<std::size_t>(std::ranges::count_if(held_, is_such)) > most)
      held_.erase(std::ranges::find_if(held_, is_such));
    if (content == Content::state) state_asked_ = false;
    letters.push_back({subject("new", own_.site), encode(own_status())});
  }
  send(letters);
}

bool Node::is_asked_for_state() const {
  const std::lock_guard lock(mutex_);
  return state_asked_;
}

void Node::leave() {
  Letters letters;
  {
    const std::lock_guard lock(mutex_);
    own_.leaving = true;
    if (appeared_) letters.push_back({subject("beat", own_.site), encode(own_status())});
  }
  send(letters);
}

void Node::require_own_name() const {
  const std::lock_guard lock(mutex_);
  require(
      !replaced_, ErrorKind::argument,
      "site {}: another process with this name takes part in the run \"{}\" now; this one ends. "
      "Give each site a name of its own",
      own_.site, own_.run);
}

void Node::hear_state_request() {
  const std::lock_guard lock(mutex_);
  state_asked_ = true;
  changed_.notify_all();
}

void Node::hear_request(std::string_view text) {
  const auto request = decode_request(text);
  if (!request) return;
  Held held;
  std::uint64_t incarnation = 0;
  {
    const std::lock_guard lock(mutex_);
    const auto found = std::ranges::find_if(held_, [&](const Held& one) {
      return one.what.content == request->content && one.what.number == request->number;
    });
    if (found != held_.end() && request->incarnation == own_.incarnation) held = *found;
    incarnation = own_.incarnation;
  }
  const std::string to = subject("data", own_.site) + "." + request->reader;
  Chunk chunk{own_.site, incarnation, request->content, request->number, 0, false, {}, {}};
  if (held.bytes == nullptr) {
    chunk.incarnation = request->incarnation;
    chunk.gone = true;
    return bus_->send(to, encode(chunk));
  }
  const std::size_t end = std::min(request->first + request->count, held.what.chunks());
  double sent = 0;
  for (chunk.index = request->first; chunk.index < end; ++chunk.index) {
    chunk.bytes = {held.bytes->data() + chunk.index * chunk_bytes,
                   held.what.chunk_size(chunk.index)};
    chunk.sha256 = sha256_of(chunk.bytes);
    bus_->send(to, encode(chunk));
    sent += static_cast<double>(chunk.bytes.size());
  }
  const std::lock_guard lock(mutex_);
  bytes_sent_ += sent;
}

// What the others say.

void Node::hear_status(std::string_view text) {
  const auto status = decode_status(text);
  if (!status || status->run != own_.run) return;
  Letters letters;
  {
    const std::lock_guard lock(mutex_);
    const auto now = Clock::now();
    if (status->site == own_.site && status->incarnation == own_.incarnation) return;
    if (!table_.hear(*status, now)) return;
    if (appeared_ && status->site == own_.site && status->incarnation > own_.incarnation)
      replaced_ = true;
    if (appeared_) read_on(letters, now);
    changed_.notify_all();
  }
  send(letters);
}

bool Node::tick(Seconds) {
  Letters letters;
  {
    const std::lock_guard lock(mutex_);
    const auto now = Clock::now();
    if (appeared_ && !replaced_ && now - said_ >= between_beats) {
      letters.push_back({subject("beat", own_.site), encode(own_status())});
      said_ = now;
    }
    for (auto& [site, mailbox] : mailboxes_) {
      const bool waits = mailbox.wants_state && !mailbox.state && !mailbox.fetch;
      if (!waits || now - mailbox.asked < between_asks) continue;
      mailbox.asked = now;
      letters.push_back({subject("ask", site), "{}\n"});
    }
    if (appeared_) read_on(letters, now);
    changed_.notify_all();  // somebody may be silent for too long now
  }
  try {
    send(letters);
  } catch (const std::exception&) {  // no memory; the next beat comes soon
  }
  return false;
}

bool Node::wait(const std::function<bool()>& is_over, const Deadline& deadline) {
  std::unique_lock lock(mutex_);
  while (!is_over()) {
    require_own_name();
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

std::optional<Status> Node::living(const std::string& site) const {
  const std::lock_guard lock(mutex_);
  const Status* status = table_.living(site, Clock::now());
  return status == nullptr ? std::nullopt : std::optional(*status);
}

// What this site reads.

void Node::follow(std::set<std::string> sites, std::int64_t least) {
  Letters letters;
  {
    const std::lock_guard lock(mutex_);
    followed_ = std::move(sites);
    least_ = least;
    for (auto& [site, mailbox] : mailboxes_) {
      std::erase_if(mailbox.messages,
                    [&](const auto& message) { return message->what.number < least; });
    }
    read_on(letters, Clock::now());
  }
  send(letters);
}

bool Node::has(const Mailbox& mailbox, const Publication& what) const {
  return std::ranges::any_of(
      mailbox.messages, [&](const auto& message) { return message->what.number == what.number; });
}

/// The lowest number that is not there, or of the newest message.
std::optional<Publication> Node::wanted(const Mailbox& mailbox, const Status& from) const {
  std::optional<Publication> best;
  for (const Publication& what : from.newest) {
    if (what.content == Content::state) {
      if (mailbox.wants_state && !mailbox.state && what.bytes == options_.state_bytes) return what;
      continue;
    }
    if (!followed_.contains(from.site) || what.number < least_) continue;
    if (what.bytes != options_.message_bytes) continue;
    const bool better = !best || (options_.exact ? what.number < best->number && !has(mailbox, what)
                                                 : what.number > best->number);
    if (better && !(options_.exact && has(mailbox, what))) best = what;
  }
  if (best && has(mailbox, *best)) return std::nullopt;
  return best;
}

void Node::read_on(Letters& letters, Clock::time_point now) {
  std::size_t reading = 0, under_way = 0;
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
    if (mailbox.fetch) ask(letters, site, *mailbox.fetch, most, now);
  }
}

void Node::begin_fetch(Mailbox& mailbox, const Status& from, Clock::time_point now) {
  if (mailbox.fetch && mailbox.fetch->incarnation() != from.incarnation) mailbox.fetch.reset();
  if (mailbox.fetch || from.about != own_.about) return;
  if (const auto what = wanted(mailbox, from)) mailbox.fetch.emplace(from.incarnation, *what, now);
}

void Node::ask(Letters& letters, const std::string& site, Fetch& fetch, std::size_t most,
               Clock::time_point now) {
  while (const auto run = fetch.next(most, now)) {
    const ChunkRequest request{own_.site,           fetch.incarnation(), fetch.what().content,
                               fetch.what().number, run->first,          run->count};
    letters.push_back({subject("get", site), encode(request)});
  }
}

void Node::hear_chunk(std::string_view text) {
  const auto chunk = decode_chunk(text);
  if (!chunk) return;
  Letters letters;
  {
    const std::lock_guard lock(mutex_);
    const auto now = Clock::now();
    Mailbox& mailbox = mailboxes_[chunk->site];
    if (!mailbox.fetch || !mailbox.fetch->is_of(*chunk)) return;
    if (chunk->gone) {
      mailbox.fetch.reset();
    } else if (mailbox.fetch->take(*chunk, now)) {
      bytes_received_ += static_cast<double>(chunk->bytes.size());
      window_.arrived(chunk->bytes.size(), now);
      if (mailbox.fetch->is_whole()) keep(chunk->site, mailbox);
    }
    read_on(letters, now);
    changed_.notify_all();
  }
  send(letters);
}

void Node::keep(const std::string& site, Mailbox& mailbox) {
  const Fetch fetch = std::move(*mailbox.fetch);
  mailbox.fetch.reset();
  if (!fetch.is_as_announced()) {
    return report_once(
        site + " damaged",
        fmt::format("site {}: publication {} of site {} is not what was announced; it "
                    "is left out",
                    own_.site, fetch.what().number, printable(site)));
  }
  auto received =
      std::make_shared<Received>(Received{site, fetch.incarnation(), fetch.what(), fetch.bytes()});
  if (fetch.what().content == Content::state) {
    mailbox.state = std::move(received);
    return;
  }
  mailbox.messages.push_back(std::move(received));
  if (mailbox.messages.size() > held_messages) mailbox.messages.erase(mailbox.messages.begin());
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
  mailbox.state.reset();
}

std::shared_ptr<const Received> Node::state(const std::string& site) const {
  const std::lock_guard lock(mutex_);
  const auto found = mailboxes_.find(site);
  return found == mailboxes_.end() ? nullptr : found->second.state;
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
