// A directory of a run, written by a test.
#pragma once

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "fast_report/run.hpp"
#include "fast_report/time_use.hpp"
#include "support/temporary_directory.hpp"

namespace report_test {

class RunDirectory {
 public:
  RunDirectory() { std::filesystem::create_directories(path() / "metrics"); }

  /// Appends.
  void write(const std::string& file, const std::string& text) const {
    std::ofstream(path() / file, std::ios::app) << text;
  }
  void line(int rank, const nlohmann::json& object) const {
    write("metrics/" + std::to_string(rank) + ".jsonl", object.dump() + "\n");
  }
  const std::filesystem::path& path() const { return directory_.path(); }

 private:
  fast::testing::TemporaryDirectory directory_;
};

/// A run without files.
class MadeRun {
 public:
  explicit MadeRun(int workers) {
    run.name = "made";
    run.size = workers;
    for (int rank = 0; rank < workers; ++rank) run.workers[rank].rank = rank;
  }
  /// The line of a worker, which began at `time` 1000.
  MadeRun& line(int rank, const std::string& kind, double seconds, nlohmann::json more = {}) {
    nlohmann::json object = {
        {"kind", kind}, {"time", 1000 + seconds}, {"seconds", seconds}, {"rank", rank}};
    if (more.is_object()) object.update(more);
    fast_report::take_line(run.workers.at(rank), object);
    return *this;
  }
  /// With the parts of all workers aligned, and without workers that have no line.
  fast_report::Run& done() {
    std::erase_if(run.workers, [](const auto& worker) { return worker.second.parts.empty(); });
    fast_report::align(run.workers);
    return run;
  }

  fast_report::Run run;
};

}  // namespace report_test
