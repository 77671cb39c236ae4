#include "fast_report/page.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <fast/core/error.hpp>
#include <fast/core/version.hpp>
#include <fstream>

#include "core/contains.hpp"
#include "core/whole_file.hpp"
#include "fast_report/curves.hpp"
#include "fast_report/summary.hpp"

namespace fast_report {
namespace assets {

// The assembler reads the files. CMake passes the two folders, and lists the files as dependencies
// of this source.
#define FAST_REPORT_ASSET(name, path)                                     \
  __asm__(                                                                \
      ".pushsection .rodata\n.balign 16\n"                                \
      ".hidden fast_report_" #name "\n.globl fast_report_" #name          \
      "\n"                                                                \
      "fast_report_" #name ":\n.incbin \"" path                           \
      "\"\n"                                                              \
      ".hidden fast_report_" #name "_end\n.globl fast_report_" #name      \
      "_end\n"                                                            \
      "fast_report_" #name "_end:\n.byte 0\n.popsection\n");              \
  extern "C" const char fast_report_##name[], fast_report_##name##_end[]; \
  std::string_view name() { return {fast_report_##name, fast_report_##name##_end}; }

FAST_REPORT_ASSET(vega, FAST_REPORT_VEGA "/vega.min.js")
FAST_REPORT_ASSET(vega_lite, FAST_REPORT_VEGA "/vega-lite.min.js")
FAST_REPORT_ASSET(vega_embed, FAST_REPORT_VEGA "/vega-embed.min.js")
FAST_REPORT_ASSET(licenses, FAST_REPORT_VEGA "/LICENSES.txt")
FAST_REPORT_ASSET(script, FAST_REPORT_PAGE "/page.js")
FAST_REPORT_ASSET(style, FAST_REPORT_PAGE "/page.css")

}  // namespace assets

using nlohmann::json;

std::vector<std::string> names_of(const std::vector<Run>& runs) {
  std::vector<std::string> names;
  for (const Run& run : runs) {
    const auto same = std::ranges::count(runs, run.name, &Run::name);
    std::string name = same > 1 ? run.directory.string() : run.name;
    if (fast::contains(names, name)) {
      name += fmt::format(" ({})", names.size() + 1);
    }
    names.push_back(std::move(name));
  }
  return names;
}

namespace {

/// The means of several runs, one curve each.
std::string joint_figure(const std::vector<Run>& runs, const std::vector<std::string>& names,
                         Figures& figures, const Measure& measure, const char* format) {
  json mean = joint_means(runs, names, measure.field);
  if (mean.empty()) return "";
  const bool distance = measure.field == "consensus_distance";
  json data = {{"workers", json::array()},
               {"mean", std::move(mean)},
               {"title", measure.name},
               {"format", format},
               {"axes", distance ? json{"rounds", "seconds"} : json{"epoch", "seconds"}}};
  if (distance) data["scale"] = {{"type", "log"}};
  return figures.add("curve", std::move(data), "All runs: " + measure.name,
                     "Mean of the workers of each run.");
}

std::string comparison_section(const std::vector<Run>& runs, const std::vector<std::string>& names,
                               Figures& figures) {
  std::string html = "<div class=\"wide\">\n" + table(comparison(runs, names)) + "</div>\n";
  const auto different = differences(runs, names);
  if (different.size() > 1) {
    html += element("h3", "Options that differ") + "<div class=\"wide\">\n" + table(different) +
            "</div>\n";
  }
  html += joint_figure(runs, names, figures, {"loss", "training loss"}, ".4~g");
  const bool apart = std::ranges::any_of(
      runs, [](const Run& run) { return !are_same(run, "validation_accuracy", "test_accuracy"); });
  if (apart) {
    html +=
        joint_figure(runs, names, figures, {"validation_accuracy", "validation accuracy"}, ".1~%");
  }
  html += joint_figure(runs, names, figures, {"test_accuracy", "test accuracy"}, ".1~%");
  html += joint_figure(runs, names, figures, {"consensus_distance", "consensus distance"}, ".0~e");
  return html;
}

std::string body_of(const std::vector<Run>& runs, const std::string& title, Figures& figures) {
  std::string html = element("h1", title);
  if (runs.size() == 1) return html + section_of(runs.front(), figures);
  const std::vector<std::string> names = names_of(runs);
  html += comparison_section(runs, names, figures);
  for (std::size_t i = 0; i < runs.size(); ++i) {
    html += "<h2 class=\"run\">" + escaped(names[i]) + "</h2>\n" + section_of(runs[i], figures);
  }
  return html;
}

std::string footer() {
  const auto now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  return fmt::format(
      "<footer>Written by fast-report {} on {:%Y-%m-%d at %H:%M} UTC. The page needs no network. "
      "The menu at the corner of a figure saves it as SVG or PNG.\n"
      "<details class=\"screen\">\n<summary>Licenses of the software in this page: Vega, "
      "Vega-Lite, "
      "Vega-Embed</summary>\n<pre>{}</pre>\n</details>\n</footer>\n",
      fast::version(), fmt::gmtime(now), escaped(assets::licenses()));
}

std::string head(const std::string& title, const std::string& key) {
  return fmt::format(
      "<!DOCTYPE html>\n{} {} -->\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
      "script-src 'nonce-{}'; style-src 'unsafe-inline'; img-src data: blob:; base-uri 'none'; "
      "form-action 'none'\">\n"
      "<meta name=\"viewport\" content=\"width=device-width\">\n<title>{}</title>\n"
      "<style>\n{}</style>\n</head>\n<body>\n",
      page_mark, fast::version(), key, escaped(title), assets::style());
}

std::string script(std::string_view text, const std::string& key) {
  return fmt::format("<script nonce=\"{}\">\n{}\n</script>\n", key, text);
}

}  // namespace

std::string page_of(const std::vector<Run>& runs) {
  const std::string key = nonce();
  const std::string title = runs.size() == 1 ? "Training run " + runs.front().name
                                             : fmt::format("{} training runs", runs.size());
  Figures figures;
  std::string html = head(title, key) + body_of(runs, title, figures) + footer();
  html += "<script type=\"application/json\" id=\"figures\">" + json_text(figures.all()) +
          "</script>\n";
  for (const auto text :
       {assets::vega(), assets::vega_lite(), assets::vega_embed(), assets::script()}) {
    html += script(text, key);
  }
  return html + "</body>\n</html>\n";
}

namespace fs = std::filesystem;

namespace {

bool is_report(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::string first, second;
  std::getline(in, first);
  std::getline(in, second);
  return first == "<!DOCTYPE html>" && second.starts_with(page_mark);
}

}  // namespace

void require_replaceable(const fs::path& path, bool overwrite) {
  std::error_code problem;
  fast::require_writable(path);
  if (overwrite || !fs::is_regular_file(path, problem) || fs::file_size(path, problem) == 0) return;
  fast::require(
      is_report(path), fast::ErrorKind::argument,
      "{}: the file exists and is not a report of fast-report; choose another file or add "
      "--overwrite",
      path.string());
}

}  // namespace fast_report
