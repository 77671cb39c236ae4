#include "worker/scenarios/device_scenarios.hpp"

#include <mutex>

#include "support/golden.hpp"
#include "support/host_accelerator.hpp"
#include "worker/device_rounds.hpp"

namespace fast::testing {
namespace {

/// Codecs, rules that publish after the step, two vectors a message, weights beside the message.
std::vector<DeviceSetting> settings(const Group& group) {
  std::vector<DeviceSetting> all{
      {"awc"}, {"awc", {}, "bf16"},   {"awc", {}, "int8"},
      {"atc"}, {"gradient_tracking"}, {"gradient_tracking", {}, "int8_stochastic"}};
  if (group.size() > 1) all.push_back({"push_sum"});  // its topology has edges one way
  if (!several_hosts(group)) all.push_back({"awc", {}, "identity", 1});  // there reads come late
  return all;
}

std::vector<double> outcome(const Group& group, const DeviceSetting& setting,
                            const std::shared_ptr<Accelerator>& accelerator,
                            const LogSink& log = {}) {
  DeviceRun<float> run(group, setting, accelerator, log);
  run.go(0, device_round_count);
  return run.outcome();
}

/// The same run among threads whose tensors are on the host.
std::vector<double> among_threads(const Group& group, const DeviceSetting& setting) {
  std::vector<double> found;
  local::run(group.size(), [&](const Group& threads) {
    const auto its = outcome(threads, setting, nullptr);
    if (threads.rank() == group.rank()) found = its;
  });
  return found;
}

void check(const Group& group, const DeviceSetting& setting, const Sharing& sharing) {
  if (!host_fuses()) return;
  const auto found = outcome(group, setting, std::make_shared<HostAccelerator>(sharing));
  const auto expected = among_threads(group, setting);
  const auto first = std::mismatch(found.begin(), found.end(), expected.begin()).first;
  expect(first == found.end(), fmt::format("{}, {}: value {} is the same", text_of(setting),
                                           sharing.by_mpi    ? "read by MPI"
                                           : sharing.on_host ? "read in place"
                                                             : "staged",
                                           first - found.begin()));
}

/// What worker 0 is told of the ways between hosts.
std::string way_between_hosts(const Group& group, const Sharing& sharing) {
  std::mutex mutex;
  std::string told;
  const auto accelerator = std::make_shared<HostAccelerator>(sharing);
  outcome(group, {"awc"}, accelerator, [&](LogLevel, std::string_view text) {
    const std::lock_guard lock(mutex);
    if (text.find("between hosts") != std::string::npos) told = text;
  });
  return told;
}

}  // namespace

void devices_train_as_hosts_do(const Group& group) {
  if (group.name() == "local") return;  // device_test.cpp has threads
  for (const DeviceSetting& setting : settings(group)) {
    check(group, setting, {});
    check(group, setting, {.on_host = true});
  }
}

void devices_read_each_other_by_mpi(const Group& group) {
  if (!several_hosts(group)) return;
  const Sharing by_mpi{.on_host = true, .by_mpi = true};
  for (const DeviceSetting& setting : settings(group)) check(group, setting, by_mpi);
  const std::string told = way_between_hosts(group, by_mpi);
  if (group.rank() != 0) return;
  expect(told == "weights go from device to device between hosts (MPI)", told);
}

void memory_that_mpi_misreads_is_staged(const Group& group) {
  if (!several_hosts(group)) return;
  const Sharing misread{.on_host = true, .by_mpi = true, .misread = true};
  check(group, {"awc"}, misread);
  const std::string told = way_between_hosts(group, misread);
  if (group.rank() != 0) return;
  expect(
      told.find("weights go through the hosts' memory between hosts: byte 0 read from worker") == 0,
      told);
}

}  // namespace fast::testing
