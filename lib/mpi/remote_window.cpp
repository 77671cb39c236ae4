#include "mpi/remote_window.hpp"

#include <algorithm>
#include <climits>
#include <cstring>
#include <fast/core/error.hpp>
#include <utility>

#include "core/leak_until_exit.hpp"
#include "mpi/impl.hpp"
#include "mpi/implementation.hpp"
#include "mpi/retired_windows.hpp"

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

namespace {

constexpr const char* purpose = "opening the remote window";
constexpr const char* closing = "closing the remote window";

/// What a rank tells the others of its window.
struct Share {
  MPI_Aint base = 0;
  bool dynamic = false;
};

std::vector<Share> all_gather(const Communicator& communicator, const Share& own,
                              const Deadline& deadline) {
  const std::string_view bytes(reinterpret_cast<const char*>(&own), sizeof own);
  std::vector<Share> all;
  for (const std::string& text : communicator.all_gather(bytes, deadline, purpose))
    std::memcpy(&all.emplace_back(), text.data(), sizeof own);
  return all;
}

}  // namespace

RemoteWindow::RemoteWindow(const Communicator& communicator, std::byte* base,
                           std::size_t size_bytes, std::shared_ptr<void> keep,
                           const Deadline& deadline)
    : communicator_(communicator),
      opened_(std::make_shared<Opened>(
          Opened{duplicate(communicator, deadline, purpose), std::move(keep)})),
      bases_(static_cast<std::size_t>(communicator.size())) {
  if (implementation::reads() == implementation::Reads::messages) {
    opened_->server = std::make_unique<ReadServer>(opened_->own, base, size_bytes);
  } else {
    create(base, size_bytes, deadline);
    check(MPI_Win_set_errhandler(opened_->window, MPI_ERRORS_RETURN), "MPI_Win_set_errhandler");
    check(MPI_Win_lock_all(MPI_MODE_NOCHECK, opened_->window), "MPI_Win_lock_all");
  }
  number_ = number_window(opened_->own, deadline);  // all have come
}

void RemoteWindow::create(std::byte* base, std::size_t size_bytes, const Deadline& deadline) {
  const auto size = static_cast<MPI_Aint>(size_bytes);
  Share own{0, implementation::reads() == implementation::Reads::dynamic_window};
  check(MPI_Get_address(base, &own.base), "MPI_Get_address");
  const std::vector<Share> all = all_gather(opened_->own, own, deadline);
  const bool is_dynamic =
      std::ranges::any_of(all, [](const Share& share) { return share.dynamic; });
  opened_->window = call_together<MPI_Win>(
      opened_->own, deadline, purpose, "MPI_Win_create", [=, opened = opened_](MPI_Win& window) {
        const MPI_Comm comm = opened->own.impl()->comm;
        return is_dynamic ? MPI_Win_create_dynamic(MPI_INFO_NULL, comm, &window)
                          : MPI_Win_create(base, size, 1, MPI_INFO_NULL, comm, &window);
      });
  if (!is_dynamic) return;
  check(MPI_Win_attach(opened_->window, base, size), "MPI_Win_attach");
  std::ranges::transform(all, bases_.begin(), [](const Share& share) { return share.base; });
}

int RemoteWindow::Opened::free() {
  if (std::exchange(server, nullptr)) return MPI_SUCCESS;
  MPI_Win_unlock_all(window);
  return MPI_Win_free(&window);
}

RemoteWindow::~RemoteWindow() {
  try {
    require(!communicator_.impl()->without_collectives, ErrorKind::mpi, "ranks are gone");
    // Twice: a rank that gave up in the first barrier is missing in the second, so that no rank
    // enters the blocking calls below.
    const Deadline deadline(Seconds(10));
    opened_->own.barrier(deadline, closing);
    opened_->own.barrier(deadline, closing);
    const auto opened = std::exchange(opened_, nullptr);
    call_together(opened->own, deadline, closing, "MPI_Win_free",
                  [opened] { return opened->free(); });
  } catch (...) {
    if (!opened_) return;  // MPI has it
    const std::vector<int> ranks = opened_->own.impl()->world_ranks;
    retire({number_, ranks, {}, [opened = std::move(opened_)] { return opened->free(); }});
  }
}

Request RemoteWindow::get(int rank, std::size_t offset, void* to, std::size_t size_bytes) const {
  require(size_bytes <= INT_MAX, ErrorKind::internal,
          "RemoteWindow::get: a read has {} bytes, MPI allows at most {}; read in parts",
          size_bytes, INT_MAX);
  const int count = static_cast<int>(size_bytes);
  if (opened_->server) return opened_->server->get(rank, offset, to, count);
  const MPI_Aint at = bases_[static_cast<std::size_t>(rank)] + static_cast<MPI_Aint>(offset);
  MPI_Request request = MPI_REQUEST_NULL;
  check(MPI_Rget(to, count, MPI_BYTE, rank, at, count, MPI_BYTE, opened_->window, &request),
        "MPI_Rget");
  return {request, "MPI_Rget", rank};
}

}  // namespace fast::mpi
