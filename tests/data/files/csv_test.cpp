#include <algorithm>
#include <cmath>
#include <fast/core/error.hpp>
#include <fast/data/formats.hpp>
#include <fstream>
#include <map>
#include <set>

#include "data/files/csv_table.hpp"
#include "support/catch.hpp"
#include "support/temporary_directory.hpp"

using namespace fast;
using fast::testing::TemporaryDirectory;
using Records = std::vector<std::vector<std::string>>;

namespace {

Records records_of(std::string_view text) {
  data::CsvReader reader(text, "t.csv");
  Records records;
  for (std::vector<std::string_view> fields; reader.next(fields);)
    records.emplace_back(fields.begin(), fields.end());
  return records;
}

data::LoadOptions predict(const std::string& target) {
  data::LoadOptions options;
  options.target = target;
  options.test_share = 0.25;
  return options;
}

data::Splits parsed(std::string_view text, const data::LoadOptions& options) {
  return data::parse_csv(text, "t.csv", options);
}

std::vector<float> raw_values(const data::Dataset& part) {
  const auto values = std::get<std::span<const float>>(part.values());
  return {values.begin(), values.end()};
}

/// Of both parts, which together have all samples.
template <class T>
std::vector<T> sorted(std::span<const T> a, std::span<const T> b) {
  std::vector<T> all(a.begin(), a.end());
  all.insert(all.end(), b.begin(), b.end());
  std::sort(all.begin(), all.end());
  return all;
}

constexpr std::string_view flowers =
    "length,width,note,kind\n1,10,a,rose\n2,20,b,iris\n3,30,c,rose\n4,40,d,aster\n";

}  // namespace

TEST_CASE("fields of a CSV text are split as RFC 4180 says") {
  CHECK(records_of("a,b\r\n1,2\r\n") == Records{{"a", "b"}, {"1", "2"}});
  CHECK(records_of("a,b\n1,2") == Records{{"a", "b"}, {"1", "2"}});
  CHECK(records_of("\"a,b\",\"c \"\"d\"\"\"\n,\n") == Records{{"a,b", "c \"d\""}, {"", ""}});
  CHECK(records_of("\"two\nlines\",x\ny,z\n") == Records{{"two\nlines", "x"}, {"y", "z"}});
  CHECK(records_of("\xef\xbb\xbf"
                   "a\n\n\n1\n\n") == Records{{"a"}, {"1"}});
  CHECK(records_of("\"\"") == Records{{""}});
  CHECK(records_of("").empty());
}

TEST_CASE("a record knows the line in which it begins") {
  data::CsvReader reader("a\n\"x\ny\"\n\nb\n", "t.csv");
  std::vector<std::string_view> fields;
  std::vector<std::size_t> lines;
  while (reader.next(fields)) lines.push_back(reader.line());
  CHECK(lines == std::vector<std::size_t>{1, 2, 5});
}

TEST_CASE("texts that are no CSV name their line") {
  CHECK_THROWS_WITH(records_of("a\nb,\"c\nd"),
                    ContainsSubstring("t.csv:2: a quote without an end"));
  CHECK_THROWS_WITH(records_of("a\n\"b\"c\n"), ContainsSubstring("t.csv:2: text after a quoted"));
  CHECK_THROWS_WITH(records_of(std::string_view("a\nb\0c\n", 6)),
                    ContainsSubstring("t.csv:2: a NUL byte"));
  CHECK_THROWS_WITH(
      records_of("a,b\n1,\"2\n3,4\n5,\"6\n"),
      ContainsSubstring("t.csv:4: text after the quoted field that begins in line 2"));
  CHECK_THROWS_WITH(records_of("a,b\r1,2\r"),
                    ContainsSubstring("t.csv:1: a carriage return alone"));
}

TEST_CASE("columns that are numbers are features, and texts are classes by name") {
  const data::Splits splits = parsed(flowers, predict("kind"));
  CHECK(splits.train.size() == 3);
  CHECK(splits.test.size() == 1);
  CHECK(splits.train.classes() == 3);  // aster, iris, rose
  CHECK(splits.test.classes() == 3);
  CHECK(splits.train.sample_shape() == std::vector<std::int64_t>{2});
  CHECK(sorted(splits.train.labels(), splits.test.labels()) == std::vector{0, 1, 2, 2});
  const std::vector<float> values = raw_values(splits.train);
  for (std::size_t i = 0; i < splits.train.size(); ++i) {
    CHECK(values[2 * i + 1] == 10 * values[2 * i]);
    const int kind = values[2 * i] == 2 ? 1 : values[2 * i] == 4 ? 0 : 2;
    CHECK(splits.train.labels()[i] == kind);
  }
  CHECK(splits.normalization.mean == splits.train.measure().mean);
  CHECK(splits.normalization.mean.size() == 2);
}

TEST_CASE("spaces around the name of a class make no other class") {
  const data::Splits splits = parsed("x,kind\n1, yes\n2,yes\n3,no \n4,no\n", predict("kind"));
  CHECK(splits.train.classes() == 2);
  CHECK(splits.class_names == std::vector<std::string>{"no", "yes"});
}

TEST_CASE("features are taken in the order in which they are named") {
  data::LoadOptions options = predict("kind");
  options.features = {"width", "length"};
  const std::vector<float> values = raw_values(parsed(flowers, options).train);
  CHECK(values[0] == 10 * values[1]);
}

TEST_CASE("numbers are predicted as numbers, or are classes if they are whole") {
  constexpr std::string_view text = "x,y,k\n1,0.5,0\n2,1.5,2\n3,2.5,1\n4,3.5,0\n";
  const data::Splits prices = parsed(text, predict("y"));
  CHECK(prices.train.classes() == 0);
  CHECK(prices.train.target_size() == 1);
  CHECK(sorted(prices.train.targets(), prices.test.targets()) ==
        std::vector<float>{0.5, 1.5, 2.5, 3.5});
  CHECK(parsed(text, predict("k")).train.classes() == 3);
  data::LoadOptions options = predict("k");
  options.classes = 7;
  CHECK(parsed(text, options).test.classes() == 7);
  options.classes = 2;
  CHECK_THROWS_WITH(parsed(text, options),
                    ContainsSubstring("t.csv:3: column 3 (k): \"2\" is not a class"));
  options.targets = data::TargetKind::numbers;
  CHECK(parsed(text, options).train.targets().size() == 3);
  options = predict("y");
  options.targets = data::TargetKind::classes;
  CHECK_THROWS_WITH(parsed(text, options),
                    ContainsSubstring("t.csv:2: column 2 (y): \"0.5\" is not a class"));
}

TEST_CASE("a missing target is named, and numbers beside NA are no classes") {
  CHECK_THROWS_WITH(parsed("x,y\n1,0.5\n2,\n3,1.5\n", predict("y")),
                    ContainsSubstring("t.csv:3: column 2 (y): the target is missing"));
  CHECK_THROWS_WITH(parsed("x,y\n1,0.5\n2,NA\n3,1.5\n", predict("y")),
                    ContainsSubstring("t.csv:3: column 2 (y): the target is missing (\"NA\")"));
  CHECK_THROWS_WITH(parsed("x,y\n1,0\n2,1\n3,n/a\n4,1\n", predict("y")),
                    ContainsSubstring("t.csv:4: column 2 (y): the target is missing (\"n/a\")"));
  CHECK_THROWS_WITH(parsed("x,y\n1,0.5\n2,high\n3,1.5\n", predict("y")),
                    ContainsSubstring("t.csv:3: column 2 (y): \"high\" is not a finite number"));
  CHECK(parsed("x,y\n1,None\n2,left\n3,right\n4,None\n", predict("y")).train.classes() == 3);
  std::string classes = "x,y\n";
  for (int i = 0; i < 20; ++i) classes += fmt::format("{},{}\n", i, i % 2 == 0 ? "yes" : "no");
  CHECK(parsed(classes, predict("y")).train.classes() == 2);
}

TEST_CASE("the test part of a table is chosen by its seed alone") {
  std::string text = "x,y\n";
  for (int i = 0; i < 100; ++i) text += fmt::format("{},{}\n", i, i % 5);
  data::LoadOptions options = predict("y");
  const data::Splits first = parsed(text, options), again = parsed(text, options);
  CHECK(first.test.size() == 25);
  CHECK(raw_values(first.test) == raw_values(again.test));
  // Each row is in one part. The rows are mixed, so that a part of a part is a fair sample of a
  // sorted table.
  const std::vector<float> kept = raw_values(first.train), held_out = raw_values(first.test);
  std::set<float> all(kept.begin(), kept.end());
  all.insert(held_out.begin(), held_out.end());
  CHECK(all.size() == 100);
  CHECK_FALSE(std::is_sorted(kept.begin(), kept.end()));
  options.split_seed = 2;
  CHECK(raw_values(first.test) != raw_values(parsed(text, options).test));
  options.limit = 10;
  CHECK(parsed(text, options).train.size() == 10);
  CHECK(parsed(text, options).test.size() == 10);
}

TEST_CASE("a second file is the test part, with the columns of the first") {
  const TemporaryDirectory directory;
  std::ofstream(directory / "test.csv") << "kind,width,length\nrose,7,8\niris,9,10\n";
  data::LoadOptions options = predict("kind");
  options.test_share.reset();
  options.test_data = (directory / "test.csv").string();
  const data::Splits splits = parsed(flowers, options);
  CHECK(splits.train.size() == 4);
  CHECK(raw_values(splits.test) == std::vector<float>{8, 7, 10, 9});
  CHECK(splits.test.labels()[0] == 2);
  std::ofstream(directory / "test.csv") << "kind,width,length\nrose,7,8\ntulip,9,10\n";
  CHECK_THROWS_WITH(parsed(flowers, options),
                    ContainsSubstring("test.csv:3: column 1 (kind): class \"tulip\" is not among"));
  options.test_data = (directory / "none.csv").string();
  CHECK_THROWS_WITH(parsed(flowers, options), ContainsSubstring("there is no such file"));
}

TEST_CASE("an error lists some of many columns") {
  std::string header = "c0";
  for (int i = 1; i < 50; ++i) header += fmt::format(",c{}", i);
  CHECK_THROWS_WITH(parsed(header + "\n", predict("price")), ContainsSubstring("no rows follow"));
  std::string row = "0";
  for (int i = 1; i < 50; ++i) row += ",0";
  CHECK_THROWS_WITH(
      parsed(header + "\n" + row + "\n", predict("price")),
      ContainsSubstring("among its 50: c0, c1,") && Catch::Matchers::EndsWith("c11, ..."));
}

TEST_CASE("bad tables are refused with file, line and column") {
  const auto refused = [](std::string_view text, const char* target, const char* message) {
    CHECK_THROWS_WITH(parsed(text, predict(target)), ContainsSubstring(message));
  };
  refused("a,b\n1,2\n1\n", "b", "t.csv:3: 1 fields, the first line names 2 columns");
  refused("a,b\n1,2\nx,2\n", "b", "t.csv:3: column 1 (a): \"x\" is not a number");
  refused("a,b\n1,2\ninf,2\n", "b", "t.csv:3: column 1 (a): \"inf\" is not a finite number");
  refused("a,b\n1,2\n1e99,2\n", "b", "t.csv:3: column 1 (a): \"1e99\" is not a finite number");
  refused("a,b\n1,2.5\n1,nan\n", "b", "t.csv:3: column 2 (b): the target is missing (\"nan\")");
  refused("length,b\n1,2\n", "lenght",
          "no column \"lenght\" among its 2; did you mean \"length\"?");
  refused("length,width,b\n1,2,3\n", "cost", "no column \"cost\" among its 3: length, width, b");
  refused("a,a,b\n1,2,3\n", "a", "two columns are called \"a\"");
  refused("a,a,b\n1,2,3\n", "b", "t.csv:1: two columns are called \"a\"");
  refused("a,a,b\nx,p,3\nz,q,4\n", "b", "t.csv:1: two columns are called \"a\"");
  refused("a,a,b\n1,p,3\n2,q,4\n", "b", "t.csv:1: two columns are called \"a\"");
  refused("a,b\nx,1\n", "b", "no other column than \"b\" has numbers");
  refused("a,b\n", "b", "no rows follow");
  refused("", "b", "the file is empty");
  refused("a,b\n1,2\n", "b", "1 samples is 0 samples to test");
  refused("a,b\n1,2\n", "", "--target");
  data::LoadOptions options = predict("b");
  options.features = {"a", "b"};
  CHECK_THROWS_WITH(parsed("a,b\n1,2\n", options), ContainsSubstring("the target and a feature"));
}

TEST_CASE("a column that is no feature is named with the reason") {
  const data::Splits splits = parsed(
      "ok,share,gone,note,,x,y,one\nTrue,12%,NA,a,1,1,0,z\nfalse,1%,#N/A,b,2,2,1,z\n"
      "FALSE,2%,.,c,3,5,0,z\ntrue,3%,-,d,4,4,1,z\n",
      predict("y"));
  CHECK(splits.features == std::vector<std::string>{"ok", "x"});
  CHECK(splits.notes ==
        std::vector<std::string>{"column not used: column 5: it has no name",
                                 "column not used: share: each row has another text, as \"12%\"",
                                 "column not used: gone: all values are missing",
                                 "column not used: note: each row has another text, as \"a\"",
                                 "column not used: one: all rows have \"z\""});
  data::LoadOptions chosen = predict("y");
  chosen.features = {"x"};
  CHECK(parsed("a,x,y\nt,1,0\nu,2,1\n", chosen).notes.empty());
}

namespace {

/// What training sees of the column `feature`, by the number in the first column.
std::map<int, float> seen_by_training(const data::Splits& splits, std::size_t feature) {
  std::map<int, float> seen;
  const float first_scale = splits.normalization.stddev[0];
  for (const data::Dataset* part : {&splits.train, &splits.test}) {
    for (std::size_t i = 0; i < part->size(); ++i) {
      std::vector<float> row(part->sample_size());
      part->gather({&i, 1}, splits.normalization, row);
      seen[static_cast<int>(std::lround(row[0] * first_scale + splits.normalization.mean[0]))] =
          row[feature];
    }
  }
  return seen;
}

}  // namespace

TEST_CASE("large values with small differences keep them, in both parts") {
  struct Case {
    double begin, step;
  };
  // Seconds since 1970, milliseconds, a large negative value, a thousandth beside 10 000.
  for (const auto [begin, step] : {Case{1.7e9, 1}, Case{1.7e12, 250}, Case{-3e9, 0.5},
                                   Case{10000.3, 0.001}, Case{1e-19, 1e-19}, Case{7, 1e5}}) {
    constexpr int rows = 200;
    std::string text = "row,t,y\n";
    for (int i = 0; i < rows; ++i)
      text += fmt::format("{},{:.17g},{}\n", i, begin + step * i, i % 2);
    const data::Splits splits = parsed(text, predict("y"));
    // By closed form: the mean of the training part's rows, and their deviation.
    double sum = 0, squares = 0;
    const std::vector<float> kept = raw_values(splits.train);
    const auto count = static_cast<double>(splits.train.size());
    for (std::size_t i = 0; i < kept.size(); i += 2) sum += kept[i];
    for (std::size_t i = 0; i < kept.size(); i += 2) {
      const double deviation = kept[i] - sum / count;
      squares += deviation * deviation;
    }
    const auto seen = seen_by_training(splits, 1);
    INFO(begin << " " << step);
    REQUIRE(seen.size() == rows);
    for (const auto& [row, value] : seen)
      CHECK(std::abs(value - (row - sum / count) / std::sqrt(squares / count)) < 1e-4);
  }
}

TEST_CASE("what is subtracted from a column is noted, and a second table is read alike") {
  const TemporaryDirectory directory;
  std::ofstream(directory / "test.csv") << "x,t,y\n0,1700000050,1\n0,1699999990,0\n";
  data::LoadOptions options = predict("y");
  options.test_share.reset();
  options.test_data = (directory / "test.csv").string();
  const data::Splits splits =
      parsed("x,t,y\n1,1700000000,0\n3,1700000040,1\n2,1700000001,0\n4,1700000030,1\n", options);
  CHECK(splits.normalization.origins == std::vector<double>{0, 1700000000});
  CHECK(raw_values(splits.train) == std::vector<float>{1, 0, 3, 40, 2, 1, 4, 30});
  CHECK(raw_values(splits.test) == std::vector<float>{0, 50, 0, -10});
  REQUIRE(splits.notes.size() == 1);
  CHECK_THAT(splits.notes[0], ContainsSubstring("column t: values are stored less 1700000000") &&
                                  ContainsSubstring("steps of 128"));
}

TEST_CASE("columns that floats hold as they are, and constant ones, are stored as they are") {
  for (const char* text :
       {"t,y\n1700000000,0\n1700000000,1\n1700000000,0\n",  // no float, and constant
        "t,y\n16777000,0\n16777005,1\n16777002,0\n",        // whole numbers below 2^24
        "t,y\n1700000000,0\n1.8e9,1\n0,0\n1234567,1\n"}) {  // wide
    const data::Splits splits = parsed(text, predict("y"));
    CHECK(splits.normalization.origins.empty());
    CHECK(splits.notes.empty());
  }
  CHECK(parsed("t,y\n1700000000,0\n1700000000,1\n1700000000,0\n", predict("y"))
            .normalization.stddev[0] == 1);
}

TEST_CASE("columns that no centering tells apart are refused with the reason") {
  const auto refused = [](const char* text, const char* message) {
    CHECK_THROWS_WITH(parsed(text, predict("y")), ContainsSubstring(message));
  };
  refused("t,y\n1200000000000000000,0\n1200000000000000500,1\n1200000000000000900,0\n",
          "64-bit floats have steps of 256");
  refused("t,y\n1e-60,0\n2e-60,1\n3e-60,0\n", "Multiply its values by a constant");
  refused("x,y\n1,1700000000.5\n2,1700000003\n3,1700000001\n",
          "t.csv: the target has values from 1700000000.5 to 1700000003 to be predicted");
}

TEST_CASE("columns that pandas has named are no features, and columns that count rows are named") {
  const data::Splits splits =
      parsed("Unnamed: 0,id,a,y\n0,7,1,0\n1,8,5,1\n2,9,2,0\n3,10,2,1\n", predict("y"));
  CHECK(splits.features == std::vector<std::string>{"id", "a"});
  REQUIRE(splits.notes.size() == 2);
  CHECK(splits.notes[0] == "column not used: Unnamed: 0: it has no name");
  CHECK_THAT(splits.notes[1], ContainsSubstring("column id: it counts the rows"));
  data::LoadOptions options = predict("y");
  options.features = {"Unnamed: 0"};
  CHECK(parsed("Unnamed: 0,y\n0.5,0\n1,1\n2,0\n", options).train.sample_size() == 1);
}

TEST_CASE("True and False stand beside 1 and 0 alone") {
  CHECK(parsed("a,y\nTrue,0\n0,1\nfalse,0\n1,1\n", predict("y")).train.sample_size() == 1);
  CHECK_THROWS_WITH(parsed("a,y\n0.5,0\nTrue,1\n2,0\n", predict("y")),
                    ContainsSubstring("t.csv:3: column 1 (a): a value is True or False, line 2 has "
                                      "0.5"));
}

TEST_CASE("texts of Excel say what must be changed") {
  CHECK_THROWS_WITH(parsed(std::string_view("\xff\xfe"
                                            "a\0,\0",
                                            6),
                           predict("y")),
                    ContainsSubstring("UTF-16; save it as UTF-8"));
  CHECK_THROWS_WITH(parsed("sep=,\na,y\n1,0\n", predict("y")),
                    ContainsSubstring("t.csv:1: \"sep=\""));
}

namespace {

data::LoadOptions use(data::Purpose purpose, const std::string& target) {
  data::LoadOptions options;
  options.purpose = purpose;
  options.target = target;
  return options;
}

}  // namespace

TEST_CASE("to evaluate a model, a table is one part in its order, with the classes of the model") {
  data::LoadOptions options = use(data::Purpose::evaluation, "kind");
  options.class_names = {"iris", "tulip", "rose", "aster"};
  const data::Splits splits = parsed(flowers, options);
  CHECK(splits.train.size() == 0);
  CHECK(raw_values(splits.test) == std::vector<float>{1, 10, 2, 20, 3, 30, 4, 40});
  const auto labels = splits.test.labels();
  CHECK(std::vector<int>(labels.begin(), labels.end()) == std::vector{2, 0, 2, 3});
  CHECK(splits.test.classes() == 4);
  options.class_names = {"iris", "rose"};
  CHECK_THROWS_WITH(
      parsed(flowers, options),
      ContainsSubstring("t.csv:5: column 4 (kind): class \"aster\" is not among the 2 classes of "
                        "the model"));
  options.class_names = {"aster", "iris", "rose"};
  options.test_share = 0.25;
  const data::Splits divided = parsed(flowers, options), before = parsed(flowers, predict("kind"));
  CHECK(raw_values(divided.test) == raw_values(before.test));
}

TEST_CASE("predictions need no target, and use the origins of the model") {
  data::LoadOptions options = use(data::Purpose::prediction, "");
  options.features = {"b", "a"};
  CHECK(raw_values(parsed("a,b\n1,2\n3,4\n", options).test) == std::vector<float>{2, 1, 4, 3});
  // A table of one row does not show an origin. 1.7e9 + 0.25 is no 32-bit float.
  options.origins = {0, 1.7e9};
  CHECK(raw_values(parsed("a,b\n1700000000.25,4\n", options).test) == std::vector<float>{4, 0.25});
  options.features = {"a"};  // of another model: told apart by the shape
  CHECK(parsed("a,b\n1700000000.25,4\n", options).test.sample_size() == 1);
  options.features.clear();
  options.target = "b";
  CHECK(parsed("a,b\n1,2\n3,4\n", options).test.sample_size() == 1);
  options.target.clear();
  CHECK_THROWS_WITH(parsed("a\nx\n", options),
                    ContainsSubstring("t.csv: no column has numbers or categories"));
}
