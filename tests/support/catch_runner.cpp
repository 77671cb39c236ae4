#include "catch_runner.hpp"

#define CATCH_CONFIG_RUNNER
#include "catch.hpp"

namespace fast::testing {

int run_tests(int argc, char** argv, bool silent) {
  Catch::Session session;
  if (const int status = session.applyCommandLine(argc, argv); status != 0) return status;
#if __has_include(<catch2/catch_all.hpp>)
  if (silent) session.configData().defaultOutputFilename = "/dev/null";
#else
  if (silent) session.configData().outputFilename = "/dev/null";
#endif
  return session.run();
}

}  // namespace fast::testing
