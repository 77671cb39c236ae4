#include "fast_serve/service.hpp"

#include <fmt/chrono.h>

#include <algorithm>
#include <cmath>
#include <exception>
#include <fast/core/error.hpp>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/contains.hpp"
#include "core/message.hpp"
#include "core/registry.hpp"
#include "core/text.hpp"
#include "fast_serve/answer.hpp"
#include "fast_serve/request_parser.hpp"

namespace fast::serve {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view models_path = "/v1/models", predict_end = ":predict";
constexpr char json_type[] = "application/json", raw_type[] = "application/octet-stream";

std::string shortened(std::string_view text) { return printable(text.substr(0, 80)); }

void need_method(const Request& request, std::string_view method) {
  if (request.method == method || (method == "GET" && request.method == "HEAD")) return;
  throw Refusal(405, fmt::format("{} {}: this path takes {} only", shortened(request.method),
                                 shortened(request.path), method));
}

Reply json_reply(const Json& json) {
  return {.body = json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n"};
}

/// Without parameters: "application/json; charset=utf-8".
std::string media_type(const std::string& content_type) {
  std::string type = content_type.substr(0, content_type.find(';'));
  while (type.ends_with(' ')) type.pop_back();
  return in_small_letters(type);
}

/// The parameters behind the question mark.
class Query {
 public:
  explicit Query(const std::map<std::string, std::string>& given) : given_(given) {
    const std::vector<std::string_view> known{"version", "output", "shape", "type", "normalized"};
    for (const auto& [name, value] : given) {
      if (contains(known, name)) continue;
      refuse(400, "there is no parameter \"{}\"{}", shortened(name),
             did_you_mean(name.substr(0, 80), known));
    }
  }

  /// The parameter, or the header in its place.
  std::string text(const char* name, const std::string& otherwise = {}) const {
    const auto found = given_.find(name);
    return found == given_.end() ? otherwise : found->second;
  }
  bool is_true(const char* name) const {
    const std::string value = text(name, "false");
    if (value == "true" || value == "1") return true;
    if (value == "false" || value == "0") return false;
    refuse(400, "{} is \"{}\"; true or false is required", name, shortened(value));
  }
  Output output(Output otherwise) const {
    const std::string value = text("output");
    if (value.empty()) return otherwise;
    if (value == "logits") return Output::logits;
    if (value == "probabilities") return Output::probabilities;
    refuse(400, "the output \"{}\" is unknown; choose logits or probabilities", shortened(value));
  }

 private:
  const std::map<std::string, std::string>& given_;
};

Instances instances_of(const Request& request, const Query& query, const InputForm& form,
                       bool is_raw) {
  const bool is_normalized = query.is_true("normalized");
  if (!is_raw) {
    for (const char* name : {"shape", "type"}) {
      if (!query.text(name).empty()) {
        refuse(400, "the parameter {} is for {}; JSON has it in its body", name, raw_type);
      }
    }
    Instances instances = parse_json(request.body, form);
    instances.normalized = instances.normalized || is_normalized;
    if (instances.are_objects && instances.normalized)
      refuse(400, "objects are not normalized; leave that out, or send lists");
    return instances;
  }
  const std::string type = query.text("type", request.type);
  Instances instances =
      parse_raw(request.body, form, type.empty() ? ElementType::f32 : element_type(type),
                query.text("shape", request.shape));
  instances.normalized = is_normalized;
  return instances;
}

Json described(const Standing& standing) {
  const auto since = std::chrono::system_clock::to_time_t(standing.since);
  return {{"version", standing.version->hash()},
          {"role", standing.role},
          {"share", standing.share},
          {"source", standing.version->source()},
          {"since", fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(since))}};
}

Json described(const ServedModel& model) {
  Json json{{"name", model.name()}, {"state", "ready"}};
  Json versions = Json::array();
  for (const Standing& standing : model.standings()) versions.push_back(described(standing));
  json["versions"] = std::move(versions);
  const auto standings = model.standings();
  if (standings.empty()) return json;
  const ModelVersion& version = *standings.front().version;
  json["model"] = version.spec().name;
  json["input"] = version.sample();
  json["loss"] = nn::name(version.loss());
  json[version.loss() == nn::Loss::cross_entropy ? "classes" : "outputs"] = version.classes();
  const Names& names = version.names();
  if (!names.classes.empty()) json["class_names"] = names.classes;
  if (!names.features.empty()) json["features"] = names.features;
  if (!names.target.empty()) json["target"] = names.target;
  if (const Normalizing& own = version.normalizing()) {
    json["normalization"] = {{"mean", own->mean}, {"stddev", own->stddev}};
  }
  return json;
}

void name_version(Reply& reply, const std::string& model, const ModelVersion& version) {
  reply.headers.emplace_back("X-Model-Name", model);
  reply.headers.emplace_back("X-Model-Version", version.hash());
}

/// NAME of /v1/models/NAME:predict.
std::string predicted_model(std::string_view path) {
  const std::size_t around = models_path.size() + 1 + predict_end.size();
  if (!path.starts_with(models_path) || !path.ends_with(predict_end) || path.size() < around)
    refuse(404, "\"{}\" is not a path of predictions", shortened(path));
  return std::string(path.substr(models_path.size() + 1, path.size() - around));
}

bool is_name(const std::string& name) {
  return !name.empty() && std::ranges::all_of(name, [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.';
  });
}

}  // namespace

Service::Service(const Limits& limits, const BatchOptions& batching)
    : limits_(limits),
      batcher_(batching, [this](const ModelVersion& version, std::size_t samples, double seconds) {
        metrics_.pass(version.hash(), samples, seconds);
      }) {
  metrics_.set_waiting([this] { return batcher_.waiting(); });
  metrics_.set_served([this] {
    std::set<std::string> hashes;
    for (const auto& model : models_) {
      for (const Standing& standing : model->standings()) hashes.insert(standing.version->hash());
    }
    return hashes;
  });
}

ServedModel& Service::add(const std::string& name, std::optional<double> new_share) {
  require(is_name(name), ErrorKind::argument,
          "\"{}\" cannot be a model's name; letters, digits, \"-\", \"_\" and \".\" are allowed",
          printable(name));
  require(find(name) == nullptr, ErrorKind::argument, "there are two models {}; choose other names",
          name);
  return *models_.emplace_back(std::make_unique<ServedModel>(name, new_share));
}

ServedModel* Service::find(const std::string& name) const {
  for (const auto& model : models_) {
    if (model->name() == name) return model.get();
  }
  return nullptr;
}

ServedModel& Service::existing(const std::string& name) const {
  ServedModel* model = find(name);
  if (model != nullptr) return *model;
  std::vector<std::string_view> names;
  for (const auto& each : models_) names.push_back(each->name());
  refuse(404, "there is no model \"{}\"{}", shortened(name),
         did_you_mean(name.substr(0, 80), names));
}

/// What is known of a request, also if it is refused.
struct Service::About {
  std::string path{};
  std::string model{};
  std::shared_ptr<const ModelVersion> version{};
  Batcher::Clock::time_point began = Batcher::Clock::now();
};

/// A request whose samples are with the batcher.
struct Service::Prediction {
  const ServedModel* model = nullptr;
  std::shared_ptr<const ModelVersion> version{};
  bool is_raw = false;
  Output output = Output::logits;
  std::size_t count = 0;
  std::future<std::vector<float>> logits{};
};

Reply Service::answer(const Request& request) {
  About about;
  about.path = request.path;
  return guarded(about, [&] { return route(request, about); });
}

std::function<Reply()> Service::begin(const Request& request) {
  struct Work {
    About about{};
    std::optional<Prediction> prediction{};
  };
  const auto work = std::make_shared<Work>();
  work->about.path = request.path;
  try {
    const std::string name = predicted_model(request.path);
    ServedModel& model = existing(name);
    work->about.model = name;
    work->prediction = begin(model, request, work->about, false);
  } catch (...) {
    const auto error = std::current_exception();
    return [this, work, error] {
      return guarded(work->about, [&]() -> Reply { std::rethrow_exception(error); });
    };
  }
  return [this, work] {
    return guarded(work->about, [&] { return finish(std::move(*work->prediction)); });
  };
}

/// Never throws: what `reply` throws becomes a reply.
Reply Service::guarded(About& about, const std::function<Reply()>& make_reply) {
  Reply reply;
  try {
    reply = make_reply();
  } catch (const Refusal& refusal) {
    reply = {.status = refusal.status(), .body = error_answer(refusal.what())};
    if (refusal.status() == 405) {
      reply.headers.emplace_back("Allow", about.path.ends_with(predict_end) ? "POST" : "GET");
    }
  } catch (const std::exception& error) {
    reply = {.status = 500, .body = error_answer(message_of(error))};
  }
  if (reply.status >= 400 && about.version) name_version(reply, about.model, *about.version);
  const std::chrono::duration<double> took = Batcher::Clock::now() - about.began;
  metrics_.request(about.model, reply.status, took.count());
  return reply;
}

Reply Service::route(const Request& request, About& about) {
  const std::string& path = request.path;
  if (path == "/healthz") return need_method(request, "GET"), health();
  if (path == "/metrics") {
    need_method(request, "GET");
    return {.content_type = "text/plain; version=0.0.4", .body = metrics_.text()};
  }
  if (path == models_path) return need_method(request, "GET"), list();
  if (path.starts_with(models_path) && path.substr(models_path.size(), 1) == "/") {
    std::string name = path.substr(models_path.size() + 1);
    const bool predicts = name.ends_with(predict_end);
    if (predicts) name.resize(name.size() - predict_end.size());
    ServedModel& found = existing(name);
    about.model = found.name();
    need_method(request, predicts ? "POST" : "GET");
    return predicts ? finish(begin(found, request, about, true)) : json_reply(described(found));
  }
  refuse(404,
         "there is no \"{}\"; paths are /v1/models, /v1/models/NAME, "
         "/v1/models/NAME:predict, /healthz and /metrics",
         shortened(path));
}

/// The version is chosen once, so that all parts of the answer are that version's.
Service::Prediction Service::begin(ServedModel& model, const Request& request, About& about,
                                   bool may_compute) {
  const std::string type = media_type(request.content_type);
  const bool is_raw = type == raw_type;
  if (!is_raw && type != json_type) {
    refuse(415, "the content type is \"{}\"; send {} or {} (curl: -H 'Content-Type: {}')",
           shortened(request.content_type), json_type, raw_type, json_type);
  }
  const Query query(request.query);
  const Output output = query.output(is_raw ? Output::logits : Output::probabilities);
  const std::string wanted = query.text("version");
  auto version = wanted.empty() ? model.choose() : model.find(wanted);
  if (version == nullptr) {
    refuse(404, "model {} has no version \"{}\" now", model.name(), shortened(wanted));
  }
  about.version = version;
  const Normalizing& normalizing = version->normalizing();
  InputForm form{version->sample(), limits_.most_instances, version->names().features};
  if (normalizing) form.means = normalizing->mean;
  Instances instances = instances_of(request, query, form, is_raw);
  const std::size_t count = instances.count;
  auto logits = batcher_.submit(version, version->inputs(std::move(instances)), count, may_compute);
  return {&model, std::move(version), is_raw, output, count, std::move(logits)};
}

Reply Service::finish(Prediction prediction) {
  const ServedModel& model = *prediction.model;
  const auto& version = prediction.version;
  const Output output = prediction.output;
  const bool is_raw = prediction.is_raw;
  const std::size_t count = prediction.count, classes = version->classes();
  const std::vector<float> logits = prediction.logits.get();
  metrics_.instances(model.name(), version->hash(), count);
  if (!std::ranges::all_of(logits, [](float x) { return std::isfinite(x); }))
    refuse(422, "an output of model {} is not finite; look at the values of the request",
           model.name());
  Reply reply;
  name_version(reply, model.name(), *version);
  if (!is_raw) {
    reply.body = json_answer(logits, classes, output, version->hash(), version->loss(),
                             version->names().classes);
    return reply;
  }
  reply.content_type = raw_type;
  reply.headers.emplace_back("X-Tensor-Shape", fmt::format("{}x{}", count, classes));
  reply.headers.emplace_back("X-Tensor-Output", name_of(output, version->loss()));
  reply.body = raw_answer(logits, classes, output, version->loss());
  return reply;
}

Reply Service::health() const {
  if (!ends_) return json_reply({{"status", "ok"}});
  Reply reply = json_reply({{"status", "ending"}});
  reply.status = 503;
  return reply;
}

Reply Service::list() const {
  Json all = Json::array();
  for (const auto& model : models_) all.push_back(described(*model));
  return json_reply({{"models", std::move(all)}});
}

}  // namespace fast::serve
