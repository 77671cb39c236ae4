#include "fastrun/requests.hpp"

#include "support/catch.hpp"

using fastrun::GrowthRequests;

TEST_CASE("a request is under way until it is refused or a spare has joined") {
  GrowthRequests requests;
  CHECK(requests.under_way() == 0);
  requests.ask(0);
  requests.ask(0);
  CHECK(requests.under_way() == 2);
  requests.answer(0, false);
  CHECK(requests.under_way() == 1);
  requests.answer(0, true);
  CHECK(requests.under_way() == 1);
  requests.join();
  CHECK(requests.under_way() == 0);
}

TEST_CASE("requests that a rank leaves without an answer are not under way") {
  GrowthRequests requests;
  requests.ask(0);
  requests.ask(2);
  requests.ask(2);
  requests.answer(2, true);
  CHECK(requests.end(1) == 0);
  CHECK(requests.end(2) == 1);
  CHECK(requests.end(2) == 0);
  CHECK(requests.under_way() == 2);  // that of rank 0, and the spare that shall join
}
