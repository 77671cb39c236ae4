#include "sites/site.hpp"

#include <fast/core/error.hpp>

#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <thread>
#include <utility>

#include "codec/block.hpp"
#include "core/message.hpp"

namespace fast::sites {
namespace {

std::string codec_of(const SiteOptions& options) {
  if (options.codec.kind == codec::Kind::sparse) return fmt::format("sparse={}", options.fraction);
  return codec::name(options.codec);
}

void check_codec(const SiteOptions& options) {
  if (options.codec.kind == codec::Kind::sparse) {
    require(options.fraction > 0 && options.fraction < 1, ErrorKind::argument,
            "site {}: codec {}; its part must be above 0 and below 1", options.name,
            codec_of(options));
    return;
  }
  require(!options.codec.stochastic, ErrorKind::argument,
          "site {}: codec {}; sites round to nearest: take {}", options.name, codec_of(options),
          codec::name({.kind = options.codec.kind}));
  require(!codec::record_of(options.codec.kind).random, ErrorKind::argument,
          "site {}: codec {}; sites round to nearest: take int8, int4 or int2", options.name,
          codec_of(options));
}

void check(const SiteOptions& options) {
  require(is_site_name(options.name), ErrorKind::argument,
          "site: \"{}\" is no name; 1 to 40 letters, digits, '-' and '_' are required",
          printable(options.name));
  require(options.every >= 1, ErrorKind::argument, "site {}: every {}; at least 1 is required",
          options.name, options.every);
  require(options.staleness >= 0, ErrorKind::argument,
          "site {}: staleness {}; it must be 0 or more", options.name, options.staleness);
  require(options.expect >= 1, ErrorKind::argument, "site {}: expect {}; at least 1 is required",
          options.name, options.expect);
  require(options.samples > 0 && options.samples <= most_samples, ErrorKind::argument,
          "site {}: samples {}; a number above 0 is required, and at most {:g}", options.name,
          options.samples, most_samples);
  require(options.silence.count() >= 1, ErrorKind::argument,
          "site {}: silence of {:g} s; at least 1 s is required, as sites speak every 0.2 s",
          options.name, options.silence.count());
  const std::string_view why = options.rule.traits().timing.why_synchronous;
  require(options.staleness == 0 || why.empty(), ErrorKind::argument,
          "site {}: the rule {} at staleness {}; it needs staleness 0, as {}", options.name,
          options.rule.traits().name, options.staleness, why);
  require(options.patience.count() > 0, ErrorKind::argument,
          "site {}: patience of {:g} s; more than 0 s is required", options.name,
          options.patience.count());
  const std::int64_t delay = options.rule.traits().timing.delay;
  require(delay < options.every, ErrorKind::argument,
          "site {}: the rule's delay of {} steps with every {}; it must be below every",
          options.name, delay, options.every);
  require_any_number(options.topology, options.rule.traits());
  check_codec(options);
}

/// What must be equal in all sites of a run, in one line. Versions may differ in how many entries a
/// fraction is.
std::string about(const SiteOptions& options, const ParameterLayout& layout,
                  const MessageCoder& coder) {
  const algorithm::RuleTraits& traits = options.rule.traits();
  const std::string size = options.codec.kind == codec::Kind::sparse
                               ? fmt::format(" of {} bytes", coder.difference_bytes())
                               : "";
  return fmt::format("{} (layout {:016x}), {} {}, every {}, {}, staleness {}, codec {}{}",
                     layout.describe(), layout.hash(), traits.name, traits.parameters,
                     options.every, options.topology.name(), options.staleness, codec_of(options),
                     size);
}

std::vector<std::string> names_of(const std::vector<Status>& sites) {
  std::vector<std::string> names;
  for (const Status& site : sites) names.push_back(site.site);
  return names;
}

}  // namespace

Site::Site(SiteOptions options, MakeBus make_bus)
    : options_(std::move(options)), make_bus_(std::move(make_bus)) {
  check(options_);
}

Site::~Site() = default;

void Site::say(LogLevel level, const std::string& text) const {
  if (log_) log_(level, fmt::format("site {}: {}", options_.name, text));
}

// The beginning.

std::int64_t Site::begin(const ParameterLayout& layout, const LogSink& log) {
  prepare(layout, log);
  outer_->start(layout);
  connect();
  try {
    take_part();
  } catch (...) {
    abandon();
    throw;
  }
  return rounds_;
}

void Site::prepare(const ParameterLayout& layout, const LogSink& log) {
  require(!outer_, ErrorKind::argument,
          "site {}: it belongs to another Worker; call sites::join() for each", options_.name);
  log_ = log;
  model_ = layout;
  outer_ = std::make_unique<OuterStep>(layout, options_.rule);
  coder_ = std::make_unique<MessageCoder>(outer_->layout(), options_.codec.kind, options_.fraction);
  about_ = about(options_, layout, *coder_);
  require_known_neighbors();
  require(options_.codec.kind != codec::Kind::sparse ||
              coder_->difference_bytes() < coder_->whole_bytes(),
          ErrorKind::argument,
          "site {}: codec {} sends {} bytes at each exchange, and bf16 {}; take a smaller part",
          options_.name, codec_of(options_), coder_->difference_bytes(), coder_->whole_bytes());
}

void Site::connect() {
  node_ = std::make_unique<Node>(make_bus_(log_),
                                 NodeOptions{.site = options_.name,
                                             .about = about_,
                                             .silence = options_.silence,
                                             .every = options_.every,
                                             .message_bytes = coder_->whole_bytes(),
                                             .difference_bytes = coder_->difference_bytes(),
                                             .state_bytes = outer_->state_bytes(),
                                             .exact = is_exact(),
                                             .log = log_});
  adoption_.emplace(options_, about_, *node_, history_, *outer_, log_);
}

/// A server may be away for a while.
void Site::connect_patiently() {
  const Deadline deadline(options_.patience);
  while (true) {
    try {
      return connect();
    } catch (const Error&) {
      if (deadline.expired()) throw;
    }
    check_wait();
    std::this_thread::sleep_for(std::chrono::seconds(1));
  }
}

void Site::succeed(const ParameterLayout& layout, const LogSink& log,
                   std::span<const std::byte> handover, std::int64_t rounds, std::int64_t ahead) {
  prepare(layout, log);
  outer_->take(handover);
  has_weights_ = false;
  connect_patiently();
  // The launcher has told that the rank is lost. Others may still hear of it for a moment.
  node_->wait([] { return false; }, Deadline(Seconds(1)));
  node_->appear();
  ahead_ = ahead;
  rounds_ = rounds + ahead;
  next_ = (rounds_ - 1) / options_.every;
  node_->begin(next_, rounds_);
  say(LogLevel::warning,
      fmt::format("another rank of this job goes on for the lost one, from exchange {} on", next_));
}

/// Those that read differences read all of them.
void Site::require_known_neighbors() const {
  if (!coder_->sends_differences()) return;
  constexpr int some = 5;
  require(is_exact() && options_.topology.make(some).is_static(), ErrorKind::argument,
          "site {}: codec {} with topology {} and staleness {}; it sends differences, which need "
          "staleness 0 and neighbors that stay: take ring or complete, or int8",
          options_.name, codec_of(options_), options_.topology.name(), options_.staleness);
}

void Site::take_part() {
  adoption_->await_name();
  adoption_->await_others();
  if (const auto state = adoption_->await_state()) adopt(*state);
  node_->begin(next_, rounds_);
  say(LogLevel::info, fmt::format("takes part from exchange {} on, with {} other sites", next_,
                                  node_->living().size()));
}

void Site::adopt(const Received& state) {
  outer_->adopt(model_, *state.bytes);
  const auto now = node_->living(state.site);
  const std::int64_t there = now ? now->round : state.what.round;
  rounds_ = state.what.number == 0 ? 0 : std::max(state.what.round, there);
  next_ = rounds_ / options_.every;
  say(LogLevel::info,
      fmt::format("has taken over the weights of site {} in round {}", state.site, rounds_));
}

// Exchanges.

void Site::restored(std::int64_t rounds, const std::vector<TensorView>& saved) {
  rounds_ = rounds;
  next_ = rounds_ / options_.every;
  outer_->start(model_);
  if (!outer_->take_memory(saved) && !saved.empty())
    say(LogLevel::info, "the outer rule begins anew: the checkpoint has no memory of it");
  node_->begin(next_, rounds_);
}

bool Site::acts_after(std::int64_t rounds) const {
  return rounds % options_.every == 0 || (rounds + delay()) % options_.every == 0;
}

/// A site that has begun or resumed within the delay makes its first exchange without one.
void Site::end_step(std::int64_t rounds) {
  rounds_ = rounds + ahead_;
  events_.clear();
  node_->require_usable();
  if (acts_after(rounds_) && !begun_) begin_exchange();
  if (rounds_ % options_.every == 0) end_exchange();
  node_->set_progress(next_, rounds_);
  if (!is_exact() && !begun_) note_newcomers();
  answer_for_state();
}

bool Site::is_asked_for_state() const { return has_weights_ && node_->is_asked_for_state(); }

/// While an exchange is under way, the rule's memory is that before it.
void Site::answer_for_state() {
  if (is_asked_for_state()) publish(Content::state, next_, outer_->state());
}

void Site::publish(Content content, std::int64_t number,
                   const std::shared_ptr<const AlignedBuffer>& bytes, std::int64_t base) {
  Publication what;
  what.base = base;
  what.content = content;
  what.number = number;
  what.round = content == Content::state ? number * options_.every : rounds_;
  what.samples = options_.samples;
  what.view = view_;
  what.bytes = bytes->size_bytes();
  node_->publish(std::move(what), bytes);
}

/// Names of the sites that make exchange `number`, with this one.
std::vector<std::string> Site::view(std::int64_t number) const {
  std::vector<Status> sites = node_->alike();
  std::erase_if(sites, [&](const Status& site) {
    if (!site.begun) return true;
    if (!is_exact()) return site.leaving;
    const bool has_made = site.next > number;
    return site.first > number || (site.leaving && !has_made);
  });
  std::vector<std::string> names = names_of(sites);
  names.push_back(options_.name);
  std::ranges::sort(names);
  return names;
}

/// The sites that this one reads in that exchange.
std::set<std::string> Site::sources(const std::vector<std::string>& sites,
                                    std::int64_t number) const {
  return sources_of(edges_of(options_.topology, sites, options_.name, number));
}

/// Above staleness 0: what a neighbor of the next exchange, too, has published by then is there
/// then.
void Site::read_ahead(const std::vector<std::string>& sites, std::int64_t number) {
  std::set<std::string> followed = sources(sites, number);
  followed.merge(sources(sites, number + 1));
  node_->follow(std::move(followed), 0);
  read_ = sites;
}

/// A site that comes between two exchanges is read at once, so that the next one can take of it.
void Site::note_newcomers() {
  const std::vector<std::string> sites = view(next_);
  if (sites != read_) read_ahead(sites, next_);
}

void Site::begin_exchange() {
  const std::int64_t number = (rounds_ + delay()) / options_.every - 1;
  adoption_->note_strangers();
  if (is_exact() && number == 0) await_expected();
  if (is_exact()) await_readers(number - 2);
  const std::vector<std::string> sites = view(number);
  // A newcomer and its neighbors may hear of each other one exchange apart.
  if (note_view(sites) || node_->takes_whole_request()) whole_until_ = number + 1;
  auto edges = edges_of(options_.topology, sites, options_.name, number);
  const std::set<std::string> followed = sources_of(edges);
  lags_ = lags_ || lags(followed, number);
  auto message = outer_->publish(model_, number);
  has_weights_ = true;
  require(message != nullptr, ErrorKind::numeric,
          "site {}: the weights are not finite in round {}; they were not published. Try a smaller "
          "learning rate",
          options_.name, rounds_);
  if (lags_) {  // nobody waits for its message, and others shall not take it
    begun_ = Begun{number, {}, 1};
    return;
  }
  const MessageCoder::Coded coded =
      coder_->encode(std::move(message), number, number <= whole_until_);
  events_.push_back({.kind = SiteEvent::Kind::published,
                     .site = options_.name,
                     .incarnation = node_->incarnation(),
                     .exchange = number,
                     .at = Clock::now()});
  publish(Content::message, number, coded.bytes, coded.base);
  if (is_exact())
    node_->follow(followed, number);
  else
    read_ahead(sites, number);
  begun_ = Begun{number, std::move(edges), static_cast<int>(sites.size())};
}

void Site::end_exchange() {
  const Begun now = *std::exchange(begun_, std::nullopt);
  if (is_exact()) {
    std::set<std::string> sources = sources_of(now.edges);
    await(sources, now.number);
    readers_[now.number] = std::move(sources);
  }
  combine(now);
  next_ = now.number + 1;
  ++stats_.exchanges;
  history_.note_exchange();
  if (lags_) catch_up();
}

/// At staleness 0, neighbors that are further do not hold what this site would read. On the way to
/// other sites, each may be one exchange ahead of the one before. At staleness above 0, a slow site
/// is as good as others, until the network was split.
bool Site::lags(const std::set<std::string>& sources, std::int64_t number) const {
  if (!is_exact()) return false;
  return std::ranges::any_of(node_->living(), [&](const Status& site) {
    const std::int64_t most =
        sources.contains(site.site) ? most_ahead() : most_ahead() + std::ssize(seen_);
    return adoption_->is_believed(site) && site.next > number + most;
  });
}

/// Exchanges that a site may be ahead of another one which it reads. A site that waits holds its
/// neighbors of the next exchange, they hold theirs, until all wait.
std::int64_t Site::most_ahead() const {
  constexpr std::int64_t held = 2;
  return held + std::bit_width(seen_.size());
}

/// Takes over the weights of the site that is furthest, as a site that joins does, and its count of
/// exchanges. The worker's own count of rounds stays. Training goes on until they are there.
void Site::catch_up() {
  const auto state = adoption_->ask_beyond(next_ + most_ahead());
  lags_ = adoption_->asks();
  if (!state) return;
  const std::int64_t made = rounds_;
  adopt(*state);
  rounds_ = next_ * options_.every;
  ahead_ += rounds_ - made;
  coder_->restart();
  lags_ = false;
  adoption_->ask_none();
}

/// The others begin with the state of this site, or of one that has begun before.
void Site::await_expected() {
  const Deadline deadline(options_.patience);
  const auto are_there = [&] {
    return std::ranges::count_if(node_->alike(), &Status::begun) + 1 >= options_.expect;
  };
  while (!are_there() && !deadline.expired()) wait(are_there, Seconds(1));
}

/// Says who has come, and who is not there any more. True if anything has changed since the latest
/// exchange: neighbors may be others, or other processes.
bool Site::note_view(const std::vector<std::string>& sites) {
  const std::string names = fmt::format("{}", fmt::join(sites, "\n"));
  view_ = sha256_of(std::as_bytes(std::span(names)));
  bool has_changed = sites != seen_;
  for (const std::string& site : sites)
    if (site != options_.name) has_changed = note_site(site) || has_changed;
  for (const std::string& site : seen_)
    if (!std::ranges::binary_search(sites, site))
      say(LogLevel::warning, fmt::format("site {} is not there", site));
  coder_->keep_only(sites);
  history_.forget([&](const std::string& site) { return !node_->silent_s(site); });
  seen_ = sites;
  return has_changed;
}

/// True if the site, or its process, is another one than in the latest exchange.
bool Site::note_site(const std::string& site) {
  const auto status = node_->living(site);
  if (!status) return false;
  const bool was_there = std::ranges::binary_search(seen_, site);
  const bool is_known = history_.meet(*status);
  if (!was_there) say(LogLevel::info, fmt::format("site {} takes part", site));
  if (is_known && !was_there) note_return(*status);
  return !is_known || !was_there;
}

/// The same process was there before: the network was split. What the outer rule remembers is of
/// steps that each part has made alone. A site that is far behind takes over other weights, so that
/// what it has published is old.
void Site::note_return(const Status& site) {
  constexpr std::int64_t until_it_is_back = 2;
  outer_->forget_momentum();
  lags_ = lags_ || (site.next > next_ + most_ahead() && adoption_->is_believed(site));
  if (is_behind(site, next_)) history_.ignore_below(site.site, site.next + until_it_is_back);
}

/// A site that waits in its turn for this one's state gets it.
bool Site::wait(const std::function<bool()>& is_over, Seconds longest) {
  const Deadline deadline(longest);
  bool is_done = is_over();
  while (!is_done && !deadline.expired()) {
    node_->wait([&] { return is_over() || is_asked_for_state(); }, deadline);
    answer_for_state();
    is_done = is_over();
  }
  stats_.waited_s += deadline.elapsed_s();
  return is_done;
}

/// Until `is_done` holds for each of them. Those for which it does not within the patience are not
/// waited for again until they have made an exchange.
void Site::await_all(const std::set<std::string>& sites,
                     const std::function<bool(const Status&)>& is_done) {
  const auto is_over = [&](const std::string& site) {
    const auto status = node_->living(site);
    return !status || history_.is_stalled(*status) || is_done(*status);
  };
  if (wait([&] { return std::ranges::all_of(sites, is_over); }, options_.patience)) return;
  for (const std::string& site : sites) {
    const auto status = node_->living(site);
    if (!status || is_done(*status)) continue;
    history_.note_stalled(*status);
    say(LogLevel::warning, fmt::format("site {} is alive, but has not come to exchange {} within "
                                       "{:g} s; it is not waited for until it goes on",
                                       site, next_, options_.patience.count()));
  }
}

/// Two messages are held: whoever reads the one that the next message takes the place of has read
/// it.
void Site::await_readers(std::int64_t number) {
  const auto found = readers_.find(number);
  if (found == readers_.end()) return;
  await_all(found->second, [&](const Status& site) {
    return site.leaving || site.next > number || is_behind(site, number);
  });
  readers_.erase(readers_.begin(), readers_.upper_bound(number));
}

/// Until each of them has published for this exchange or will not.
void Site::await(const std::set<std::string>& sources, std::int64_t number) {
  await_all(sources, [&](const Status& site) {
    return node_->message(site.site, number) != nullptr || !can_come(site, number);
  });
}

/// The site may still publish for that exchange, or holds what it has published.
bool Site::can_come(const Status& site, std::int64_t number) const {
  const auto has = [&](const Publication& what) {
    return what.content == Content::message && what.number == number;
  };
  if (std::ranges::any_of(site.newest, has)) return true;
  return !site.leaving && site.next <= number && !is_behind(site, number);
}

/// Too far to be waited for: it takes over other sites' weights.
bool Site::is_behind(const Status& site, std::int64_t number) const {
  return site.next + most_ahead() < number;
}

/// What this exchange takes of a site: each publication once at most.
std::shared_ptr<const Received> Site::latest(const std::string& site, std::int64_t number) {
  const auto message = is_exact() ? node_->message(site, number) : node_->message(site, 0, true);
  return message && history_.take(*message) ? message : nullptr;
}

/// What the rule takes of a message. Null: it cannot take it.
std::shared_ptr<const AlignedBuffer> Site::decode(const Received& message) {
  const auto decoded = coder_->decode(message);
  if (decoded && outer_->is_finite(decoded->data())) return decoded;
  const std::string why = decoded ? "has values that are not finite"
                                  : "is a difference to one that this site has not read";
  say(LogLevel::warning, fmt::format("publication {} of site {} {}; it is left out",
                                     message.what.number, message.site, why));
  coder_->forget(message.site);
  if (coder_->sends_differences()) node_->ask_for_whole(message.site);
  return nullptr;
}

/// Its weight stays with this site, or with all that are taken if the rule takes their mean.
void Site::note_left_out(const SiteEdge& edge) {
  stats_.mean_drift_weight += edge.weight;
  ++stats_.left_out;
}

/// At staleness above 0 nothing new may have come of it.
void Site::leave_out(const SiteEdge& edge, std::int64_t number) {
  const auto status = node_->living(edge.site);
  if (!is_exact() && status) {
    stats_.mean_drift_weight += edge.weight;
    return;
  }
  note_left_out(edge);
  const bool is_far = status && is_behind(*status, number);
  if (history_.note_far(edge.site, is_far) && is_far) return;  // said before
  const std::string why =
      !status  ? "it is silent"
      : is_far ? fmt::format("it is at exchange {}; it is not waited for", status->next)
      : can_come(*status, number)
          ? fmt::format("it has not published within {:g} s", options_.patience.count())
          : "it makes no such exchange any more";
  say(LogLevel::warning,
      fmt::format("exchange {}: site {} is left out: {}", number, edge.site, why));
}

void Site::combine(const Begun& exchange) {
  std::vector<std::shared_ptr<const AlignedBuffer>> held;
  std::vector<Source> sources;
  for (const SiteEdge& edge : exchange.edges) {
    const auto message = latest(edge.site, exchange.number);
    if (!message) {
      leave_out(edge, exchange.number);
      continue;
    }
    auto decoded = decode(*message);
    if (!decoded) {
      note_left_out(edge);
      continue;
    }
    const double weight = weight_for_samples(edge.weight, options_.samples, message->what.samples);
    sources.push_back({decoded->data(), weight});
    held.push_back(std::move(decoded));
    const std::int64_t age = rounds_ - message->what.round;
    history_.note_read(*message, age);
    events_.push_back({.kind = SiteEvent::Kind::read,
                       .site = edge.site,
                       .incarnation = message->incarnation,
                       .exchange = message->what.number,
                       .age = age,
                       .at = Clock::now()});
  }
  if (takes_mean(options_.rule.traits())) {
    const double more =
        static_cast<double>(exchange.edges.size() + 1) / static_cast<double>(sources.size() + 1);
    for (Source& source : sources) source.weight *= more;
  }
  outer_->combine(model_, exchange.number, sources, exchange.sites);
}

// The end.

void Site::finish() {
  if (!node_) return;
  node_->leave();
  const auto need_nothing = [&] {
    return std::ranges::none_of(node_->alike(), [&](const Status& other) {
      return is_exact() && other.begun && !other.leaving && other.next < next_ &&
             !is_behind(other, next_);
    });
  };
  constexpr Seconds longest{10};
  const Deadline patience(options_.patience);  // others wait for so long
  const auto is_over = [&] { return patience.expired() || need_nothing(); };
  double sent = 0;
  do {
    sent = node_->bytes_sent();
    if (node_->wait(is_over, Deadline(longest)) && !patience.expired()) return abandon();
  } while (node_->bytes_sent() > sent && !patience.expired());
  say(LogLevel::warning,
      fmt::format("ends after {:.1f} s, though other sites may need its last publication",
                  patience.elapsed_s()));
  abandon();
}

void Site::abandon() noexcept {
  if (!node_) return;
  final_ = stats();
  adoption_.reset();
  node_.reset();
}

SiteStats Site::stats() const {
  if (final_) return *final_;
  SiteStats result = stats_;
  if (!node_) return result;
  result.bytes_sent = node_->bytes_sent();
  result.bytes_received = node_->bytes_received();
  result.reads = history_.reads();
  result.median_age = history_.median_age();
  result.others = history_.others();
  std::erase_if(result.others, [&](const OtherSite& one) { return !node_->silent_s(one.name); });
  for (OtherSite& other : result.others) node_->look_at(other);
  return result;
}

}  // namespace fast::sites
