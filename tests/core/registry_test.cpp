#include "core/registry.hpp"

#include "support/catch.hpp"

using namespace fast;

namespace {

constexpr Named<int> entries[] = {{"ring", 2}, {"torus", 4}, {"complete", 0}};
constexpr Alias aliases[] = {{"circle", "ring"}};
constexpr Registry registry{entries, "shape: there is no \"{}\"; choose from {}, or a file",
                            aliases, ErrorKind::topology};

std::string error_of(std::string_view name) {
  try {
    registry.at(name);
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::topology);
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("a registry finds an entry by its name and by an alias") {
  CHECK(registry.at("torus").value == 4);
  CHECK(registry.find("circle") == &registry.at("ring"));
  CHECK(registry.find("Ring") == nullptr);
  CHECK(registry.find("") == nullptr);
}

TEST_CASE("a registry lists the names in its order and no alias") {
  CHECK(registry.names() == std::vector<std::string_view>{"ring", "torus", "complete"});
}

TEST_CASE("the error for an unknown name has the names and the one that is probably meant") {
  const std::string list = "choose from ring, torus, complete, or a file";
  CHECK(error_of("klein") == "shape: there is no \"klein\"; " + list);
  CHECK(error_of("rnig") == "shape: there is no \"rnig\"; " + list + "; did you mean \"ring\"?");
  CHECK(error_of("cirle") ==
        "shape: there is no \"cirle\"; " + list + "; did you mean \"circle\"?");
  CHECK(error_of("{}") == "shape: there is no \"{}\"; " + list);
}

TEST_CASE("a registry finds the entries that it was made of") {
  struct Made {
    std::string name;
    int value;
  };
  const std::vector<Made> made{{"one", 1}, {"two", 2}};
  const Registry<Made> numbers{made, "number: \"{}\" is unknown; choose one of {}"};
  CHECK(&numbers.at("two") == &made[1]);
  CHECK_THROWS_WITH(numbers.at("tow"),
                    "number: \"tow\" is unknown; choose one of one, two; did you mean "
                    "\"two\"?");
}
