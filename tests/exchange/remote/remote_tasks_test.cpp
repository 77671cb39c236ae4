#include "exchange/remote/remote_tasks.hpp"

#include <atomic>
#include <stdexcept>
#include <thread>

#include "exchange/pair.hpp"
#include "support/catch.hpp"

using namespace fast;
using namespace fast::exchange;
using testing::Pair;

namespace {

enum class Course { ends, fails, fails_under_way, never_ends };

class StepTask final : public RemoteTask {
 public:
  StepTask(int worker, Course course) : RemoteTask(worker), course_(course) {}
  bool advance(bool is_followed) override {
    followed = is_followed;
    if (course_ == Course::fails || course_ == Course::fails_under_way)
      throw std::runtime_error("connection reset by peer");
    ended_ = (course_ == Course::ends || answers) && ++steps >= 3;
    return false;
  }
  bool ended() const override { return ended_; }
  bool released() override { return course_ == Course::ends || course_ == Course::fails; }
  std::atomic<bool> answers{false};  ///< after all
  std::atomic<int> steps{0};
  std::atomic<bool> followed{false};

 private:
  Course course_;
  bool ended_ = false;
};

/// With the background thread that advances the tasks. It follows worker 0.
struct Served {
  Pair pair{64};
  RemoteTasks tasks{pair.board};
  std::atomic<bool> stop{false};
  std::thread thread{[this] {
    while (!stop) {
      tasks.advance([](int worker) { return worker == 0; });
      std::this_thread::yield();
    }
  }};
  ~Served() {
    stop = true;
    thread.join();
  }
};

}  // namespace

TEST_CASE("a thread waits for its task until that has ended") {
  Served served;
  for (const int worker : {0, 1}) {
    const auto task = std::make_shared<StepTask>(worker, Course::ends);
    CHECK(served.tasks.run(task, Deadline(Seconds(20))));
    CHECK(task->steps == 3);
    CHECK(task->followed == (worker == 0));
    CHECK(served.tasks.is_empty());
  }
}

TEST_CASE("a task that fails, and one whose deadline passes, end the wait without a result") {
  Served served;
  CHECK_FALSE(
      served.tasks.run(std::make_shared<StepTask>(0, Course::fails), Deadline(Seconds(20))));
  CHECK(served.tasks.is_empty());
  const auto endless = std::make_shared<StepTask>(0, Course::never_ends);
  CHECK_FALSE(served.tasks.run(endless, Deadline(Seconds(0.05))));
  CHECK_FALSE(served.tasks.is_empty());
  CHECK_FALSE(served.tasks.released());
  // It does not delay the others.
  CHECK(served.tasks.run(std::make_shared<StepTask>(1, Course::ends), Deadline(Seconds(20))));
}

TEST_CASE("a worker that owes an answer is asked again only when it has answered") {
  Served served;
  const auto first = std::make_shared<StepTask>(0, Course::never_ends);
  CHECK_FALSE(served.tasks.run(first, Deadline(Seconds(0.05))));
  const auto second = std::make_shared<StepTask>(0, Course::ends);
  CHECK_FALSE(served.tasks.run(second, Deadline(Seconds(0.05))));
  CHECK(second->steps == 0);
  first->answers = true;
  CHECK(served.tasks.run(second, Deadline(Seconds(20))));
  CHECK(second->steps == 3);
}

TEST_CASE("the memory of a task that failed is kept only while MPI may use it") {
  Served served;
  auto done = std::make_shared<StepTask>(0, Course::fails);
  auto under_way = std::make_shared<StepTask>(1, Course::fails_under_way);
  CHECK_FALSE(served.tasks.run(done, Deadline(Seconds(20))));
  CHECK_FALSE(served.tasks.run(under_way, Deadline(Seconds(20))));
  const std::weak_ptr<StepTask> of_done = done, of_under_way = under_way;
  done.reset();
  under_way.reset();
  while (!of_done.expired()) std::this_thread::yield();
  CHECK_FALSE(of_under_way.expired());
}
