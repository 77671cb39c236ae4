#include "options.hpp"

#include <fmt/ranges.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <fast/core/error.hpp>
#include <string>
#include <vector>

#include "bindings.hpp"
#include "core/registry.hpp"
#include "held.hpp"
#include "observer.hpp"
#include "sites/site_choice.hpp"
#include "worker/worker_options.hpp"

namespace fast::python {
namespace {

using options::OptionSpec;
using options::OptionTable;

struct Table {
  WorkerOptions worker;
  RuleChoice rule;
  OptionTable table;
  Table() {
    add_rows(table, rule);
    add_rows(table, worker);
  }
};

void set(OptionTable& table, const std::string& name, const std::vector<std::string>& texts) {
  OptionSpec* row = table.find(name);
  require(row != nullptr, ErrorKind::argument, "option \"{}\" is unknown; choose {}{}", name,
          fmt::join(table.names(), ", "), did_you_mean(name, table.names()));
  table.set(*row, texts, "option " + name);
}

/// Called on the worker's thread; what it raises ends the round.
template <class... Arguments>
std::function<void(Arguments...)> call_of(const Held& function) {
  return [function](Arguments... arguments) {
    const nb::gil_scoped_acquire gil;
    function.get()(arguments...);
  };
}

void add_hooks(WorkerOptions& options, nb::handle hooks) {
  const auto given = [&](const char* name, const auto& use) {
    const nb::object hook = hooks.attr("get")(name);
    if (!hook.is_none()) use(hook);
  };
  given("observer", [&](nb::handle hook) { options.observer = observer_of(hook); });
  given("log", [&](nb::handle hook) { options.log = log_to(hook); });
  given("on_round", [&](nb::handle hook) { options.on_round = call_of<std::int64_t>(Held(hook)); });
  given("on_suspect", [&](nb::handle hook) { options.on_suspect = call_of<int>(Held(hook)); });
  given("on_healed", [&](nb::handle hook) { options.on_healed = call_of<>(Held(hook)); });
  given("algorithm",
        [&](nb::handle hook) { options.algorithm = nb::cast<algorithm::Rule&>(hook); });
}

/// In the order of Kind.
constexpr const char* kind_names[] = {
    "bool", "int", "float", "str", "int | str", "float | str", "list[str] | dict[str, object]"};

nb::list worker_options() {
  Table all;
  nb::list rows;
  for (const OptionSpec& row : all.table.rows()) {
    nb::dict described;
    described["name"] = row.name;
    described["help"] = row.help;
    // Texts of ranges end with a comma, for the sentences of errors.
    described["required"] = row.required.substr(0, row.required.find_last_not_of(',') + 1);
    described["type"] = kind_names[static_cast<std::size_t>(row.kind)];
    described["default"] = row.text();
    described["names"] = row.names;
    described["must_agree"] = row.must_agree;
    rows.append(described);
  }
  return rows;
}

}  // namespace

LogSink log_to(nb::handle function) {
  if (function.is_none()) return {};
  return [held = Held(function)](LogLevel level, std::string_view text) {
    if (Py_IsInitialized() == 0) return;
    const nb::gil_scoped_acquire gil;
    quietly(held.get(), [&] { held.get()(name_of(level), std::string(text)); });
  };
}

WorkerOptions options_of(nb::handle values, nb::handle hooks) {
  Table all;
  sites::SiteChoice site;  // its options are those of fast.Site
  sites::add_rows(all.table, site);
  for (const nb::handle item : values.attr("items")()) {
    set(all.table, nb::cast<std::string>(item[0]), nb::cast<std::vector<std::string>>(item[1]));
  }
  all.worker.algorithm = all.rule.rule();
  all.table.check_needs();
  WorkerOptions options = all.worker;
  options.site = site.join();
  add_hooks(options, hooks);
  return options;
}

void bind_options(nb::module_& module) {
  module.def("worker_options", &worker_options,
             "The table of a worker's options: a dict for each, with its name, help, the values "
             "that it takes, and its default.");
}

}  // namespace fast::python
