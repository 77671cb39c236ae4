#include "fastrun/requests.hpp"

#include <fmt/core.h>

namespace fastrun {

Request parse_request(const std::string& line, int ranks) {
  std::istringstream words(line);
  std::string what, more;
  int rank = -1;
  words >> what;
  if (what == "grow" && !(words >> more)) return {Request::What::grow, -1, {}};
  Request request;
  if (what != "leave" || !(words >> rank) || words >> more) {
    request.problem = fmt::format("\"{}\" is unknown; write: leave RANK, or grow", line);
  } else if (rank < 0 || rank >= ranks) {
    request.problem = fmt::format("\"{}\": this job has {} ranks (0..{})", line, ranks, ranks - 1);
  }
  request.rank = rank;
  return request;
}

}  // namespace fastrun
