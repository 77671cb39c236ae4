#include "fast_serve/service.hpp"

#include <cstring>
#include <fast/core/error.hpp>
#include <nlohmann/json.hpp>

#include "serve/models.hpp"
#include "support/catch.hpp"

using namespace fast;
using namespace fast::testing;
using namespace std::chrono_literals;
using serve::Reply;
using serve::Request;

namespace {

const nn::ModelSpec four_to_three = nn::mlp({4, 8, 3});

struct Served {
  Served() : service({3}, {64, 0us, 1}) {
    service.add("m", 0.5).install(version_of(four_to_three, 1));
  }
  Reply post(const std::string& body, const std::string& type = "application/json",
             std::map<std::string, std::string> query = {}) {
    return service.answer({"POST", "/v1/models/m:predict", std::move(query), type, "", "", body});
  }
  Reply get(const std::string& path, const std::string& method = "GET") {
    return service.answer({method, path, {}, "", "", "", ""});
  }
  serve::Service service;
};

std::string bytes_of_values(const std::vector<float>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}

constexpr char raw_content[] = "application/octet-stream";

}  // namespace

TEST_CASE("raw samples give the network's logits bit for bit") {
  Served served;
  const auto values = random_values(12, 1);
  const Reply reply = served.post(bytes_of_values(values), raw_content);
  REQUIRE(reply.status == 200);
  CHECK(reply.body == bytes_of_values(logits_of(four_to_three, 1, values, 3)));
  const std::map<std::string, std::string> headers(reply.headers.begin(), reply.headers.end());
  CHECK(headers.at("X-Model-Version") == version_of(four_to_three, 1)->hash());
  CHECK(headers.at("X-Tensor-Shape") == "3x3");
  CHECK(headers.at("X-Tensor-Output") == "logits");
  const Reply shares =
      served.post(bytes_of_values(values), raw_content, {{"output", "probabilities"}});
  std::vector<float> found(9);
  std::memcpy(found.data(), shares.body.data(), shares.body.size());
  CHECK(found[0] + found[1] + found[2] == Approx(1));
}

TEST_CASE("JSON samples give labels, probabilities and the version") {
  Served served;
  const Reply reply = served.post(R"({"instances": [[0.5, -1, 2, 3], [0, 0, 0, 1]]})");
  REQUIRE(reply.status == 200);
  const auto json = nlohmann::json::parse(reply.body);
  CHECK(json.at("model_version") == version_of(four_to_three, 1)->hash());
  const auto logits =
      logits_of(four_to_three, 1, std::vector<float>{0.5F, -1, 2, 3, 0, 0, 0, 1}, 2);
  for (std::size_t i = 0; i < 2; ++i) {
    const auto* row = logits.data() + 3 * i;
    CHECK(json["predictions"][i]["label"] == std::max_element(row, row + 3) - row);
    CHECK(json["predictions"][i]["probabilities"].size() == 3);
  }
}

TEST_CASE("a request may name its version") {
  Served served;
  const std::string first = version_of(four_to_three, 1)->hash();
  served.service.find("m")->install(version_of(four_to_three, 2));
  const std::string body = bytes_of_values(random_values(4, 1));
  for (int i = 0; i < 4; ++i) {
    const Reply reply = served.post(body, raw_content, {{"version", first}});
    CHECK(reply.body == bytes_of_values(logits_of(four_to_three, 1, random_values(4, 1), 1)));
  }
  CHECK(served.post(body, raw_content, {{"version", "0000"}}).status == 404);
}

TEST_CASE("bad requests get a status and a JSON error") {
  Served served;
  const std::string good = R"({"instances": [[1,2,3,4]]})";
  const std::string sample = bytes_of_values({1, 2, 3, 4});
  struct Bad {
    Request request;
    int status;
    const char* text;
  };
  const std::string predict = "/v1/models/m:predict";
  const Bad all[] = {
      {{"POST", "/v1/models/n:predict", {}, "application/json", "", "", good}, 404, "no model"},
      {{"POST", "/v1/models/:predict", {}, "application/json", "", "", good}, 404, "no model"},
      {{"POST", "/v1/models/m:train", {}, "application/json", "", "", good}, 404, "no model"},
      {{"POST", "/v2/models", {}, "application/json", "", "", good}, 404, "paths are"},
      {{"GET", predict, {}, "", "", "", ""}, 405, "POST only"},
      {{"PUT", predict, {}, "application/json", "", "", good}, 405, "POST only"},
      {{"POST", "/v1/models/m", {}, "application/json", "", "", good}, 405, "GET only"},
      {{"DELETE", "/v1/models", {}, "", "", "", ""}, 405, "GET only"},
      {{"POST", predict, {}, "", "", "", good}, 415, "content type"},
      {{"POST", predict, {}, "application/x-www-form-urlencoded", "", "", good}, 415, "curl"},
      {{"POST", predict, {}, "application/json", "", "", "{"}, 400, "not JSON"},
      {{"POST", predict, {}, "application/json", "", "", "\xff\xfe"}, 400, "not JSON"},
      {{"POST", predict, {{"vresion", "x"}}, "application/json", "", "", good},
       400,
       "did you mean \"version\"?"},
      {{"POST", predict, {{"output", "labels"}}, "application/json", "", "", good},
       400,
       "choose logits"},
      {{"POST", predict, {{"type", "u8"}}, "application/json", "", "", good}, 400, "in its body"},
      {{"POST", predict, {{"normalized", "maybe"}}, "application/json", "", "", good},
       400,
       "true or false"},
      {{"POST", predict, {}, raw_content, "", "", ""}, 400, "empty"},
      {{"POST", predict, {}, raw_content, "", "", "abc"}, 400, "3 bytes"},
      {{"POST", predict, {}, raw_content, "2x4", "", sample}, 400, "does not fit"},
      {{"POST", predict, {}, raw_content, "", "f16", sample}, 400, "choose f32 or u8"},
      {{"POST", predict, {}, raw_content, "", "", sample + sample + sample + sample},
       413,
       "3 at most"},
      {{"POST",
        predict,
        {{"normalized", "maybe"}},
        "application/json",
        "",
        "",
        R"({"instances": [[1,2,3,4]], "normalized": true})"},
       400,
       "true or false"},
      {{"POST", predict, {{"normalized", "true"}}, raw_content, "", "u8", "abcd"}, 400, "u8"},
  };
  for (const Bad& bad : all) {
    INFO(bad.request.method << " " << bad.request.path << " " << bad.request.body);
    const Reply reply = served.service.answer(bad.request);
    CHECK(reply.status == bad.status);
    CHECK_THAT(nlohmann::json::parse(reply.body).at("error").get<std::string>(),
               ContainsSubstring(bad.text));
  }
  CHECK(served.post(good).status == 200);
}

TEST_CASE("models, health and metrics") {
  Served served;
  served.post(R"({"instances": [[1,2,3,4],[1,2,3,4]]})", "application/json; charset=utf-8");
  const auto model = nlohmann::json::parse(served.get("/v1/models/m").body);
  CHECK(model.at("state") == "ready");
  CHECK(model.at("input") == std::vector<int>{4});
  CHECK(model.at("classes") == 3);
  CHECK(model.at("versions")[0].at("version") == version_of(four_to_three, 1)->hash());
  CHECK(nlohmann::json::parse(served.get("/v1/models").body).at("models").size() == 1);
  CHECK(nlohmann::json::parse(served.get("/healthz").body).at("status") == "ok");
  const std::string metrics = served.get("/metrics").body;
  CHECK_THAT(metrics, ContainsSubstring(R"(fast_serve_requests_total{code="200",model="m"} 2)"));
  CHECK_THAT(metrics, ContainsSubstring(R"(fast_serve_instances_total{model="m",version=")" +
                                        version_of(four_to_three, 1)->hash() + "\"} 2"));
  CHECK_THAT(metrics, ContainsSubstring("fast_serve_waiting_samples 0"));
  served.service.announce_end();
  CHECK(served.get("/healthz").status == 503);
}

TEST_CASE("names of models are parts of paths, and there is one of each") {
  Served served;
  CHECK_THROWS_AS(served.service.add("m", {}), Error);
  for (const char* name : {"", "a/b", "a:b", "a b"})
    CHECK_THROWS_AS(served.service.add(name, {}), Error);
}

TEST_CASE("names of classes and features are described, and make another version") {
  nn::Network<float> network(four_to_three, 1);
  const serve::Names names{{"a", "b", "c"}, {"w", "x", "y", "z"}, "kind"};
  const auto named = std::make_shared<serve::ModelVersion>(
      four_to_three, nn::Shape{4}, all_tensors(network), serve::Normalizing(), "test",
      nn::Loss::cross_entropy, names);
  CHECK(named->hash() != version_of(four_to_three, 1)->hash());
  Served served;
  served.service.find("m")->install(named);
  const auto model = nlohmann::json::parse(served.get("/v1/models/m").body);
  CHECK(model.at("class_names") == names.classes);
  CHECK(model.at("features") == names.features);
  CHECK(model.at("target") == "kind");
}
