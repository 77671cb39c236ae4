#include "fast_serve/answer.hpp"

#include <cmath>
#include <nlohmann/json.hpp>

#include "support/catch.hpp"

using namespace fast::serve;

TEST_CASE("probabilities are those of the softmax, and large logits do not overflow") {
  const std::vector<float> logits{0, std::log(3.0F), 1000, 1000, -1000, 999, 0, 0};
  const auto found = softmax(std::span(logits).first(2), 2);
  CHECK(found[0] == Approx(0.25));
  CHECK(found[1] == Approx(0.75));
  const auto large = softmax(std::span(logits).subspan(2, 4), 4);
  const double sum = 2 + std::exp(-1.0);
  CHECK(large[0] == Approx(1 / sum));
  CHECK(large[2] == 0);
  CHECK(large[3] == Approx(std::exp(-1.0) / sum));
}

TEST_CASE("the JSON has the first of the largest labels, and numbers that read back bit for bit") {
  const std::vector<float> logits{0.1F, 7, 7, -1.0F / 3, 0, 1e-42F};
  const auto json = nlohmann::json::parse(json_answer(logits, 3, Output::logits, "abc"));
  CHECK(json.at("model_version") == "abc");
  REQUIRE(json.at("predictions").size() == 2);
  CHECK(json["predictions"][0]["label"] == 1);
  CHECK(json["predictions"][1]["label"] == 2);
  for (std::size_t i = 0; i < 6; ++i) {
    CHECK(static_cast<float>(json["predictions"][i / 3]["logits"][i % 3].get<double>()) ==
          logits[i]);
  }
}

TEST_CASE("an error is JSON, whatever bytes it shows") {
  const auto json = nlohmann::json::parse(error_answer("a \"b\"\n\xff"));
  CHECK_THAT(json.at("error").get<std::string>(), ContainsSubstring("a \"b\""));
}

TEST_CASE("regressions answer values, binary tasks probabilities, both without labels") {
  const std::vector<float> outputs{0.5F, -2, 0, 3};
  CHECK(json_answer(outputs, 2, Output::probabilities, "v", fast::nn::Loss::mse) ==
        "{\"predictions\":[{\"values\":[0.5,-2]},{\"values\":[0,3]}],\"model_version\":\"v\"}\n");
  const std::vector<float> one{0};
  CHECK(json_answer(one, 1, Output::probabilities, "v", fast::nn::Loss::binary_cross_entropy) ==
        "{\"predictions\":[{\"probabilities\":[0.5]}],\"model_version\":\"v\"}\n");
  CHECK(json_answer(one, 1, Output::logits, "v", fast::nn::Loss::binary_cross_entropy) ==
        "{\"predictions\":[{\"logits\":[0]}],\"model_version\":\"v\"}\n");
  const std::string raw = raw_answer(outputs, 2, Output::probabilities, fast::nn::Loss::huber);
  CHECK(raw == std::string(reinterpret_cast<const char*>(outputs.data()), 16));
}

TEST_CASE("a class with a name is answered by its name and its number") {
  const std::vector<float> logits{0, 7, 9, 1}, more{0, 0, 5};
  const std::vector<std::string> names{"no", "a \"yes\""};
  CHECK(json_answer(logits, 2, Output::logits, "v", fast::nn::Loss::cross_entropy, names) ==
        "{\"predictions\":[{\"label\":\"a \\\"yes\\\"\",\"class\":1,\"logits\":[0,7]},"
        "{\"label\":\"no\",\"class\":0,\"logits\":[9,1]}],\"model_version\":\"v\"}\n");
  CHECK(json_answer(more, 3, Output::logits, "v", fast::nn::Loss::cross_entropy, names) ==
        "{\"predictions\":[{\"label\":2,\"class\":2,\"logits\":[0,0,5]}],\"model_version\":\"v\"}"
        "\n");
}
