#include "fast_topology_plan.hpp"

#include <fmt/format.h>

#include <charconv>
#include <fast/algorithm/rules.hpp>
#include <fast/core/error.hpp>
#include <fast/core/message.hpp>
#include <fast/exchange/exchange.hpp>
#include <fast/simulation/plan.hpp>
#include <nlohmann/json.hpp>

#include "cli/program.hpp"

using namespace fast;
using fast::simulation::Candidate;
using fast::simulation::Cluster;
using fast::simulation::Plan;
using nlohmann::ordered_json;

namespace tools {
namespace {

std::string seconds_text(std::optional<double> seconds) {
  return seconds ? fmt::format("{:.4g}", *seconds) : "-";
}

ordered_json json_of(const Candidate& c) {
  return {{"exchange", c.exchange},
          {"staleness", c.staleness ? ordered_json(staleness_text(*c.staleness)) : ordered_json()},
          {"codec", c.codec},
          {"seconds_per_round", c.round_s},
          {"waiting_share", c.waiting_share},
          {"mean_age", c.mean_age},
          {"seconds_to_consensus", c.consensus_s ? ordered_json(*c.consensus_s) : ordered_json()},
          {"effective_neighbors", c.effective_neighbors},
          {"relative_rounds", c.relative_rounds},
          {"relative_seconds", c.relative_seconds}};
}

const Candidate& first(const Plan& plan, bool is_allreduce) {
  for (const Candidate& c : plan.candidates) {
    if (c.is_allreduce() == is_allreduce) return c;
  }
  return plan.candidates.front();
}

std::string described(const Candidate& c) {
  if (!c.staleness) return c.exchange;
  return fmt::format("{}, staleness {}, {}", c.exchange, staleness_text(*c.staleness), c.codec);
}

// The plan in one sentence.
std::string verdict(const Plan& plan) {
  const Candidate& best = plan.candidates.front();
  const Candidate& other = first(plan, !best.is_allreduce());
  if (best.is_allreduce() == other.is_allreduce()) return fmt::format("best: {}", described(best));
  return fmt::format("best: {}; {} needs {:.3g} times as long", described(best), described(other),
                     other.relative_seconds);
}

void print_json(const Plan& plan, const Cluster& cluster) {
  ordered_json json = {
      {"workers", cluster.workers()}, {"verdict", verdict(plan)}, {"left_out", plan.left_out}};
  for (const Candidate& c : plan.candidates) json["candidates"].push_back(json_of(c));
  fmt::print("{}\n", json.dump(2));
}

void print_row(std::size_t place, const Candidate& c) {
  const std::string staleness = c.staleness ? staleness_text(*c.staleness) : "-";
  fmt::print("{:>4}  {:<24}{:>9}  {:<10}{:>9.4g}{:>8.1f} %{:>12}{:>10.4g}{:>9.3g}{:>9.3g}\n", place,
             c.exchange, staleness, c.codec, c.round_s, 100 * c.waiting_share,
             seconds_text(c.consensus_s), c.effective_neighbors, c.relative_rounds,
             c.relative_seconds);
}

void print_table(const Plan& plan, std::size_t most) {
  fmt::print("{:>4}  {:<24}{:>9}  {:<10}{:>9}{:>10}{:>12}{:>10}{:>9}{:>9}\n", "", "exchange",
             "staleness", "codec", "s/round", "waiting", "s to 1e-3", "neighbors", "rounds",
             "seconds");
  for (std::size_t k = 0; k < plan.candidates.size(); ++k) {
    if (k < most || plan.candidates[k].is_allreduce()) print_row(k + 1, plan.candidates[k]);
  }
  for (const std::string& line : plan.left_out) fmt::print("left out: {}\n", printable(line));
}

}  // namespace

std::int64_t staleness_of(const std::string& text) {
  if (text == "inf") return unbounded_staleness;
  std::int64_t value = -1;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  require(error == std::errc() && stop == end && value >= 0, ErrorKind::argument,
          "--staleness: \"{}\" is no whole number from 0 on and not inf", text);
  return value;
}

std::string staleness_text(std::int64_t staleness) {
  return staleness == unbounded_staleness ? "inf" : fmt::format("{}", staleness);
}

PlanCommand::PlanCommand(CLI::App& app)
    : command_(app.add_subcommand("plan", "Rank topologies, staleness and codecs for a cluster")) {
  offer(command_->add_option("--cluster", cluster_, "A TOML file that describes the cluster")
            ->required(),
        {"<file>"});
  offer(command_
            ->add_option("--topologies", topologies_, "Names or files; without it, the usual ones")
            ->delimiter(','),
        topology_words());
  command_->add_option("--staleness", staleness_, "Bounds, with inf for none (0,1)")
      ->delimiter(',');
  command_->add_option("--codecs", codecs_, "Codecs (identity,bf16,int8)")->delimiter(',');
  offer(command_->add_option("--algorithm", algorithm_, "Algorithm of fast-train (awc)"),
        rule_words());
  command_->add_option("--algorithm-option", parameters_, "An option of the algorithm, KEY=VALUE");
  command_->add_option("--rounds", rounds_, "Simulated rounds (100)")
      ->check(CLI::Range(1, 100'000));
  command_->add_option("--seed", seed_, "Seed of the jitter (1)");
  command_->add_option("--rows", rows_, "Rows of the table (15); all-reduces are always shown");
  command_->add_flag("--json", json_, "Print JSON");
}

void PlanCommand::run() const {
  simulation::PlanOptions options;
  options.topologies = topologies_;
  if (!codecs_.empty()) options.codecs = codecs_;
  if (!staleness_.empty()) options.staleness.clear();
  for (const std::string& text : staleness_) options.staleness.push_back(staleness_of(text));
  options.algorithm = algorithm_;
  options.parameters = algorithm::parameters_from(parameters_);
  options.rounds = rounds_;
  options.seed = seed_;
  const Cluster cluster = simulation::load_cluster(cluster_);
  const Plan plan = simulation::plan(cluster, options);
  if (json_) return print_json(plan, cluster);
  fmt::print("{} workers on {} hosts; all figures are simulated\n", cluster.workers(),
             cluster.hosts);
  print_table(plan, rows_);
  fmt::print("{}\n", verdict(plan));
}

}  // namespace tools
