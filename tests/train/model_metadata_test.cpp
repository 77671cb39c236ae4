#include <cmath>
#include <fast/core/error.hpp>
#include <fast/train/model_metadata.hpp>
#include <limits>

#include "support/catch.hpp"

using namespace fast;
using train::ModelMetadata;
using train::shape_of;

namespace {

const ModelMetadata cifar_note{
    "resnet20", "cifar", {3, 32, 32}, 10, {{0.1F, 0.2F, 1.0F / 3}, {0.25F}}};

}  // namespace

TEST_CASE("a note is read from metadata as it was written, bit for bit") {
  const auto read = train::model_note(to_metadata(cifar_note), "m");
  REQUIRE(read);
  CHECK(read->model == "resnet20");
  CHECK(read->data == "cifar");
  CHECK(read->input == cifar_note.input);
  CHECK(read->classes == 10);
  CHECK(read->normalization.mean == cifar_note.normalization.mean);
  CHECK(read->normalization.stddev == cifar_note.normalization.stddev);
}

TEST_CASE("origins are read as they were written, one a channel") {
  ModelMetadata note{"mlp", "", {2}, 3, {{0, 1}, {1, 1}, {1700000000.25, 0}}};
  const train::Metadata metadata = to_metadata(note);
  CHECK(train::model_note(metadata, "m")->normalization.origins == note.normalization.origins);
  CHECK(to_metadata(cifar_note).count("fast.origins") == 0);
  note.normalization.origins.pop_back();
  CHECK_THROWS_WITH(train::model_note(to_metadata(note), "m"), ContainsSubstring("fast.origins"));
}

TEST_CASE("the scale of targets is read as it was written, a mean and a deviation each") {
  ModelMetadata note{"mlp", "", {2}, 0, {}};
  CHECK(to_metadata(note).count("fast.target_mean") == 0);
  note.normalization.target_mean = {5e5F, -0.1F};
  note.normalization.target_stddev = {1e-3F, 7};
  train::Metadata metadata = to_metadata(note);
  CHECK(train::model_note(metadata, "m")->normalization.target_mean ==
        note.normalization.target_mean);
  CHECK(train::model_note(metadata, "m")->normalization.target_stddev ==
        note.normalization.target_stddev);
  for (const char* bad : {"1", "1,0", "1,-1", "1,nan", ""}) {
    metadata["fast.target_stddev"] = bad;
    CHECK_THROWS_WITH(train::model_note(metadata, "m"), ContainsSubstring("fast.target_stddev"));
  }
}

TEST_CASE("a run without names has a note without names") {
  const train::Metadata metadata = train::to_metadata({"", "", {16}, 4, {}});
  CHECK(metadata.size() == 4);
  CHECK(train::model_note(metadata, "m")->model.empty());
}

TEST_CASE("metadata without a note has none") {
  CHECK_FALSE(train::model_note({{"fast.epoch", "3"}}, "m"));
  CHECK_FALSE(train::model_note({}, "m"));
}

TEST_CASE("a note that cannot be read is refused with file and entry") {
  const auto refused = [](const char* key, const char* value) {
    train::Metadata metadata = to_metadata(cifar_note);
    metadata[key] = value;
    INFO(key << " " << value);
    CHECK_THROWS_WITH(train::model_note(metadata, "a.safetensors"),
                      ContainsSubstring("a.safetensors") && ContainsSubstring(key));
  };
  for (const char* shape : {"", "x", "1x", "0x2", "-1", "1x2x3x4x5x6x7x8x9", "1048576x1048576"}) {
    refused("fast.input", shape);
  }
  for (const char* classes : {"", "-2", "ten", "3000000000"}) refused("fast.classes", classes);
  for (const char* mean : {"", "a", "0.1,", "nan", "inf", "1e99"}) refused("fast.mean", mean);
  refused("fast.stddev", "0");
  refused("fast.stddev", "0.5,-1");
}

TEST_CASE("shapes are texts") {
  CHECK(train::shape_text({1, 28, 28}) == "1x28x28");
  CHECK(shape_of("64x784") == std::vector<std::int64_t>{64, 784});
  CHECK(shape_of("7") == std::vector<std::int64_t>{7});
}

TEST_CASE("a note has names of features, classes and target, and the bound of huber") {
  ModelMetadata note{"mlp", "", {2}, 2, {}};
  note.features = {"age", "a \"b\", c"};
  note.class_names = {"reject", "accept"};
  note.target = "kind";
  const auto read = train::model_note(to_metadata(note), "m");
  REQUIRE(read);
  CHECK(read->features == note.features);
  CHECK(read->class_names == note.class_names);
  CHECK(read->target == "kind");
  CHECK(train::task_text(*read) == "classification, 2 classes: reject, accept");
  CHECK(to_metadata(note).count("fast.huber_delta") == 0);
  note.class_names.emplace_back("a third");
  CHECK_THROWS_WITH(train::model_note(to_metadata(note), "m"), ContainsSubstring("class_names"));

  ModelMetadata numbers{"mlp", "", {2}, 0, {}};
  numbers.target = "price";
  numbers.loss = "huber";
  numbers.huber_delta = 1.0 / 3;
  CHECK(train::model_note(to_metadata(numbers), "m")->huber_delta == 1.0 / 3);
  CHECK(train::task_text(numbers) == "regression, price");
  numbers.huber_delta = 0;
  CHECK_THROWS_WITH(train::model_note(to_metadata(numbers), "m"), ContainsSubstring("huber_delta"));
}
