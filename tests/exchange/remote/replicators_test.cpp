#include "exchange/remote/replicators.hpp"

#include <fast/core/error.hpp>
#include <stdexcept>
#include <string>

#include "support/catch.hpp"

using namespace fast;
using namespace fast::exchange;
using Catch::Matchers::Contains;

namespace {

enum class Fails { nowhere, advancing, closing, ending };

/// An edge whose MPI calls fail from some moment on.
class Edge : public Replicator {
 public:
  Edge(int worker, Fails fails) : Replicator(worker), fails_(fails) {}
  bool advance() override {
    fail_at(Fails::advancing);
    return true;
  }
  void close() override {
    fail_at(Fails::closing);
    closing_ = true;
  }
  bool closed() override {
    fail_at(Fails::ending);
    return closing_;
  }

 private:
  void fail_at(Fails here) const {
    if (fails_ == here) fail(ErrorKind::mpi, "MPI_Test: connection reset by peer");
  }
  Fails fails_;
  bool closing_ = false;
};

}  // namespace

TEST_CASE("an edge that fails at any moment is given up and logged, the others go on") {
  for (const Fails fails : {Fails::advancing, Fails::closing, Fails::ending}) {
    std::vector<std::string> said;
    const auto seat_of = [](int rank) { return rank == 5 ? 2 : rank; };
    Replicators neighbors(RemoteLog(
        3, [&](LogLevel, std::string_view text) { said.emplace_back(text); }, seat_of));
    neighbors.add(std::make_unique<Edge>(5, fails));
    neighbors.add(std::make_unique<Edge>(6, Fails::nowhere));
    CHECK_NOTHROW(neighbors.advance());
    CHECK_NOTHROW(neighbors.close());
    bool closed = false;
    CHECK_NOTHROW(closed = neighbors.closed());
    CHECK(closed);
    CHECK(neighbors.any_failed());
    CHECK(neighbors.follows(5));  // it is not followed again
    CHECK_FALSE(neighbors.any_of([](int worker) { return worker == 5; }));
    CHECK(neighbors.any_of([](int worker) { return worker == 6; }));
    REQUIRE(said.size() == 1);
    CHECK_THAT(said[0],
               Contains("worker 3: the connection to worker 2 has failed: MPI_Test: connection"));
    neighbors.leave_to_mpi();
  }
}

TEST_CASE("a log that fails ends no thread") {
  const LogSink full = [](LogLevel, std::string_view) { throw std::runtime_error("disk full"); };
  Replicators neighbors(RemoteLog(0, full));
  neighbors.add(std::make_unique<Edge>(1, Fails::advancing));
  CHECK_NOTHROW(neighbors.advance());
  CHECK(neighbors.any_failed());
}
