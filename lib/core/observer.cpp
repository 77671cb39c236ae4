#include <fast/core/observer.hpp>

namespace fast {

const char* name_of(LogLevel level) {
  switch (level) {
    case LogLevel::debug:
      return "debug";
    case LogLevel::info:
      return "info";
    case LogLevel::warning:
      return "warning";
    case LogLevel::error:
      break;
  }
  return "error";
}

namespace {

class SeveralObservers final : public Observer {
 public:
  explicit SeveralObservers(std::vector<std::shared_ptr<Observer>> observers)
      : observers_(std::move(observers)) {}

  void on_phase(const PhaseEvent& event) noexcept override {
    for (const auto& observer : observers_) observer->on_phase(event);
  }
  void on_message(const MessageEvent& event) noexcept override {
    for (const auto& observer : observers_) observer->on_message(event);
  }
  void on_peer(const PeerEvent& event) noexcept override {
    for (const auto& observer : observers_) observer->on_peer(event);
  }
  void on_scalar(const ScalarEvent& event) noexcept override {
    for (const auto& observer : observers_) observer->on_scalar(event);
  }
  void on_milestone(const MilestoneEvent& event) noexcept override {
    for (const auto& observer : observers_) observer->on_milestone(event);
  }
  void on_values(const ValuesEvent& event) noexcept override {
    for (const auto& observer : observers_) observer->on_values(event);
  }

 private:
  std::vector<std::shared_ptr<Observer>> observers_;
};

}  // namespace

std::string_view name(Phase phase) {
  switch (phase) {
    case Phase::step:
      return "step";
    case Phase::publish:
      return "publish";
    case Phase::wait:
      return "wait";
    case Phase::mix:
      return "mix";
    case Phase::commit:
      return "commit";
  }
  return "?";
}

std::string_view name(PeerEvent::Kind kind) {
  switch (kind) {
    case PeerEvent::Kind::suspected:
      return "suspected";
    case PeerEvent::Kind::returned:
      return "returned";
    case PeerEvent::Kind::rejoined:
      return "rejoined";
    case PeerEvent::Kind::healed:
      return "healed";
  }
  return "?";
}

std::string_view name(MilestoneEvent::Kind kind) {
  switch (kind) {
    case MilestoneEvent::Kind::epoch_ended:
      return "epoch ended";
    case MilestoneEvent::Kind::saved:
      return "saved";
  }
  return "?";
}

std::shared_ptr<Observer> all_of(std::vector<std::shared_ptr<Observer>> observers) {
  std::erase(observers, nullptr);
  if (observers.size() < 2) return observers.empty() ? nullptr : observers.front();
  return std::make_shared<SeveralObservers>(std::move(observers));
}

}  // namespace fast
