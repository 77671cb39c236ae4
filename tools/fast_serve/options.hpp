// The options of fast-serve: a member and a row each.
#pragma once

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "cli/program.hpp"
#include "fast_serve/http_server.hpp"
#include "fast_serve/model_source.hpp"
#include "fast_serve/served_model.hpp"
#include "fast_serve/stream_scorer.hpp"
#include "options/option_table.hpp"

namespace fast_serve {

/// NAME=PATH of the command line.
struct NamedPath {
  std::string name;
  std::filesystem::path path;
};

struct Options {
  std::vector<NamedPath> models;  ///< in their order; a name may be there twice

  std::string model;               ///< for files that do not say it
  std::string normalize = "none";  ///< likewise
  std::vector<std::string> split;
  double poll_s = 1;

  std::string listen = "127.0.0.1";
  int port = 8080;
  int connections = 128;
  std::size_t max_request_bytes = std::size_t{16} << 20U;
  std::size_t max_instances = 1024;

  std::string stream;  ///< URL of a server; empty: none
  std::string subject, answers;
  std::string stream_model;  ///< empty: the only one
  std::string consumer;      ///< empty: named after the model
  std::size_t stream_batch = 64;
  double ack_wait_s = 30, stream_patience_s = 30;

  std::size_t max_batch = 64;
  std::chrono::microseconds max_delay{2000};
  int threads = 1;

  double grace_s = 10;
  bool help = false, help_markdown = false, version = false;
};

void add_rows(fast::options::OptionTable& table, Options& o);
std::vector<tools::Group> groups();

/// Reads the command line. Throws fast::Error (argument) for what cannot be.
Options read_options(int argc, const char* const* argv);

/// For its help, its manual page, its completion and the documentation.
tools::Program command_line();

/// 1e6 seconds at most.
std::chrono::milliseconds milliseconds_of(double seconds);

/// What --stream and its options say; nothing without --stream.
struct StreamPlan {
  fast::stream::Address address;
  fast::stream::SourceOptions source;
  fast::serve::ScoringOptions scoring;
};
/// Checked. Throws fast::Error (argument).
std::optional<StreamPlan> stream_plan(const Options& o);

/// Of --split, checked. Throws fast::Error (argument).
std::vector<fast::serve::Split> splits(const Options& o);
fast::serve::AssumedNote assumed_note(const Options& o);

}  // namespace fast_serve
