#include "fast_train/mean_model_figures.hpp"

#include <map>
#include <string>

#include "support/catch.hpp"

namespace {

struct Scalars final : fast::Observer {
  void on_scalar(const fast::ScalarEvent& event) noexcept override {
    all[std::string(event.name)] = event.value;
  }
  void on_values(const fast::ValuesEvent& event) noexcept override {
    values[std::string(event.name)] = event.values.size();
  }
  std::map<std::string, double> all;
  std::map<std::string, std::size_t> values;
};

}  // namespace

TEST_CASE("figures of the mean model are passed on under shorter names, others are not") {
  const auto scalars = std::make_shared<Scalars>();
  const auto filter = fast_train::mean_model_figures(scalars);
  filter->on_scalar({"test/mean_model_accuracy", 0.75, 0, 10, {}});
  filter->on_scalar({"validation/mean_model_loss", 0.5, 0, 10, {}});
  filter->on_scalar({"consensus_distance", 0.125, 0, 10, {}});
  filter->on_scalar({"train/loss", 2, 0, 10, {}});
  CHECK(scalars->all == std::map<std::string, double>{{"consensus_distance", 0.125},
                                                      {"test/accuracy", 0.75},
                                                      {"validation/loss", 0.5}});
  const float weights[3] = {1, 2, 3};
  filter->on_values({"weights/w", weights, 0, 0, 10});
  filter->on_values({"mean_model_weights/w", weights, 0, 0, 10});
  CHECK(scalars->values == std::map<std::string, std::size_t>{{"weights/w", 3}});
}
