// Tables as people have them: categories, truths, missing values, other separators, compression.
#include <algorithm>
#include <cmath>
#include <fast/core/error.hpp>
#include <fast/data/formats.hpp>
#include <fstream>
#include <limits>
#include <map>

#include "data/files/csv_table.hpp"
#include "support/catch.hpp"
#include "support/idx_files.hpp"
#include "support/temporary_directory.hpp"

using namespace fast;
using fast::testing::TemporaryDirectory;
using Names = std::vector<std::string>;
using Values = std::vector<float>;

namespace {

/// The whole table as it is read to be evaluated, in its order.
data::LoadOptions whole(const std::string& target) {
  data::LoadOptions options;
  options.target = target;
  options.purpose = data::Purpose::evaluation;
  return options;
}

data::LoadOptions train_on(const std::string& target, double test_share = 0.25) {
  data::LoadOptions options;
  options.target = target;
  options.test_share = test_share;
  return options;
}

data::Splits read_table(std::string_view text, const data::LoadOptions& options) {
  return data::parse_csv(text, "t.csv", options);
}

Values stored(const data::Dataset& part) {
  const auto values = std::get<std::span<const float>>(part.values());
  return {values.begin(), values.end()};
}

Values read_all(std::string_view text, const std::string& target) {
  return stored(read_table(text, whole(target)).test);
}

constexpr std::string_view pets =
    "kind,age,indoor,y\ndog,2,yes,0\ncat,,No,1\ndog,6,TRUE,0\n?,4,false,1\n";

}  // namespace

TEST_CASE("texts become a feature of 0 and 1 each, in the order of their bytes") {
  const data::Splits splits = read_table(pets, whole("y"));
  CHECK(splits.features ==
        Names{"kind=cat", "kind=dog", "kind is missing", "age", "age is missing", "indoor"});
  CHECK(stored(splits.test) == Values{0, 1, 0, 2, 0, 1,  //
                                      1, 0, 0, 0, 1, 0,  // no model: no mean, thus 0
                                      0, 1, 0, 6, 0, 1,  //
                                      0, 0, 1, 4, 0, 0});
  REQUIRE(splits.notes.size() == 2);
  CHECK(splits.notes[0] == "categories, each one feature of 0 and 1: kind (2)");
  CHECK(splits.notes[1] ==
        "missing values: kind (1), age (1); the column's mean stands for a number, and one more "
        "feature marks them");
}

TEST_CASE("the mean of the training part stands for a missing number, in both parts") {
  std::string text = "a,y\n";
  for (int i = 0; i < 40; ++i)
    text += i % 4 == 0 ? fmt::format("NaN,{}\n", i % 2) : fmt::format("{},{}\n", i * i, i % 2);
  const data::Splits splits = read_table(text, train_on("y"));
  CHECK(splits.features == Names{"a", "a is missing"});
  double sum = 0;
  int known = 0;
  const Values kept = stored(splits.train);
  for (std::size_t i = 0; i < kept.size(); i += 2) {
    if (kept[i + 1] == 1) continue;
    sum += kept[i];
    ++known;
  }
  const auto mean = static_cast<float>(sum / known);
  CHECK(std::abs(splits.normalization.mean[0] - mean) <= 1e-5F * mean);
  int missing = 0;
  for (const data::Dataset* part : {&splits.train, &splits.test}) {
    const Values values = stored(*part);
    for (std::size_t i = 0; i < values.size(); i += 2) {
      CHECK(std::isfinite(values[i]));
      if (values[i + 1] == 0) continue;
      CHECK(values[i] == splits.normalization.mean[0]);
      ++missing;
    }
  }
  CHECK(missing == 10);
}

TEST_CASE("the names of features and the means are the encoding of a model") {
  data::LoadOptions options = whole("");
  options.purpose = data::Purpose::prediction;
  options.features = {"kind=cat", "kind=dog", "age", "age is missing"};
  options.means = {0.5F, 0.5F, 3.5F, 0.25F};
  const data::Splits splits =
      read_table("id,age,kind\n7,5,cat\n8,,dog\n9,1,bird\n10,2,NA\n", options);
  CHECK(stored(splits.test) == Values{1, 0, 5, 0,     //
                                      0, 1, 3.5F, 1,  //
                                      0, 0, 1, 0,     // a category that training had not
                                      0, 0, 2, 0});
  CHECK(splits.features == options.features);
  REQUIRE(splits.notes.size() == 3);
  CHECK_THAT(splits.notes[0], ContainsSubstring("missing values: age (1)"));
  CHECK_THAT(splits.notes[1],
             ContainsSubstring("missing values, of which training had none: kind (1)"));
  CHECK(
      splits.notes[2] ==
      "column kind: rows with a category that training had not, as \"bird\": 1; it counts as none");
  CHECK_THROWS_WITH(read_table("age,sort\n1,cat\n", options),
                    ContainsSubstring("there is no column \"kind\" among its 2: age, sort"));
}

TEST_CASE("a test part in a second file has the encoding of the first") {
  const TemporaryDirectory directory;
  std::ofstream(directory / "test.csv") << "y,kind,age\n1,bird,\n0,dog,1\n";
  data::LoadOptions options;
  options.target = "y";
  options.test_data = (directory / "test.csv").string();
  const data::Splits splits = read_table("kind,age,y\ndog,2,0\ncat,4,1\ndog,6,0\n", options);
  CHECK(splits.features == Names{"kind=cat", "kind=dog", "age"});
  CHECK(splits.normalization.mean[2] == 4);
  CHECK(stored(splits.test) == Values{0, 0, 4, 0, 1, 1});
  CHECK(std::any_of(splits.notes.begin(), splits.notes.end(), [](const std::string& note) {
    return note.starts_with("--test-data: column kind: rows with a category");
  }));
}

TEST_CASE("numbers are categories where --categories says so") {
  data::LoadOptions options = train_on("y");
  options.categories = {"zip"};
  const std::string_view text = "zip,a,y\n10,1,0\n9,5,1\n9.0,2,0\n010,4,1\n";
  CHECK(read_table(text, options).features == Names{"zip=10", "zip=9", "a"});
  options.categories = {"zap"};
  CHECK_THROWS_WITH(read_table(text, options),
                    ContainsSubstring("no column \"zap\" among its 3; did"));
  options.categories = {"y"};
  CHECK_THROWS_WITH(read_table(text, options),
                    ContainsSubstring("the target, and in --categories"));
  options.categories = {"zip"};
  options.features = {"a"};
  CHECK_THROWS_WITH(read_table(text, options), ContainsSubstring("and not in --features"));
}

TEST_CASE("a few texts among numbers are an error that names the first") {
  const std::string_view text = "a,y\n1,0\n2,1\n3+,0\n0,1\n";
  CHECK_THROWS_WITH(read_table(text, train_on("y")),
                    ContainsSubstring("t.csv:4: column 1 (a): \"3+\" is not a number"));
  data::LoadOptions options = train_on("y");
  options.categories = {"a"};
  CHECK(read_table(text, options).features == Names{"a=0", "a=1", "a=2", "a=3+"});
}

TEST_CASE("a column of very many texts is a feature only if it is named") {
  std::string text = "name,a,y\n";
  for (int i = 0; i < 300; ++i) text += fmt::format("n{},{},{}\n", i % 150, i % 7, i % 2);
  const data::Splits found = read_table(text, train_on("y"));
  CHECK(found.features == Names{"a"});
  CHECK_THAT(found.notes.at(0), ContainsSubstring("name: more than 100 different texts"));
  data::LoadOptions options = train_on("y");
  options.categories = {"name"};
  CHECK(read_table(text, options).features.size() == 151);
  for (int i = 0; i < 5000; ++i) text += fmt::format("m{},0,0\n", i);
  CHECK_THROWS_WITH(read_table(text, options), ContainsSubstring("more than 4096 categories"));
}

TEST_CASE("the name of a feature is no other column's") {
  CHECK_THROWS_WITH(read_table("k,k=a,y\na,1,0\nb,2,1\na,5,0\n", train_on("y")),
                    ContainsSubstring("a column is called \"k=a\""));
  // The longest column goes first.
  const auto code = data::code_of("k=a=b", {"k", "k=a"});
  REQUIRE(code.has_value());
  CHECK(code->column == 1);
  CHECK(code->category == "b");
  CHECK(data::code_of("k is missing", {"k"})->kind == data::FeatureCode::Kind::missing);
  CHECK_FALSE(data::code_of("m=1", {"k"}).has_value());
}

TEST_CASE("columns without any value, and constant ones, do no harm") {
  CHECK(read_table("a,b,y\n1,,0\n1,NaN,1\n1,,0\n1,,1\n", train_on("y")).features == Names{"a"});
  data::LoadOptions options = train_on("y");
  options.features = {"a", "b"};
  CHECK_THROWS_WITH(read_table("a,b,y\n1,,0\n2,,1\n", options),
                    ContainsSubstring("column \"b\": all values are missing"));
  // Known in one row only, which may be in the test part: nothing becomes NaN.
  for (int seed = 1; seed < 9; ++seed) {
    options = train_on("y");
    options.split_seed = static_cast<std::uint64_t>(seed);
    const data::Splits splits = read_table("a,b,y\n1,,0\n2,5,1\n1,,0\n7,,1\n", options);
    for (const float value : stored(splits.train)) CHECK(std::isfinite(value));
    for (const float deviation : splits.normalization.stddev) CHECK(deviation > 0);
  }
}

TEST_CASE("semicolons and tabs separate, and numbers then have points or decimal commas") {
  const Values expected{1.5F, 1, 0, -2, 0, 1};
  CHECK(read_all("a;k;y\n1,5;u;0\n-2;v;1\n", "y") == expected);
  CHECK(read_all("a\tk\ty\r\n1,5\tu\t0\r\n-2,0\tv\t1\r\n", "y") == expected);
  CHECK(read_all("a;k;y\n1.5;u;0\n-2;v;1\n", "y") == expected);
  CHECK(read_all("\xef\xbb\xbf\"a\";\"k\";\"y\"\n\"1,5\";\"u\";0\n-2;v;1\n", "y") == expected);
  CHECK(read_all("\"a;b;c\",k,y\n1.5,u,0\n-2,v,1\n", "y") == expected);  // quoted: no separators
  const data::Splits targets = read_table("a;y\n1;0,25\n2;1,5\n", whole("y"));
  CHECK(targets.test.targets()[0] == 0.25F);
  CHECK(targets.notes.at(0) == "numbers with decimal commas are read, as 1,5");
  CHECK_THROWS_WITH(read_all("a;b;y\n1,5;1.234;0\n2;2;1\n", "y"),
                    ContainsSubstring("t.csv: line 2 has a decimal comma, line 2 a decimal point"));
  CHECK_THROWS_WITH(read_all("a;y\n\"1\"x;0\n", "y"), ContainsSubstring("a semicolon must follow"));
}

TEST_CASE("compressed tables are read, and damaged ones are refused") {
  const TemporaryDirectory directory;
  const std::string path = (directory / "t.CSV.gz").string();
  const std::string_view text = "a,y\n1,0\n2,1\n4,0\n8,1\n";
  fast::testing::write_gzip(path, {text.begin(), text.end()});
  data::LoadOptions options = whole("y");
  CHECK(stored(data::load(path, options).test) == Values{1, 2, 4, 8});
  std::filesystem::resize_file(path, std::filesystem::file_size(path) - 9);
  CHECK_THROWS_WITH(data::load(path, options), ContainsSubstring("damaged or truncated"));
  const std::string tabs = (directory / "t.tsv").string();
  std::ofstream(tabs) << "a\ty\n1\t0\n2\t1\n";
  CHECK(stored(data::load(tabs, options).test) == Values{1, 2});
}

TEST_CASE("targets of 1 and -1 are two classes") {
  const std::string_view text = "a,y\n1,-1\n2,1\n3,+1\n4,-1.0\n";
  const data::Splits splits = read_table(text, whole("y"));
  CHECK(splits.class_names == Names{"-1", "1"});
  const auto labels = splits.test.labels();
  CHECK(std::vector<int>(labels.begin(), labels.end()) == std::vector{0, 1, 1, 0});
  data::LoadOptions options = whole("y");
  options.targets = data::TargetKind::numbers;
  CHECK(read_table(text, options).test.targets()[3] == -1);
  CHECK(read_table("a,y\n1,1\n2,0\n", whole("y")).class_names.empty());
}

TEST_CASE("a stratified part has the share of each class") {
  std::string text = "a,y\n";
  for (int i = 0; i < 200; ++i)
    text += fmt::format("{},{}\n", i % 17, i % 20 == 0 ? "rare" : "usual");
  data::LoadOptions options = train_on("y", 0.2);
  options.stratify = true;
  for (std::uint64_t seed = 1; seed < 6; ++seed) {
    options.split_seed = seed;
    const data::Splits splits = read_table(text, options);
    CHECK(splits.test.size() == 40);
    CHECK(std::ranges::count(splits.test.labels(), 0) == 2);  // 20 % of 10
    CHECK(std::ranges::count(splits.train.labels(), 0) == 8);
  }
  options.targets = data::TargetKind::numbers;
  CHECK_THROWS_WITH(
      read_table("a,y\n1,0.5\n2,1\n3,2\n4,3\n5,4\n", options),
      ContainsSubstring("--stratify: the samples of t.csv have no single class label"));
}
