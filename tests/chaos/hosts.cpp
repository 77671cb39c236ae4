#include "chaos/hosts.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/core.h>

#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <utility>

namespace chaos {
namespace {

std::string links(const Event& event) {
  return event.victims.size() == 2 ? fmt::format("link {} {}", event.victims[0], event.victims[1])
                                   : "link all";
}

std::string setting(const Event& event) {
  switch (event.kind) {
    case Kind::delay:
      return fmt::format("delay={}ms jitter={}ms", event.amount, event.amount / 2);
    case Kind::rate:
      return fmt::format("rate={}mbit", event.amount);
    case Kind::loss:
      return fmt::format("loss={}%", event.amount);
    default:
      return "cut";
  }
}

std::string normal(const Event& event) {
  switch (event.kind) {
    case Kind::delay:
      return "delay=0ms jitter=0ms";
    case Kind::rate:
      return "rate=0mbit";
    case Kind::loss:
      return "loss=0%";
    default:
      return "mend";
  }
}

}  // namespace

int call(const std::string& command) {
  const int status = std::system(command.c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

Hosts::Hosts(std::string script, const std::string& program, int count)
    : script_(std::move(script)),
      program_(program),
      count_(count),
      lock_(open("/tmp/fasthosts.lock", O_WRONLY | O_CREAT | O_CLOEXEC, 0644)) {
  flock(lock_, LOCK_EX);
  restore();
}

Hosts::~Hosts() {
  turn("down");
  close(lock_);
}

void Hosts::restore() {
  if (turn(fmt::format("up {} --switch {}", count_, program_)) != 0)
    throw std::runtime_error("hosts.sh up: no hosts");
}

int Hosts::turn(const std::string& words) const { return call(script_ + " " + words); }

LinkFaults::LinkFaults(const Hosts& hosts, const Plan& plan, std::string directory)
    : hosts_(hosts) {
  for (std::size_t number = 0; number < plan.events.size(); ++number) {
    const Event& event = plan.events[number];
    if (is_of_links(event.kind) || event.kind == Kind::host)
      faults_.push_back({&event, fmt::format("{}/event-{}", directory, number), {}, false});
  }
}

LinkFaults::~LinkFaults() {
  for (Fault& fault : faults_) {
    if (fault.until && !fault.over) end(fault);
  }
}

void LinkFaults::look() {
  for (Fault& fault : faults_) {
    if (!fault.until && std::filesystem::exists(fault.request)) begin(fault);
    if (fault.until && !fault.over && fault.until->expired()) end(fault);
  }
}

void LinkFaults::begin(Fault& fault) const {
  const Event& event = *fault.event;
  const bool dies = event.kind == Kind::host;
  hosts_.turn(dies ? fmt::format("kill {}", event.victims[0])
                   : links(event) + " " + setting(event));
  fault.until.emplace(fast::Seconds(event.length_s));
  fault.over = dies;
}

void LinkFaults::end(Fault& fault) const {
  hosts_.turn(links(*fault.event) + " " + normal(*fault.event));
  fault.over = true;
}

}  // namespace chaos
