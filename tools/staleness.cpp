#include "staleness.hpp"

#include "worker/worker_options.hpp"

namespace tools {

using namespace fast;

namespace {

/// The row of a worker's options.
class Staleness {
 public:
  Staleness() { add_rows(table_, worker_); }
  void read(const std::string& text) { table_.set(table_.at("staleness"), {text}, "--staleness"); }
  std::int64_t& value() { return worker_.staleness; }
  std::string text() { return table_.at("staleness").text(); }

 private:
  WorkerOptions worker_;
  options::OptionTable table_;
};

}  // namespace

std::int64_t staleness_of(const std::string& text) {
  Staleness staleness;
  staleness.read(text);
  return staleness.value();
}

std::string staleness_text(std::int64_t bound) {
  Staleness staleness;
  staleness.value() = bound;
  return staleness.text();
}

}  // namespace tools
