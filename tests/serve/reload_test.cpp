// Models from files and directories, and what becomes of newer ones.
#include <fast/core/error.hpp>
#include <fstream>

#include <sys/resource.h>

#include "fast_serve/model_source.hpp"
#include "serve/models.hpp"
#include "support/catch.hpp"
#include "support/contents.hpp"
#include "support/temporary_directory.hpp"
#include "train/checkpoint/checkpoint.hpp"

using namespace fast;
using namespace fast::testing;
using serve::Becomes;
using serve::ModelSource;
using serve::ServedModel;

namespace {

const nn::ModelSpec digits = nn::mlp({784, 4, 10});
const train::Metadata digits_note =
    train::to_metadata({"mlp:4", "made-up", {1, 28, 28}, 10, {{0.25F}, {0.5F}}});

struct Watched {
  explicit Watched(const std::filesystem::path& path, std::optional<double> share = {})
      : model("digits", share),
        reloader([this](LogLevel, std::string_view text) { lines.emplace_back(text); }) {
    reloader.add(ModelSource(path, {}), model);
  }
  std::string version() { return model.choose()->hash(); }
  /// One look sees that a file has changed, the next one that it stays.
  void look_twice() {
    reloader.look();
    reloader.look();
  }
  std::vector<std::string> lines;
  ServedModel model;
  serve::Reloader reloader;
};

std::string hash_of(std::uint64_t seed) {
  return version_of(digits, seed, data::Normalization{{0.25F}, {0.5F}})->hash();
}

}  // namespace

TEST_CASE("a file that says it gives the model, the shape of samples and the normalization") {
  const TemporaryDirectory directory;
  save_model(directory / "m", digits, 1, digits_note);
  const auto version = ModelSource(directory / "m", {}).load();
  CHECK(version->sample() == nn::Shape{1, 28, 28});
  CHECK(version->normalizing()->mean == std::vector<float>{0.25F});
  CHECK(version->hash() == hash_of(1));
}

TEST_CASE("a file that does not say it is recognized, or taken as assumed") {
  const TemporaryDirectory directory;
  save_model(directory / "m", nn::lenet5(), 1);
  CHECK(ModelSource(directory / "m", {}).load()->spec().name == "lenet5");
  CHECK_FALSE(ModelSource(directory / "m", {}).load()->normalizing());
  const serve::AssumedNote assumed{"lenet", data::Normalization{{0.5F}, {2}}};
  CHECK(ModelSource(directory / "m", assumed).load()->normalizing()->stddev[0] == 2);
  CHECK_THROWS_AS(ModelSource(directory / "m", {"resnet20", {}}).load(), Error);
  save_model(directory / "odd", nn::ModelSpec{"odd", {4}, {nn::Dense{3}, nn::Silu{}, nn::Dense{2}}},
             1);
  CHECK(ModelSource(directory / "odd", {}).load()->spec().name == "mlp 4-3-2");
  CHECK_THROWS_WITH(ModelSource(directory / "none", {}).load(),
                    ContainsSubstring("none: there is no such file or directory; give a file of "
                                      "weights or the directory of a run"));
  CHECK_THROWS_WITH(ModelSource(directory.path(), {}).load(),
                    ContainsSubstring("whole checkpoint"));
}

TEST_CASE("a run's directory gives its newest model: the mean model or the mean of a checkpoint") {
  const TemporaryDirectory directory;
  {
    train::CheckpointWriter writer({.directory = directory / "checkpoints",
                                    .rank = 0,
                                    .workers = 1,
                                    .may_write = {},
                                    .log = {}});
    nn::Network<float> network(digits, 3);
    auto views = all_tensors(network);
    for (TensorView& view : views) view.name.insert(0, train::model_prefix);
    writer.save(7, views, digits_note);
    REQUIRE(writer.finish().empty());
  }
  const ModelSource source(directory.path(), {});
  CHECK(source.load()->hash() == hash_of(3));
  const std::string before = source.fingerprint();
  save_model(directory / "mean-model.safetensors", digits, 1, digits_note);
  CHECK(source.fingerprint() != before);
  CHECK(source.load()->hash() == hash_of(1));
}

TEST_CASE("a newer file replaces the version once it stays the same between two looks") {
  const TemporaryDirectory directory;
  save_model(directory / "m", digits, 1, digits_note);
  Watched watched(directory / "m");
  CHECK(watched.version() == hash_of(1));
  save_model(directory / "m", digits, 2, digits_note);
  watched.reloader.look();
  CHECK(watched.version() == hash_of(1));
  watched.reloader.look();
  CHECK(watched.version() == hash_of(2));
  CHECK(watched.lines.size() == 1);
  CHECK(watched.model.find(hash_of(1)) == nullptr);
}

TEST_CASE("a file that is cut, missing or another model is refused once, and the version stays") {
  const TemporaryDirectory directory;
  const auto file = directory / "m";
  save_model(file, digits, 1, digits_note);
  Watched watched(file);
  const std::string whole = contents(file);
  SECTION("cut") { std::ofstream(file, std::ios::binary) << whole.substr(0, whole.size() / 2); }
  SECTION("of other classes") {
    save_model(file, nn::mlp({784, 4, 9}), 1,
               train::to_metadata({"mlp:4", "", {1, 28, 28}, 9, {}}));
  }
  SECTION("of other samples") { save_model(file, nn::mlp({9, 10}), 1); }
  SECTION("no model") { std::ofstream(file, std::ios::binary) << "hello"; }
  watched.look_twice();
  watched.look_twice();
  CHECK(watched.version() == hash_of(1));
  CHECK(watched.lines.size() == 1);
  CHECK_THAT(watched.lines.at(0), ContainsSubstring("refused"));
  save_model(file, digits, 2, digits_note);
  watched.look_twice();
  CHECK(watched.version() == hash_of(2));
}

TEST_CASE("a file that cannot be opened for a while is read later, and that is said once") {
  const TemporaryDirectory directory;
  const auto file = directory / "m";
  save_model(file, digits, 1, digits_note);
  Watched watched(file);
  save_model(file, digits, 2, digits_note);
  rlimit files{};
  REQUIRE(getrlimit(RLIMIT_NOFILE, &files) == 0);
  const rlimit none{3, files.rlim_max};
  REQUIRE(setrlimit(RLIMIT_NOFILE, &none) == 0);
  for (int i = 0; i < 3; ++i) watched.look_twice();
  REQUIRE(setrlimit(RLIMIT_NOFILE, &files) == 0);
  CHECK(watched.version() == hash_of(1));
  REQUIRE(watched.lines.size() == 1);
  CHECK_THAT(watched.lines[0], ContainsSubstring("not read yet"));
  watched.reloader.look();
  CHECK(watched.version() == hash_of(2));
}

TEST_CASE("a file that is gone changes nothing, and one that still grows is not read") {
  const TemporaryDirectory directory;
  const auto file = directory / "m";
  save_model(file, digits, 1, digits_note);
  Watched watched(file);
  save_model(directory / "next", digits, 2, digits_note);
  const std::string whole = contents(directory / "next");
  std::filesystem::remove(file);
  watched.look_twice();
  std::ofstream out(file, std::ios::binary);
  for (std::size_t at = 0; at < whole.size(); at += 3000) {
    out << whole.substr(at, 3000) << std::flush;
    watched.reloader.look();
  }
  CHECK(watched.lines.empty());
  CHECK(watched.version() == hash_of(1));
  watched.look_twice();
  CHECK(watched.version() == hash_of(2));
}

TEST_CASE("with a share, the version before stays and has the rest of the requests") {
  const TemporaryDirectory directory;
  save_model(directory / "m", digits, 1, digits_note);
  Watched watched(directory / "m", 0.25);
  for (int i = 0; i < 10; ++i) CHECK(watched.version() == hash_of(1));
  save_model(directory / "m", digits, 2, digits_note);
  watched.look_twice();
  int newer = 0;
  for (int i = 0; i < 400; ++i) newer += watched.version() == hash_of(2) ? 1 : 0;
  CHECK(newer == 100);
  save_model(directory / "m", digits, 3, digits_note);
  watched.look_twice();
  CHECK(watched.model.find(hash_of(1)) == nullptr);
  CHECK(watched.model.find(hash_of(2)) != nullptr);
  CHECK(watched.model.standings()[0].version->hash() == hash_of(3));
}

TEST_CASE("two places give the two versions, and each is replaced by its own") {
  ServedModel model("digits", 0.5);
  CHECK(model.install(version_of(digits, 1), Becomes::old_one));
  CHECK(model.install(version_of(digits, 2), Becomes::new_one));
  CHECK_FALSE(model.install(version_of(digits, 2), Becomes::new_one));
  CHECK(model.install(version_of(digits, 3), Becomes::new_one));
  const auto standings = model.standings();
  REQUIRE(standings.size() == 2);
  CHECK(standings[0].version->hash() == version_of(digits, 3)->hash());
  CHECK(standings[1].version->hash() == version_of(digits, 1)->hash());
  CHECK(standings[0].share + standings[1].share == 1);
}
