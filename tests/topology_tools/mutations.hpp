// Topology files with random mistakes.
#pragma once

#include <fast/core/random.hpp>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

inline std::vector<std::string> topology_files(const std::filesystem::path& folder) {
  std::vector<std::string> texts;
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".toml") paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  for (const auto& path : paths) {
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    texts.push_back(text.str());
  }
  return texts;
}

inline std::string mutated(std::string text, fast::Rng& rng) {
  static const std::vector<std::string> pieces = {"-",
                                                  "9999999",
                                                  "0",
                                                  "[",
                                                  "]",
                                                  "\"",
                                                  "=",
                                                  ".",
                                                  "nan",
                                                  "true",
                                                  "{",
                                                  "}",
                                                  "\n",
                                                  "weights",
                                                  "[[round]]\n",
                                                  "#",
                                                  "1e300",
                                                  "stencil",
                                                  "edges",
                                                  ",",
                                                  "sides = [3, 3]\n",
                                                  "lazy = true\n",
                                                  "\xff",
                                                  "workers = 5\n"};
  for (std::uint64_t k = 0; k <= rng.below(3); ++k) {
    const std::size_t at = rng.below(text.size() + 1);
    switch (rng.below(4)) {
      case 0:
        text.insert(at, pieces[rng.below(pieces.size())]);
        break;
      case 1:
        text.erase(at, 1 + rng.below(8));
        break;
      case 2:
        if (at < text.size()) text[at] = static_cast<char>(rng.below(256));
        break;
      default:
        text.insert(at, text.substr(rng.below(text.size() + 1), rng.below(20)));
    }
  }
  return text;
}
