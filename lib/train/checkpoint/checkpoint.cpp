// Reading checkpoints.
#include "train/checkpoint/checkpoint.hpp"

#include <algorithm>
#include <cstring>
#include <fast/core/error.hpp>
#include <optional>

#include "core/floating.hpp"
#include "core/message.hpp"
#include "core/whole_file.hpp"
#include "train/checkpoint/manifest.hpp"

namespace fast::train {

std::vector<std::pair<std::int64_t, std::filesystem::path>> checkpoints_in(
    const std::filesystem::path& directory) {
  std::error_code problem;
  std::vector<std::pair<std::int64_t, std::filesystem::path>> found;
  for (const auto& entry : std::filesystem::directory_iterator(directory, problem)) {
    if (const auto round = round_of(entry.path())) found.emplace_back(*round, entry.path());
  }
  std::sort(found.rbegin(), found.rend());
  return found;
}

bool has_checkpoint(const std::filesystem::path& directory) {
  return std::ranges::any_of(checkpoints_in(directory), [](const auto& found) {
    std::error_code problem;
    return std::filesystem::exists(found.second / manifest_name, problem);
  });
}

namespace {

bool is_of_a_checkpoint(std::string_view name) {
  if (name.starts_with(manifest_name)) return true;
  const std::size_t suffix = name.find(temporary_suffix);
  name = name.substr(0, suffix);
  return name.starts_with("worker-") && (name.ends_with(".safetensors") || name.ends_with(".json"));
}

}  // namespace

void remove_checkpoint(const std::filesystem::path& directory) {
  std::error_code ignored;
  std::filesystem::remove(directory / manifest_name, ignored);
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(directory, ignored)) {
    if (is_of_a_checkpoint(entry.path().filename().string())) files.push_back(entry.path());
  }
  for (const auto& file : files) std::filesystem::remove(file, ignored);
  std::filesystem::remove(directory, ignored);
}

void remove_checkpoints_after(const std::filesystem::path& directory, std::int64_t round) {
  for (const auto& [other, path] : checkpoints_in(directory)) {
    if (other > round) remove_checkpoint(path);
  }
}

namespace {

/// Of a readable directory. That of a run is easily taken for that of its checkpoints.
std::string why_empty(const std::filesystem::path& directory) {
  const std::filesystem::path below = directory / "checkpoints";
  std::error_code problem;
  if (!std::filesystem::is_directory(below, problem)) return "it has no round-.../manifest.json";
  return fmt::format("give {}", printable(below.string()));
}

}  // namespace

Manifest find_checkpoint(const std::filesystem::path& directory) {
  std::error_code problem;
  if (std::filesystem::exists(directory / manifest_name, problem)) return read_manifest(directory);
  std::string why = why_unreadable_directory(directory);
  if (why.empty()) why = why_empty(directory);
  for (const auto& [round, path] : checkpoints_in(directory)) {
    try {
      return read_manifest(path);
    } catch (const Error& error) {
      why = error.what();
    }
  }
  fail(ErrorKind::data, "no checkpoint in {}: {}", directory.string(), why);
}

Safetensors read_shard(const Manifest& manifest, int worker) {
  const WorkerFile* shard = manifest.shard(worker);
  const std::string file = manifest.file(worker).string();
  require(shard != nullptr, ErrorKind::data,
          "{} was never written: its worker was gone when the others saved", file);
  Safetensors tensors(file);
  require(tensors.bytes().size() == shard->size_bytes, ErrorKind::data,
          "{} has {} bytes, its manifest says {}; the file has been changed", file,
          tensors.bytes().size(), shard->size_bytes);
  require(hash_of({tensors.bytes()}) == shard->hash, ErrorKind::data,
          "{} has another hash than its manifest says; the file has been changed", file);
  return tensors;
}

namespace {

/// Sums in double precision, one for each tensor.
class Average {
 public:
  void add(const Safetensors& file, std::string_view prefix) {
    const std::vector<TensorView> views = file.views(prefix);
    if (files_ == 0) std::ranges::for_each(views, [&](const TensorView& view) { begin(view); });
    for (std::size_t k = 0; k < views.size(); ++k) {
      const TensorView& view = views[k];
      require(k < tensors_.size() && tensors_[k].shape == view.shape &&
                  tensors_[k].dtype == view.dtype && tensors_[k].name == view.name,
              ErrorKind::data,
              "checkpoint: its workers' tensors \"{}{}\" differ; they are not of one run", prefix,
              view.name);
      if (!is_floating(view.dtype)) continue;
      with_floating(view.dtype, [&]<class T>(T) {
        const T* values = static_cast<const T*>(view.data);
        for (double& sum : sums_[k]) sum += as_double(*values++);
      });
    }
    ++files_;
  }

  int files() const { return files_; }

  OwnedTensors take() {
    for (std::size_t k = 0; k < tensors_.size(); ++k) {
      if (!is_floating(tensors_[k].dtype)) continue;
      with_floating(tensors_[k].dtype, [&]<class T>(T) {
        T* values = reinterpret_cast<T*>(memory_[k].data());
        for (const double sum : sums_[k]) *values++ = from_double<T>(sum / files_);
      });
    }
    return {std::move(tensors_), std::move(memory_)};
  }

 private:
  void begin(TensorView view) {
    const std::size_t bytes = view.size_bytes();
    memory_.emplace_back(bytes);
    if (bytes > 0) std::memcpy(memory_.back().data(), view.data, bytes);
    view.data = memory_.back().data();
    tensors_.push_back(std::move(view));
    sums_.emplace_back(is_floating(tensors_.back().dtype) ? tensors_.back().element_count() : 0);
  }

  std::vector<TensorView> tensors_;
  std::vector<AlignedBuffer> memory_;
  std::vector<std::vector<double>> sums_;
  int files_ = 0;
};

}  // namespace

OwnedTensors average_shards(const Manifest& manifest, const std::vector<int>& workers,
                            std::string_view prefix, const LogSink& log) {
  Average average;
  for (const int worker : workers) {
    std::optional<Safetensors> file;
    try {
      file = read_shard(manifest, worker);
    } catch (const Error& error) {
      if (log) log(LogLevel::warning, error.what());
    }
    if (file) average.add(*file, prefix);
  }
  require(average.files() > 0, ErrorKind::data,
          "checkpoint {}: none of {} workers' files can be read; take another checkpoint",
          manifest.directory.string(), workers.size());
  return average.take();
}

}  // namespace fast::train
