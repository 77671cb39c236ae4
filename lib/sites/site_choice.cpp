#include "sites/site_choice.hpp"

#include <fast/core/error.hpp>
#include <fast/topology/load.hpp>

#include <iterator>
#include <string_view>

#include "worker/site_codec.hpp"

namespace fast::sites {
namespace {

options::Value<std::string> codecs() {
  using namespace options;
  std::vector<std::string> names(std::begin(site_codecs), std::end(site_codecs));
  Value<std::string> value = choice(names);
  value.names.emplace_back("sparse=0.01");
  names.emplace_back("sparse=FRACTION (above 0 and below 1)");
  value.required = choice_of(names);
  value.parse = [parse = value.parse](std::string_view text, std::string& into) {
    if (!site_codec(text)) return parse(text, into);
    return into = text, Fit::good;
  };
  return value;
}

}  // namespace

std::shared_ptr<SiteExchange> SiteChoice::join() const {
  if (name.empty()) return nullptr;
  require(!url.empty(), ErrorKind::argument,
          "site {}: it needs the address of a server and a run: --site-url nats://HOST:PORT/RUN",
          name);
  SiteOptions result = options;
  result.name = name;
  result.url = url;
  result.rule = algorithm::by_name(algorithm, algorithm::parameters_from(algorithm_options));
  result.topology = topology_from(topology);
  if (const auto chosen = site_codec(codec)) {
    result.codec.kind = chosen->kind;
    result.fraction = chosen->fraction;
  } else {
    result.codec = codec::by_name(codec);
  }
  return sites::join(result);
}

void add_rows(options::OptionTable& table, SiteChoice& site) {
  using namespace options;
  const auto is_site = [&site] { return !site.name.empty(); };
  constexpr char no_site[] = "this job is no site; give it a name with --site, or leave it out";
  table.group("sites");
  table.add("site", site.name, text(),
            "this job's name among jobs at other places that train the same model [none]");
  table
      .add("site_url", site.url, text(),
           "the NATS server and the run's name: nats://HOST:PORT/RUN or tls://HOST:PORT/RUN")
      .only_if(is_site, no_site);
  table
      .add("site_credentials", site.options.credentials_file, text(),
           "the file of credentials that lets this site in at the server")
      .only_if(is_site, no_site);
  table
      .add("site_ca", site.options.ca_file, text(),
           "a file of certificates that are trusted beside those of the system")
      .only_if(is_site, no_site);
  table
      .add("site_every", site.options.every, number<std::int64_t>(one_or_more()),
           "rounds between two exchanges with other sites")
      .only_if(is_site, no_site);
  table
      .add("site_algorithm", site.algorithm, choice({"gasloc", "noloco", "diloco"}),
           "what an exchange between sites does")
      .only_if(is_site, no_site);
  table
      .add("site_algorithm_option", site.algorithm_options,
           "KEY=VALUE, an option of that rule (\"rate=0.7\"); may be repeated")
      .only_if(is_site, no_site);
  table
      .add("site_topology", site.topology, text(),
           "which sites read each other: a name that fits any number of them")
      .only_if(is_site, no_site);
  table
      .add("site_codec", site.codec, codecs(),
           "what messages to other sites are coded with; int4, int2 and sparse at --site-staleness "
           "0")
      .only_if(is_site, no_site);
  table
      .add("site_staleness", site.options.staleness,
           or_word(number<std::int64_t>(zero_or_more()), "inf", std::int64_t{1}),
           "0: an exchange waits for what the other sites publish for it; inf: it never waits and "
           "takes what has come")
      .only_if(is_site, no_site);
  table
      .add("site_patience", site.options.patience, seconds(positive()),
           "at --site-staleness 0, a site that is alive but has not published for so long is left "
           "out")
      .only_if(is_site, no_site);
  table
      .add("site_samples", site.options.samples, number<double>(positive()),
           "what a step of this site counts, relative to other sites': its number of samples")
      .only_if(is_site, no_site);
  table
      .add("site_expect", site.options.expect, number<int>(one_or_more()),
           "the first exchange waits until so many sites are there")
      .only_if(is_site, no_site);
}

}  // namespace fast::sites
