#include "fast_train/run_name.hpp"

#include <array>
#include <cctype>
#include <cstdio>
#include <fast/core/error.hpp>

#include "core/say.hpp"

namespace fast_train {

using namespace fast;

namespace {

/// Of a text that may be a path: letters, digits and a few signs.
std::string as_part_of_name(const std::string& text) {
  std::string name;
  for (const char c : std::filesystem::path(text).stem().string()) {
    const bool stays = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.';
    name += stays ? c : '-';
  }
  return name;
}

std::string time_of_name(std::time_t now) {
  std::array<char, 32> text{};
  std::tm parts{};
  std::strftime(text.data(), text.size(), "%Y-%m-%d-%H%M%S", localtime_r(&now, &parts));
  return text.data();
}

std::filesystem::path directory_of(const Options& o, int workers) {
  if (o.run_name != "auto") return parent_of_runs / o.run_name;
  return make_new_directory(parent_of_runs, automatic_name(o, workers, std::time(nullptr)));
}

}  // namespace

std::string automatic_name(const Options& o, int workers, std::time_t now) {
  const std::string topology = is_all_reduce(o) ? "allreduce" : as_part_of_name(o.topology);
  return fmt::format("{}-{}-{}-{}", time_of_name(now), as_part_of_name(o.model), topology, workers);
}

std::filesystem::path make_new_directory(const std::filesystem::path& parent,
                                         const std::string& name) {
  std::error_code problem;
  std::filesystem::create_directories(parent, problem);
  std::filesystem::path directory = parent / name;
  for (int number = 2; !problem; ++number) {
    if (std::filesystem::create_directory(directory, problem)) return directory;
    if (problem == std::errc::file_exists) problem.clear();
    directory = parent / fmt::format("{}-{}", name, number);
  }
  fail(ErrorKind::resource,
       "--run-name: the directory {} cannot be made: {}; name another one by --out",
       (parent / name).string(), problem.message());
}

void name_run(const Group& ranks, Options& o) {
  if (o.run_name.empty()) return;
  const int workers = o.exchange == "local" ? o.workers : ranks.size() - o.spares;
  const Deadline deadline(o.trainer.worker.deadline);
  std::string chosen;
  agree(ranks, deadline, "fast-train: naming the run", [&] {
    if (ranks.rank() == 0) chosen = directory_of(o, workers).string();
  });
  o.trainer.out = ranks.all_gather(chosen, deadline, "fast-train: naming the run")[0];
  if (ranks.rank() == 0) fast::say("run directory: {}\n", o.trainer.out->string());
}

}  // namespace fast_train
