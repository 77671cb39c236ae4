// A small model checker: runs programs of a few threads in every order, and lets each load return
// every value that a weakly ordered processor may return.
//
// The memory model is the release/acquire and relaxed part of C++20 with fences, as a machine with
// views (Kang et al., A promising semantics for relaxed-memory concurrency, POPL 2017, without
// promises). A location keeps all values that were stored to it, in their modification order. A
// thread has a view: for each location, the oldest value that it may still read. A load reads any
// value that is not older. A store adds a value anywhere after the view. Values carry views:
// release and acquire, as orders or fences, pass them from thread to thread.
//
// - A load never returns a value that is stored later (no load buffering), but for load_later():
//   such a load happens at any time before a fence or a release store that follows it, or before
//   its value is used.
// - memory_order_seq_cst of an access is acquire and release; only Fences::order_all() is more.
// - A program is a list of stages. A thread keeps what a stage returns, and forgets the rest.
//   Stages run again and again from their beginning: they have no effects but on atomics.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <source_location>
#include <string>
#include <vector>

namespace fast::testing::weak {

using Value = std::int64_t;
using Values = std::vector<Value>;

#ifdef __cpp_lib_source_location
using Where = std::source_location;
#else  // clang 14 with libstdc++. The name of a function that has a lambda is lost.
class Where {
 public:
  static Where current(const char* function = __builtin_FUNCTION(),
                       unsigned line = __builtin_LINE()) {
    return {function, line};
  }
  std::string function_name() const { return function_ + std::string("()"); }
  unsigned line() const { return line_; }

 private:
  Where(const char* function, unsigned line) : function_(function), line_(line) {}
  const char* function_;
  unsigned line_;
};
#endif

/// A place in the source that has a memory order, or a fence: "function: operation location".
struct Site {
  std::string function, operation, location;
  unsigned line = 0;
  auto operator<=>(const Site&) const = default;
};

struct Operation {
  enum class Kind { load, issue, store, update, fence, complete } kind = Kind::load;
  int location = -1;
  std::memory_order order = std::memory_order_relaxed;
  Value value = 0;  ///< to store; of complete: the number of the load
  std::function<Value(Value)> update{};
  Site site{};
};

/// Asks the checker for the result of the thread's next operation.
Value perform(const Operation& operation);

/// The locations of a program: they are made after it, and before the next one.
struct Memory {
  Memory();
};
/// A new location, which holds 0.
int new_location(const std::string& name);
std::string name_of(int location);
Site site_of(const char* operation, int location, const Where& where);

/// A load that has begun, see above.
class Later {
 public:
  explicit Later(Value number) : number_(number) {}
  Value get() const { return perform({Operation::Kind::complete, -1, {}, number_, {}, {}}); }

 private:
  Value number_;
};

/// As std::atomic.
template <class T>
class Atomic {
 public:
  using Kind = Operation::Kind;

  explicit Atomic(const std::string& name) : location_(new_location(name)) {}
  T load(std::memory_order order, const Where& where = Where::current()) const {
    return static_cast<T>(
        perform({Kind::load, location_, order, 0, {}, site_of("load", location_, where)}));
  }
  void store(T value, std::memory_order order, const Where& where = Where::current()) {
    perform({Kind::store,
             location_,
             order,
             static_cast<Value>(value),
             {},
             site_of("store", location_, where)});
  }
  T exchange(T value, std::memory_order order, const Where& where = Where::current()) {
    const auto update = [value](Value) { return static_cast<Value>(value); };
    return static_cast<T>(perform(
        {Kind::update, location_, order, 0, update, site_of("exchange", location_, where)}));
  }
  T fetch_add(T value, std::memory_order order, const Where& where = Where::current()) {
    const auto update = [value](Value old) { return old + static_cast<Value>(value); };
    return static_cast<T>(perform(
        {Kind::update, location_, order, 0, update, site_of("fetch_add", location_, where)}));
  }
  Later load_later() const { return Later(perform({Kind::issue, location_, {}, 0, {}, {}})); }

 private:
  int location_;
};

struct Fences {
  static void order_loads(const Where& where = Where::current()) {
    fence(std::memory_order_acquire, where);
  }
  static void order_stores(const Where& where = Where::current()) {
    fence(std::memory_order_release, where);
  }
  static void order_all(const Where& where = Where::current()) {
    fence(std::memory_order_seq_cst, where);
  }

 private:
  static void fence(std::memory_order order, const Where& where) {
    perform({Operation::Kind::fence, -1, order, 0, {}, site_of("fence", -1, where)});
  }
};

/// In a thread: what a reader of the program may rely on. Ends the exploration if it is
/// false.
void demand(bool holds, const std::string& what);
/// In a thread: waits, in a loop, until `holds` is true.
void wait_until(bool holds);

/// A thread. It gets what it has kept, at first `begin`, and keeps what its stages return.
struct Thread {
  using Stage = std::function<Values(const Values&)>;
  std::vector<Stage> stages;
  /// It reads nothing that others write. To run it first then loses nothing: a load may return an
  /// old value as well as a new one.
  bool runs_first = false;
  Values begin{};
};

struct Outcomes {
  std::set<std::vector<Values>> ends;  ///< what the threads have kept when all have ended
  std::string violation;               ///< the first demand that was not met, and the run before it
  std::size_t states = 0;
  std::set<Site> sites;  ///< with an order above relaxed, and fences
};

/// All runs of the threads. The sites `weakened` get relaxed order; fences there are left out.
Outcomes explore(const std::vector<Thread>& threads, const std::set<Site>& weakened = {});

/// Names of sites: those of one function, operation and location are numbered by their lines.
std::map<std::string, Site> named(const std::set<Site>& sites);

}  // namespace fast::testing::weak
