#include <cstring>
#include <fast/core/error.hpp>
#include <fast/observe/tensorboard.hpp>
#include <fstream>
#include <map>
#include <protozero/pbf_reader.hpp>
#include <sstream>

#include "observe/tensorboard_record.hpp"
#include "support/catch.hpp"
#include "support/temporary_directory.hpp"

using namespace fast;
using protozero::pbf_reader;

namespace {

struct Value {
  std::int64_t step = 0;
  float number = 0;
  double count = 0, min = 0, max = 0, sum = 0;
  std::vector<double> limits, buckets;
};

std::string only_file_in(const std::filesystem::path& directory) {
  std::string content;
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    CHECK(entry.path().filename().string().rfind("events.out.tfevents.", 0) == 0);
    std::ostringstream text;
    text << std::ifstream(entry.path(), std::ios::binary).rdbuf();
    content = text.str();
    ++files;
  }
  REQUIRE(files == 1);
  return content;
}

/// The bytes of all records, whose check sums are right.
std::vector<std::string> records_of(const std::string& content) {
  std::vector<std::string> found;
  for (std::size_t at = 0; at < content.size();) {
    std::uint64_t length = 0;
    std::memcpy(&length, content.data() + at, sizeof length);
    found.push_back(content.substr(at + 12, length));
    REQUIRE(content.substr(at, length + 16) == observe::record(found.back()));
    at += length + 16;
  }
  return found;
}

std::vector<double> doubles_of(pbf_reader& reader) {
  const auto range = reader.get_packed_double();
  return {range.begin(), range.end()};
}

void read_histogram(pbf_reader reader, Value& value) {
  while (reader.next()) {
    switch (reader.tag()) {
      case 1:
        value.min = reader.get_double();
        break;
      case 2:
        value.max = reader.get_double();
        break;
      case 3:
        value.count = reader.get_double();
        break;
      case 4:
        value.sum = reader.get_double();
        break;
      case 6:
        value.limits = doubles_of(reader);
        break;
      case 7:
        value.buckets = doubles_of(reader);
        break;
      default:
        reader.skip();
    }
  }
}

/// The step of the event that says that the run begins or goes on; -1: there is none. No value
/// comes before it.
std::int64_t start_in(const std::string& content) {
  std::int64_t step = 0;
  for (const std::string& bytes : records_of(content)) {
    for (pbf_reader event(bytes); event.next();) {
      if (event.tag() == 2) {
        step = event.get_int64();
      } else if (event.tag() == 7) {
        pbf_reader session = event.get_message();
        REQUIRE(session.next(1));
        CHECK(session.get_enum() == 1);
        return step;
      } else {
        CHECK(event.tag() != 5);
        event.skip();
      }
    }
  }
  return -1;
}

/// The latest value of each tag.
std::map<std::string, Value> values_in(const std::filesystem::path& directory) {
  std::map<std::string, Value> found;
  for (const std::string& bytes : records_of(only_file_in(directory))) {
    std::int64_t step = 0;
    for (pbf_reader event(bytes); event.next();) {
      if (event.tag() == 2) {
        step = event.get_int64();
      } else if (event.tag() == 5) {
        pbf_reader summary = event.get_message();
        REQUIRE(summary.next(1));
        Value value;
        std::string tag;
        for (pbf_reader one = summary.get_message(); one.next();) {
          if (one.tag() == 1) {
            tag = one.get_string();
          } else if (one.tag() == 2) {
            value.number = one.get_float();
          } else if (one.tag() == 5) {
            read_histogram(one.get_message(), value);
          } else {
            one.skip();
          }
        }
        value.step = step;
        found[tag] = value;
      } else {
        event.skip();
      }
    }
  }
  return found;
}

}  // namespace

TEST_CASE("scalars come with their round") {
  const testing::TemporaryDirectory directory;
  const auto board = observe::tensorboard(directory / "run");
  board->on_scalar({"train/loss", 0.5, 0, 17, Clock::now()});
  board->on_scalar({"train/loss", 0.25, 0, 18, Clock::now()});
  const auto values = values_in(directory / "run");
  CHECK(values.at("train/loss").number == 0.25F);
  CHECK(values.at("train/loss").step == 18);
}

TEST_CASE("a file begins with the round in which the run goes on") {
  const testing::TemporaryDirectory directory;
  const auto board = observe::tensorboard(directory / "run");
  CHECK(start_in(only_file_in(directory / "run")) == -1);
  board->on_scalar({"train/loss", 0.5, 0, 41, Clock::now()});
  board->on_scalar({"train/loss", 0.5, 0, 42, Clock::now()});
  CHECK(start_in(only_file_in(directory / "run")) == 41);
}

TEST_CASE("a histogram counts every finite value in a bucket above it") {
  const testing::TemporaryDirectory directory;
  const auto board = observe::tensorboard(directory.path());
  const std::vector<float> values{-1, 0, 0, 3, std::nanf("")};
  board->on_values({"weights/w", values, 0, 0, 5});
  const Value all = values_in(directory.path()).at("weights/w");
  CHECK(all.count == 4);
  CHECK(all.min == -1);
  CHECK(all.max == 3);
  CHECK(all.sum == 2);
  REQUIRE(all.limits.size() == all.buckets.size());
  const auto up_to = [&](double limit) {
    double count = 0;
    for (std::size_t b = 0; b < all.limits.size(); ++b) {
      if (all.limits[b] <= limit) count += all.buckets[b];
    }
    return count;
  };
  CHECK(up_to(-.9) == 1);
  CHECK(up_to(.1) == 3);
  CHECK(up_to(3.01) == 4);
}

TEST_CASE("equal values have a histogram, too, and none at all have an empty one") {
  const testing::TemporaryDirectory directory;
  const auto board = observe::tensorboard(directory.path());
  const std::vector<float> equal(7, 2.F);
  board->on_values({"equal", equal, 0, 0, 1});
  board->on_values({"none", {}, 0, 0, 1});
  const auto values = values_in(directory.path());
  CHECK(values.at("equal").count == 7);
  CHECK(values.at("none").count == 0);
}

TEST_CASE("an epoch ends with the seconds of its phases and the ages of what was read") {
  const testing::TemporaryDirectory directory;
  const auto board = observe::tensorboard(directory.path());
  const Clock::time_point began = Clock::now();
  const auto after = [&](int ms) { return began + std::chrono::milliseconds(ms); };
  board->on_phase({Phase::wait, 0, 1, -1, began, after(250)});
  board->on_phase({Phase::wait, 0, 1, 3, began, after(250)});  // part of the one above
  MessageEvent read{MessageEvent::Kind::read, 0, 3, 1, 1, 2, true, began};
  board->on_message(read);
  board->on_message(read);
  read.age = 0;
  board->on_message(read);
  read.kind = MessageEvent::Kind::published;
  board->on_message(read);
  board->on_milestone({MilestoneEvent::Kind::epoch_ended, "", 0, 0, 90, began, after(1)});
  const auto values = values_in(directory.path());
  CHECK(values.at("seconds/wait").number == Approx(.25));
  CHECK(values.at("seconds/mix").number == 0);
  const Value& ages = values.at("ages");
  CHECK(ages.step == 90);
  CHECK(ages.count == 3);
  CHECK(ages.min == 0);
  CHECK(ages.max == 2);
  CHECK(ages.buckets[0] == 1);
  CHECK(ages.buckets[2] == 2);
}

TEST_CASE("observers of one process have a file each in the same directory") {
  const testing::TemporaryDirectory directory;
  std::vector<std::shared_ptr<Observer>> boards;
  for (int worker = 0; worker < 4; ++worker) {
    boards.push_back(observe::tensorboard(directory.path()));
    boards.back()->on_scalar({"loss", worker / 4.0, worker, 1, Clock::now()});
  }
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(directory.path())) {
    std::ostringstream text;
    text << std::ifstream(entry.path(), std::ios::binary).rdbuf();
    CHECK(records_of(text.str()).size() == 3);  // the version, the beginning, the loss
    ++files;
  }
  CHECK(files == 4);
}

TEST_CASE("a directory that cannot be made is refused; a full disk is told of once") {
  CHECK_THROWS_WITH(observe::tensorboard("/proc/none/run"),
                    Catch::Matchers::Contains("tensorboard: the directory /proc/none"));
}
