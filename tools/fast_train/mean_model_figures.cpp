#include "fast_train/mean_model_figures.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace fast_train {
namespace {

constexpr std::string_view word = "mean_model_";

class MeanModelFigures final : public fast::Observer {
 public:
  explicit MeanModelFigures(std::shared_ptr<fast::Observer> to) : to_(std::move(to)) {}

  void on_scalar(const fast::ScalarEvent& event) noexcept override {
    const std::optional<std::string> name =
        event.name == "consensus_distance" ? std::string(event.name) : without_word(event.name);
    if (!name) return;
    fast::ScalarEvent own = event;
    own.name = *name;
    to_->on_scalar(own);
  }

  void on_values(const fast::ValuesEvent& event) noexcept override {
    const std::optional<std::string> name = without_word(event.name);
    if (!name) return;
    fast::ValuesEvent own = event;
    own.name = *name;
    to_->on_values(own);
  }

 private:
  /// Nothing if it is not about the mean model.
  static std::optional<std::string> without_word(std::string_view name) {
    const std::size_t at = name.find(word);
    if (at == std::string_view::npos) return std::nullopt;
    return std::string(name).erase(at, word.size());
  }

  std::shared_ptr<fast::Observer> to_;
};

}  // namespace

std::shared_ptr<fast::Observer> mean_model_figures(std::shared_ptr<fast::Observer> to) {
  return std::make_shared<MeanModelFigures>(std::move(to));
}

}  // namespace fast_train
