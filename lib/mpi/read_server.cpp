#include "mpi/read_server.hpp"

#include <algorithm>
#include <fast/core/error.hpp>
#include <utility>

#include "core/leak_until_exit.hpp"
#include "mpi/impl.hpp"

namespace fast::mpi {
namespace {

constexpr int question_tag = 0;
constexpr int answer_tags = 30000;  ///< MPI promises 32,767
constexpr int quick_polls = 200;    ///< after something happened
constexpr auto pause = std::chrono::microseconds(100);

/// Whether it is done or has failed: a rank that has ended neither asks nor needs an answer.
bool is_over(Request& request) {
  try {
    return request.test();
  } catch (const Error&) {
    return true;
  }
}

}  // namespace

ReadServer::ReadServer(const Communicator& own, const std::byte* base, std::size_t size_bytes)
    : own_(own), base_(base), size_bytes_(size_bytes) {
  expect_question();
  thread_ = std::thread([this] { serve(); });
}

ReadServer::~ReadServer() {
  stop_ = true;
  thread_.join();
  std::erase_if(asked_, [](Asked& one) { return is_over(one.request); });
  if (!asked_.empty() || !answers_.empty()) leak_until_exit(own_);
  for (Asked& one : asked_) leak_until_exit(std::move(one.question));
}

Request ReadServer::get(int rank, std::size_t offset, void* to, int size_bytes) {
  const std::lock_guard lock(asking_);
  std::erase_if(asked_, [](Asked& one) { return is_over(one.request); });
  next_tag_ = next_tag_ % answer_tags + 1;
  MPI_Comm comm = own_.impl()->comm;
  MPI_Request answer = MPI_REQUEST_NULL, sent = MPI_REQUEST_NULL;
  check(MPI_Irecv(to, size_bytes, MPI_BYTE, rank, next_tag_, comm, &answer), "MPI_Irecv");
  Request answered(answer, "reading", rank, Request::Kind::receive);
  auto question =
      std::make_unique<Question>(Question{offset, size_bytes, next_tag_, own_.impl()->rank});
  check(MPI_Issend(question.get(), sizeof(Question), MPI_BYTE, rank, question_tag, comm, &sent),
        "MPI_Issend");
  asked_.push_back({std::move(question), {sent, "MPI_Issend", rank}});
  return answered;
}

void ReadServer::expect_question() {
  MPI_Request request = MPI_REQUEST_NULL;
  check(MPI_Irecv(&arriving_, sizeof arriving_, MPI_BYTE, MPI_ANY_SOURCE, question_tag,
                  own_.impl()->comm, &request),
        "MPI_Irecv");
  expected_ = Request(request, "MPI_Irecv", Request::no_peer, Request::Kind::receive);
}

/// True if there was a question.
bool ReadServer::answer_one() {
  if (!is_over(expected_)) return false;
  const Question question = std::exchange(arriving_, {});
  expect_question();
  const auto size = static_cast<std::size_t>(std::max(0, question.size_bytes));
  if (size == 0 || size > size_bytes_ || question.offset > size_bytes_ - size) return true;
  MPI_Request request = MPI_REQUEST_NULL;
  check(MPI_Issend(base_ + question.offset, question.size_bytes, MPI_BYTE, question.from,
                   question.tag, own_.impl()->comm, &request),
        "MPI_Issend");
  answers_.emplace_back(request, "MPI_Issend", question.from);
  return true;
}

void ReadServer::serve() {
  int idle = 0;
  while (!stop_) {
    bool happened = false;
    try {
      happened = answer_one();
    } catch (const Error&) {  // of a rank that is gone
      std::this_thread::sleep_for(pause);
    }
    happened |= std::erase_if(answers_, is_over) > 0;
    idle = happened ? 0 : idle + 1;
    if (idle < quick_polls) {
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(pause);
    }
  }
  expected_ = Request();
}

}  // namespace fast::mpi
