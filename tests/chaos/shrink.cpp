#include "chaos/shrink.hpp"

#include <algorithm>
#include <utility>

#include "chaos/bounds.hpp"
#include "chaos/draw.hpp"

namespace chaos {
namespace {

void add(std::vector<Plan>& plans, const Plan& from, Plan plan) {
  const bool runs = plan != from && !plan.events.empty() && why_not(plan).empty();
  if (runs && std::find(plans.begin(), plans.end(), plan) == plans.end())
    plans.push_back(std::move(plan));
}

void add_fewer_events(std::vector<Plan>& plans, const Plan& plan) {
  for (std::size_t number = 0; number < plan.events.size(); ++number) {
    Plan alone = plan;
    alone.events = {plan.events[number]};
    add(plans, plan, alone);
  }
  for (std::size_t number = 0; number < plan.events.size(); ++number) {
    Plan fewer = plan;
    fewer.events.erase(fewer.events.begin() + static_cast<std::ptrdiff_t>(number));
    add(plans, plan, fewer);
  }
}

void add_fewer_victims(std::vector<Plan>& plans, const Plan& plan) {
  for (std::size_t number = 0; number < plan.events.size(); ++number) {
    const Event& event = plan.events[number];
    if (event.victims.size() < 2 || is_of_links(event.kind)) continue;
    Plan one = plan;
    one.events[number].victims.resize(1);
    add(plans, plan, one);
  }
}

bool needs_hosts(const Plan& plan) {
  return plan.has(Kind::host) ||
         std::any_of(plan.events.begin(), plan.events.end(),
                     [](const Event& event) { return is_of_links(event.kind); });
}

void add_smaller(std::vector<Plan>& plans, const Plan& plan) {
  for (int hosts = needs_hosts(plan) ? 2 : 1; hosts < plan.hosts; ++hosts) {
    Plan fewer = plan;
    fewer.hosts = hosts;
    if (hosts == 1) fewer.path = Plan().path;
    for (Event& event : fewer.events) {
      const bool of_links = is_of_links(event.kind);
      if (of_links) event.victims.clear();
      if (event.kind == Kind::host) event.victims = {1};
    }
    add(plans, plan, fewer);
  }
  for (const int workers : {2, 3, 4, plan.workers / 2, plan.workers - 1}) {
    if (workers >= 2 && workers < plan.workers) add(plans, plan, with_workers(plan, workers));
  }
}

void add_fewer_features(std::vector<Plan>& plans, const Plan& plan) {
  for (std::size_t number = 0; number < plan.with.size(); ++number) {
    Plan fewer = plan;
    fewer.with.erase(fewer.with.begin() + static_cast<std::ptrdiff_t>(number));
    add(plans, plan, fewer);
  }
}

/// The plan with one member as in a new plan.
template <class T>
void add_default(std::vector<Plan>& plans, const Plan& plan, T Plan::*member) {
  Plan plain = plan;
  plain.*member = Plan().*member;
  add(plans, plan, plain);
}

}  // namespace

std::vector<Plan> simpler(const Plan& plan) {
  std::vector<Plan> plans;
  add_fewer_events(plans, plan);
  add_smaller(plans, plan);
  add_fewer_victims(plans, plan);
  add_default(plans, plan, &Plan::with);
  add_fewer_features(plans, plan);
  add_default(plans, plan, &Plan::learns_suspicion);
  add_default(plans, plan, &Plan::staleness);
  add_default(plans, plan, &Plan::codec);
  add_default(plans, plan, &Plan::sparse);
  add_default(plans, plan, &Plan::rotating);
  add_default(plans, plan, &Plan::devices);
  add_default(plans, plan, &Plan::large);
  add_default(plans, plan, &Plan::path);
  add_default(plans, plan, &Plan::topology);
  add_default(plans, plan, &Plan::rule);
  return plans;
}

Plan shrink(Plan failing, const std::function<bool(const Plan&)>& fails, int most) {
  for (bool smaller = true; smaller && most > 0;) {
    smaller = false;
    for (const Plan& plan : simpler(failing)) {
      if (most-- <= 0) break;
      if (!fails(plan)) continue;
      failing = plan;
      smaller = true;
      break;
    }
  }
  return failing;
}

}  // namespace chaos
