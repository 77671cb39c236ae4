// The files of fastrun --log-dir: one per rank, with the lines of its standard output and error.
#pragma once

#include <array>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "channel.hpp"

namespace fastrun {

class RankLogs {
 public:
  using Say = std::function<void(const std::string& line)>;
  /// Makes `folder` if it is missing. Throws Error if that is not possible. An empty `folder` means
  /// that there are no files; add() then does nothing.
  RankLogs(std::string folder, int ranks, Say say);

  /// Takes what `rank` has printed to a stream, 'o' or 'e', and appends whole lines to its file. A
  /// file that cannot be written is left out from then on, and `say` gets one line for all files.
  void add(int rank, char stream, std::string_view text);
  /// Appends the lines that have no end.
  void finish();

 private:
  struct File {
    int rank = 0;
    Descriptor descriptor{};
    bool failed = false;
    std::array<std::string, 2> begun{};  ///< of each stream, after its last line
  };
  void append(File& file, std::string_view text);

  std::string folder_;
  Say say_;
  std::vector<File> files_;
  bool told_ = false;
};

}  // namespace fastrun
