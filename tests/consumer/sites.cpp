// A program of one rank that is a site. Without a server it says so, in one line.
#include <fast/exchange/local.hpp>
#include <fast/sites/site.hpp>
#include <fast/worker/worker.hpp>

#include <cstdio>
#include <string>
#include <vector>

int main() {
  std::vector<float> weights(10);
  fast::WorkerOptions options;
  options.site = fast::sites::join({.name = "here", .url = "nats://127.0.0.1:1/run"});
  try {
    fast::Worker worker(fast::local::make_groups(1)[0], fast::stencil::ring(),
                        {fast::view_of("weights", std::span(weights))}, options);
  } catch (const fast::Error& error) {
    std::puts(error.what());
    return std::string(error.what()).find("no connection") == std::string::npos;
  }
  return 1;
}
