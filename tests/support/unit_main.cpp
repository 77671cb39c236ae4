// The main function of every unit test program.
#include "catch_runner.hpp"

int main(int argc, char** argv) { return fast::testing::run_tests(argc, argv); }
