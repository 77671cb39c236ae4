#include "fast_sites/commands.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <fast/core/error.hpp>
#include <fast/train/safetensors.hpp>
#include <filesystem>
#include <vector>

#include "core/message.hpp"
#include "core/whole_file.hpp"
#include "fast_sites/sights.hpp"
#include "sites/onlooker.hpp"

namespace fast_sites {

using namespace fast;

namespace {

void log(LogLevel level, std::string_view text) {
  if (level != LogLevel::info) fast::say("fast-sites: {}\n", printable(text));
}

sites::Onlooker look_at(const Access& access) {
  const std::string name = sites::new_onlooker_name();
  return {
      sites::connect_bus(
          sites::BusOptions{name, access.url, "URL", access.credentials_file, access.ca_file}, log),
      name, log};
}

void require_known_format(const std::filesystem::path& out) {
  require(
      out.extension() == ".safetensors", ErrorKind::argument,
      "--out {}: its ending names no format; choose .safetensors (fast-model export makes .onnx "
      "of it)",
      printable(out.string()));
}

void require_name(const std::string& site) {
  require(site.empty() || sites::is_site_name(site), ErrorKind::argument,
          "--site {}: it is no name; 1 to 40 letters, digits, '-' and '_' are required",
          printable(site));
}

std::size_t elements_of(const std::vector<TensorView>& tensors) {
  std::size_t elements = 0;
  for (const TensorView& tensor : tensors) elements += tensor.element_count();
  return elements;
}

}  // namespace

void status(const Access& access, const StatusOptions& options) {
  sites::Onlooker onlooker = look_at(access);
  const std::vector<sites::Sight> sights = onlooker.look();
  if (options.json) fmt::print("{}\n", json_of(sights, onlooker.run()));
  require(!sights.empty(), ErrorKind::resource,
          "status: no site of the run \"{}\" is there; see whether sites run, and that they have "
          "this run's name",
          printable(onlooker.run()));
  if (!options.json) fmt::print("{}", text_of(sights));
}

void wait(const Access& access, const WaitOptions& options) {
  sites::Onlooker onlooker = look_at(access);
  if (onlooker.await(options.sites, options.round, Deadline(Seconds(options.timeout_s)))) return;
  fail(ErrorKind::deadline, "wait: {} of {} sites {} after {:g} s; start others, or wait longer",
       onlooker.counted(), options.sites,
       options.round == 0 ? "take part" : fmt::format("have made {} rounds", options.round),
       options.timeout_s);
}

void fetch(const Access& access, const FetchOptions& options) {
  require_name(options.site);
  require_known_format(options.out);
  require_writable(options.out);
  sites::Onlooker onlooker = look_at(access);
  const sites::SiteModel model = onlooker.fetch(options.site, Deadline(Seconds(options.timeout_s)));
  train::save_safetensors(options.out, model.tensors,
                          {{"fast.run", onlooker.run()},
                           {"fast.site", model.site},
                           {"fast.round", fmt::format("{}", model.round)}});
  fmt::print("{}: site {}, round {}, {} tensors, {} elements\n", printable(options.out), model.site,
             model.round, model.tensors.size(), elements_of(model.tensors));
}

}  // namespace fast_sites
