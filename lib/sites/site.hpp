// A site's weights: when they are exchanged, with whom, and what is taken over at the beginning.
#pragma once

#include <fast/sites/site.hpp>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "sites/adoption.hpp"
#include "sites/message_coder.hpp"
#include "sites/node.hpp"
#include "sites/outer_step.hpp"
#include "sites/site_history.hpp"
#include "sites/site_weights.hpp"

namespace fast::sites {

/// Exchange k, counted from 0, follows the step after which (k + 1)·every rounds are made. A rule
/// with a delay begins it so many steps before. A site counts its rounds from those of the site
/// that it has taken over from.
class Site {
 public:
  using MakeBus = std::function<std::unique_ptr<Bus>(const LogSink& log)>;
  /// Throws Error(argument) and Error(topology) on options that are out of range.
  Site(SiteOptions options, MakeBus make_bus);
  Site(const Site&) = delete;
  Site& operator=(const Site&) = delete;
  ~Site();

  // As those of SiteExchange, which a JobSite calls.
  std::int64_t begin(const ParameterLayout& layout, const LogSink& log);
  /// In place of begin(): goes on for a rank of this job that is lost, after steps that make so
  /// many rounds. `handover` and `ahead` are what handover() and ahead() were there. Does not
  /// change the model.
  void succeed(const ParameterLayout& layout, const LogSink& log,
               std::span<const std::byte> handover, std::int64_t rounds, std::int64_t ahead);
  std::shared_ptr<const AlignedBuffer> handover() const { return outer_->handover(); }
  std::int64_t ahead() const { return ahead_; }
  void rebind(const ParameterLayout& layout) { model_ = layout; }
  void restored(std::int64_t rounds, const std::vector<TensorView>& saved);
  void put_back() { outer_->put_back(model_); }
  std::vector<TensorView> state() { return outer_->memory(); }
  void end_step(std::int64_t rounds);
  /// An exchange begins or ends after a step that makes so many rounds.
  bool acts_after(std::int64_t rounds) const;
  void finish();
  void abandon() noexcept;
  SiteStats stats() const;
  /// What the latest end_step() has published and read, without a worker and a round.
  const std::vector<SiteEvent>& events() const { return events_; }
  std::int64_t exchanges() const { return stats_.exchanges; }

 private:
  /// An exchange that has begun.
  struct Begun {
    std::int64_t number;
    std::vector<SiteEdge> edges;
    int sites;  ///< that take part
  };
  bool is_exact() const { return options_.staleness == 0; }
  std::int64_t delay() const { return options_.rule.traits().timing.delay; }
  void say(LogLevel level, const std::string& text) const;
  void require_known_neighbors() const;
  void prepare(const ParameterLayout& layout, const LogSink& log);
  void connect();
  void connect_patiently();
  void take_part();
  void adopt(const Received& state);
  void publish(Content content, std::int64_t number,
               const std::shared_ptr<const AlignedBuffer>& bytes, std::int64_t base = -1);
  std::vector<std::string> view(std::int64_t number) const;
  bool is_asked_for_state() const;
  void answer_for_state();
  std::set<std::string> sources(const std::vector<std::string>& sites, std::int64_t number) const;
  void read_ahead(const std::vector<std::string>& sites, std::int64_t number);
  void note_newcomers();
  void begin_exchange();
  void end_exchange();
  void await_expected();
  bool note_view(const std::vector<std::string>& sites);
  bool note_site(const std::string& site);
  void note_return(const Status& site);
  bool lags(const std::set<std::string>& sources, std::int64_t number) const;
  std::int64_t most_ahead() const;
  bool is_behind(const Status& site, std::int64_t number) const;
  void catch_up();
  bool wait(const std::function<bool()>& is_over, Seconds longest);
  void await_all(const std::set<std::string>& sites,
                 const std::function<bool(const Status&)>& is_done);
  void await_readers(std::int64_t number);
  void await(const std::set<std::string>& sources, std::int64_t number);
  bool can_come(const Status& site, std::int64_t number) const;
  std::shared_ptr<const Received> latest(const std::string& site, std::int64_t number);
  std::shared_ptr<const AlignedBuffer> decode(const Received& message);
  void note_left_out(const SiteEdge& edge);
  void leave_out(const SiteEdge& edge, std::int64_t number);
  void combine(const Begun& exchange);

  const SiteOptions options_;
  const MakeBus make_bus_;
  LogSink log_;
  ParameterLayout model_;
  std::unique_ptr<OuterStep> outer_;
  std::unique_ptr<MessageCoder> coder_;
  std::unique_ptr<Node> node_;
  SiteHistory history_;
  std::optional<Adoption> adoption_;
  std::int64_t next_ = 0, rounds_ = 0;
  std::int64_t ahead_ = 0;  ///< rounds that this site has taken over from others while it trained
  std::optional<Begun> begun_;
  std::int64_t whole_until_ = -1;  ///< messages of these exchanges are whole
  bool has_weights_ = true;        ///< one that goes on for a lost rank: from its first exchange on
  bool lags_ = false;  ///< other sites are so far ahead that this one takes over their weights
  std::string about_;  ///< equal in all sites of the run
  std::string view_;   ///< hash of the sites of the latest exchange
  std::vector<std::string> seen_;  ///< these sites
  std::vector<std::string> read_;  ///< above staleness 0: of these sites, messages are read
  /// Of the latest exchanges at staleness 0: who reads this site's message.
  std::map<std::int64_t, std::set<std::string>> readers_;
  SiteStats stats_;
  std::vector<SiteEvent> events_;
  std::optional<SiteStats> final_;
};

}  // namespace fast::sites
