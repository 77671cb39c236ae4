#include "exchange/model/weak_memory.hpp"

#include <algorithm>
#include <stdexcept>
#include <unordered_set>

#include "exchange/model/weak_state.hpp"

namespace fast::testing::weak {
namespace {

std::vector<std::string>& locations() {
  static std::vector<std::string> names;
  return names;
}

// How a thread's code is left: nothing else runs meanwhile, so there is one of each.
struct NotYet {};
struct Waits {};
struct Violated : std::runtime_error {
  using std::runtime_error::runtime_error;
};
const Values* results = nullptr;
std::size_t next_result = 0;
Operation pending;

class Explorer {
 public:
  Explorer(const std::vector<Thread>& threads, const std::set<Site>& weakened)
      : threads_(threads), weakened_(weakened) {}

  Outcomes run() {
    State state;
    state.memory.assign(locations().size(), std::vector<Message>(1));
    for (const Thread& thread : threads_) state.threads.emplace_back().kept = thread.begin;
    visit(state);
    out_.states = seen_.size();
    return std::move(out_);
  }

 private:
  enum class Next { operation, waits, ended };

  void visit(State state) {
    std::vector<std::pair<std::size_t, Operation>> next;
    for (std::size_t t = 0; t < threads_.size(); ++t) {
      const Next of_thread = look(state, t);
      // A wait that has looked too early: there is a run in which it looks later.
      if (of_thread == Next::waits || !out_.violation.empty()) return;
      if (of_thread == Next::operation) next.emplace_back(t, order(pending));
    }
    if (!seen_.insert(digest(state)).second) return;
    if (next.empty()) return end(state);
    // A step that no other thread notices, or that notices no other, need not wait for others.
    const auto alone = std::find_if(next.begin(), next.end(), [&](const auto& each) {
      return threads_[each.first].runs_first || is_local(each.second, state.threads[each.first]);
    });
    if (alone != next.end()) return step(state, alone->first, alone->second);
    for (const auto& [t, operation] : next) {
      step(state, t, operation);
      if (!out_.violation.empty()) return;
    }
  }

  /// Runs a thread's code up to its next operation, which is in `pending` then.
  Next look(State& state, std::size_t t) {
    ThreadState& thread = state.threads[t];
    while (thread.stage < threads_[t].stages.size()) {
      results = &thread.results;
      next_result = 0;
      try {
        thread.kept = threads_[t].stages[thread.stage](thread.kept);
      } catch (const NotYet&) {
        return Next::operation;
      } catch (const Waits&) {
        return Next::waits;
      } catch (const Violated& violated) {
        out_.violation = violated.what() + text(trace_);
        return Next::ended;
      }
      ++thread.stage;
      thread.results.clear();
      thread.begun.clear();
    }
    return Next::ended;
  }

  /// The operation with the order that it shall have.
  Operation order(Operation operation) {
    const bool has_order =
        operation.kind == Operation::Kind::fence ||
        (operation.order != std::memory_order_relaxed && operation.kind != Operation::Kind::issue &&
         operation.kind != Operation::Kind::complete);
    if (!has_order) return operation;
    out_.sites.insert(operation.site);
    if (weakened_.count(operation.site) > 0) operation.order = std::memory_order_relaxed;
    return operation;
  }

  static bool is_open(const Begun& load) { return !load.complete; }
  static bool is_local(const Operation& operation, const ThreadState& thread) {
    return operation.kind == Operation::Kind::issue ||
           (operation.kind == Operation::Kind::fence &&
            operation.order != std::memory_order_seq_cst &&
            std::none_of(thread.begun.begin(), thread.begun.end(), is_open));
  }

  void end(const State& state) {
    std::vector<Values> kept;
    for (std::size_t t = 0; t < threads_.size(); ++t) {
      kept.push_back(state.threads[t].kept);
    }
    out_.ends.insert(kept);
  }

  void step(const State& state, std::size_t t, const Operation& operation) {
    using Kind = Operation::Kind;
    const auto& begun = state.threads[t].begun;
    if (operation.kind == Kind::complete) {
      return complete(state, t, static_cast<std::size_t>(operation.value), true);
    }
    if (operation.kind == Kind::fence ? operation.order != std::memory_order_relaxed
                                      : releases(operation.order) && operation.kind != Kind::load) {
      const auto open = std::find_if(begun.begin(), begun.end(), is_open);
      if (open != begun.end()) {
        return complete(state, t, static_cast<std::size_t>(open - begun.begin()), false);
      }
    }
    const auto x = static_cast<std::size_t>(operation.location);
    switch (operation.kind) {
      case Kind::issue: {
        State to = state;
        ThreadState& thread = to.threads[t];
        thread.begun.push_back({static_cast<std::uint8_t>(x), thread.now[x]});
        return go(to, t, static_cast<Value>(thread.begun.size() - 1), operation);
      }
      case Kind::load:
        for (std::size_t at = state.threads[t].now[x]; at < state.memory[x].size(); ++at) {
          State to = state;
          read(to, t, x, at, operation.order);
          go(to, t, to.memory[x][at].value, operation);
        }
        return;
      case Kind::store:
        for (std::size_t at = state.threads[t].now[x] + 1U; at <= state.memory[x].size(); ++at) {
          if (at < state.memory[x].size() && state.memory[x][at].follows) continue;
          State to = state;
          write(to, t, x, at, operation.value, operation.order, nullptr);
          go(to, t, 0, operation);
        }
        return;
      case Kind::update:
        return update(state, t, x, operation);
      default:
        State to = state;
        fence(to, t, operation.order);
        return go(to, t, 0, operation);
    }
  }

  void go(State& state, std::size_t t, Value result, const Operation& operation) {
    state.threads[t].results.push_back(result);
    walk(state, t, result, operation.site);
  }
  void walk(const State& state, std::size_t t, Value result, const Site& site) {
    if (!out_.violation.empty()) return;
    trace_.push_back({t, result, site});
    visit(state);
    trace_.pop_back();
  }

  /// Of a load that has begun: when its value is used, or before an operation that follows it.
  void complete(const State& state, std::size_t t, std::size_t number, bool is_used) {
    const Begun& load = state.threads[t].begun[number];
    const Operation used{Operation::Kind::complete, load.location, {}, 0, {}, {}};
    const std::size_t x = load.location;
    if (load.complete) {
      State to = state;
      return go(to, t, load.value, used);
    }
    for (std::size_t at = load.oldest; at < state.memory[x].size(); ++at) {
      State to = state;
      read(to, t, x, at, std::memory_order_relaxed);
      Begun& done = to.threads[t].begun[number];
      done.complete = true;
      done.value = to.memory[x][at].value;
      if (is_used) {
        go(to, t, done.value, used);
      } else {
        walk(to, t, done.value, {"", "load", name_of(load.location)});
      }
    }
  }

  static void read(State& state, std::size_t t, std::size_t x, std::size_t at,
                   std::memory_order order) {
    ThreadState& thread = state.threads[t];
    const View& message = state.memory[x][at].view;
    thread.now[x] = std::max(thread.now[x], static_cast<std::uint8_t>(at));
    if (acquires(order)) thread.now.join(message);
    thread.acquired.join(message);
    thread.acquired.join(thread.now);
  }

  static void write(State& state, std::size_t t, std::size_t x, std::size_t at, Value value,
                    std::memory_order order, const View* read) {
    if (at < state.memory[x].size()) shift(state, x, at);
    ThreadState& thread = state.threads[t];
    thread.now[x] = static_cast<std::uint8_t>(at);
    thread.acquired.join(thread.now);
    Message message{value, releases(order) ? thread.now : thread.released, read != nullptr};
    message.view[x] = static_cast<std::uint8_t>(at);
    if (read != nullptr) message.view.join(*read);  // an update continues a release sequence
    state.memory[x].insert(state.memory[x].begin() + static_cast<std::ptrdiff_t>(at), message);
  }

  /// The values of x from `at` on move by one place.
  static void shift(State& state, std::size_t x, std::size_t at) {
    const auto move = [&](View& view) {
      view[x] = static_cast<std::uint8_t>(view[x] + (view[x] >= at));
    };
    for (auto& messages : state.memory) {
      for (Message& message : messages) move(message.view);
    }
    for (ThreadState& thread : state.threads) {
      for (View* view : {&thread.now, &thread.acquired, &thread.released}) move(*view);
      for (Begun& load : thread.begun) {
        if (load.location == x && load.oldest >= at) ++load.oldest;
      }
    }
    move(state.total);
  }

  void update(const State& state, std::size_t t, std::size_t x, const Operation& operation) {
    for (std::size_t at = state.threads[t].now[x]; at < state.memory[x].size(); ++at) {
      if (at + 1 < state.memory[x].size() && state.memory[x][at + 1].follows) continue;
      State to = state;
      const Value old = to.memory[x][at].value;
      const View from = to.memory[x][at].view;
      read(to, t, x, at, operation.order);
      write(to, t, x, at + 1, operation.update(old), operation.order, &from);
      go(to, t, old, operation);
    }
  }

  static void fence(State& state, std::size_t t, std::memory_order order) {
    ThreadState& thread = state.threads[t];
    if (acquires(order)) thread.now.join(thread.acquired);
    if (order == std::memory_order_seq_cst) {
      thread.now.join(state.total);
      state.total = thread.now;
      thread.acquired.join(thread.now);
    }
    if (releases(order)) thread.released = thread.now;
  }

  struct Step {
    std::size_t thread;
    Value result;
    Site site;
  };
  static std::string text(const std::vector<Step>& trace) {
    std::string text;
    for (const Step& step : trace) {
      text += "\n  thread " + std::to_string(step.thread) + ": " + step.site.function + " " +
              step.site.operation + " " + step.site.location + " -> " + std::to_string(step.result);
    }
    return text;
  }

  const std::vector<Thread>& threads_;
  const std::set<Site>& weakened_;
  Outcomes out_;
  std::vector<Step> trace_;
  std::unordered_set<std::pair<std::uint64_t, std::uint64_t>, PairHash> seen_;
};

}  // namespace

Value perform(const Operation& operation) {
  if (next_result < results->size()) return (*results)[next_result++];
  pending = operation;
  throw NotYet();
}

Memory::Memory() { locations().clear(); }

int new_location(const std::string& name) {
  if (locations().size() == most_locations) throw std::length_error("too many locations");
  locations().push_back(name);
  return static_cast<int>(locations().size()) - 1;
}

std::string name_of(int location) {
  return location < 0 ? "" : locations()[static_cast<std::size_t>(location)];
}

Site site_of(const char* operation, int location, const Where& where) {
  std::string function = where.function_name();
  function.resize(function.find('('));
  function.erase(0, function.find_last_of(": ") + 1);
  std::string name = name_of(location);
  name.resize(std::min(name.size(), name.find('[')));
  return {function, operation, name, where.line()};
}

void demand(bool holds, const std::string& what) {
  if (!holds) throw Violated(what);
}

void wait_until(bool holds) {
  if (!holds) throw Waits();
}

Outcomes explore(const std::vector<Thread>& threads, const std::set<Site>& weakened) {
  return Explorer(threads, weakened).run();
}

std::map<std::string, Site> named(const std::set<Site>& sites) {
  std::map<std::string, Site> named;
  for (const Site& site : sites) {  // in the order of their lines
    const std::string name =
        site.function + ": " + site.operation + (site.location.empty() ? "" : " " + site.location);
    std::string numbered = name;
    for (int n = 2; named.count(numbered) > 0; ++n) numbered = name + " " + std::to_string(n);
    named.emplace(numbered, site);
  }
  return named;
}

}  // namespace fast::testing::weak
