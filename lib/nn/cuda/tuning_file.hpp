// What earlier runs have found to be fastest, in a file.
#pragma once

#include <fast/core/observer.hpp>

#include <filesystem>
#include <map>
#include <string>

namespace fast::cuda {

/// $XDG_CACHE_HOME/fast or $HOME/.cache/fast. Empty if neither variable is an absolute path.
std::filesystem::path cache_folder();

/// The names of works, and of the fastest way to compute each, on one card with one version of its
/// libraries. The file of another card or version has another name. A file is replaced as a whole,
/// so several processes may write it. If two write at the same moment, results of one of them may
/// be missing, and are measured again.
class TuningFile {
 public:
  /// `card` is one line that names the card and the versions. Reads the card's file in `folder`, if
  /// there is one. A damaged file is told to `log` and ignored. An empty folder means that nothing
  /// is kept.
  TuningFile(const std::filesystem::path& folder, const std::string& card, LogSink log);

  /// The name of the fastest way. Null if it is not known.
  const std::string* find(const std::string& work) const;
  /// Names are not empty, and have neither tabs nor ends of lines.
  void add(const std::string& work, const std::string& way);
  /// Writes what was added since the last call, if anything was, beside what other processes have
  /// written. The first failure is told to `log` as information; nothing is written from then on.
  void save();

  const std::filesystem::path& path() const { return path_; }

 private:
  using Names = std::map<std::string, std::string>;
  Names read(bool tell_of_damage) const;
  void write(const Names& ways) const;
  void tell(const std::string& text) const;

  std::string heading_;
  std::filesystem::path path_;
  LogSink log_;
  Names ways_, added_;
  bool writes_ = true;
};

}  // namespace fast::cuda
