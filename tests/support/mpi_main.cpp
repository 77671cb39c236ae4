// The main function of test programs run under mpiexec. Every rank runs the same test cases in the
// same order. The first failure is printed once, by the rank it happened on, and ends all ranks.
#define CATCH_CONFIG_EXTERNAL_INTERFACES  // listeners, in Catch2 v2
#include "mpi_main.hpp"

#include <mpi.h>

#include <chrono>
#include <cstdio>
#include <fast/mpi/environment.hpp>
#include <thread>

#include "catch.hpp"
#include "catch_runner.hpp"

namespace fast::testing {
namespace {

const mpi::Communicator* current_world = nullptr;

#if __has_include(<catch2/catch_all.hpp>)
using ListenerBase = Catch::EventListenerBase;
#else
using ListenerBase = Catch::TestEventListenerBase;
#endif

struct FailureEndsAll : ListenerBase {
  using ListenerBase::ListenerBase;

#if __has_include(<catch2/catch_all.hpp>)
  void assertionEnded(const Catch::AssertionStats& stats) override { report(stats); }
#else
  bool assertionEnded(const Catch::AssertionStats& stats) override {
    report(stats);
    return false;
  }
#endif

  static void report(const Catch::AssertionStats& stats) {
    const auto& result = stats.assertionResult;
    if (result.isOk()) return;
    const int rank = world().rank();
    // A failure on all ranks is rank 0's to tell: it ends the others before they wake.
    if (rank != 0) std::this_thread::sleep_for(std::chrono::seconds(1));
    std::fprintf(stderr, "rank %d: %s:%d: %s\n  %s\n  %s\n", rank, result.getSourceInfo().file,
                 static_cast<int>(result.getSourceInfo().line), result.getExpression().c_str(),
                 result.getExpandedExpression().c_str(), std::string(result.getMessage()).c_str());
    std::fflush(stderr);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
};

}  // namespace

const mpi::Communicator& world() { return *current_world; }

}  // namespace fast::testing

using fast::testing::FailureEndsAll;
CATCH_REGISTER_LISTENER(FailureEndsAll)

int main(int argc, char** argv) {
  return fast::mpi::run(argc, argv, [&](const fast::mpi::Communicator& world) {
    fast::testing::current_world = &world;
    return fast::testing::run_tests(argc, argv, world.rank() != 0);
  });
}
