// fast-topology plan: which topology, staleness and codec suit a cluster.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <vector>

namespace tools {

/// The options of the subcommand.
class PlanCommand {
 public:
  explicit PlanCommand(CLI::App& app);
  bool parsed() const { return command_->parsed(); }
  void run() const;

 private:
  CLI::App* command_;
  std::string cluster_;
  std::vector<std::string> topologies_, codecs_, staleness_, parameters_;
  std::string algorithm_ = "awc";
  std::int64_t rounds_ = 100;
  std::uint64_t seed_ = 1;
  std::size_t rows_ = 15;
  bool json_ = false;
};

/// "0", "2" or "inf" as a staleness bound. Throws Error(argument) for others.
std::int64_t staleness_of(const std::string& text);
std::string staleness_text(std::int64_t staleness);

}  // namespace tools
