#include <cstddef>
#include <fast/core/observer.hpp>

namespace fast {

const char* name_of(LogLevel level) {
  constexpr const char* names[] = {"debug", "info", "warning", "error"};
  return names[static_cast<std::size_t>(level)];
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
  void on_site(const SiteEvent& event) noexcept override {
    for (const auto& observer : observers_) observer->on_site(event);
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
  constexpr std::string_view names[] = {"step", "publish", "wait", "mix", "commit"};
  return names[static_cast<std::size_t>(phase)];
}

std::string_view name(PeerEvent::Kind kind) {
  constexpr std::string_view names[] = {"suspected", "returned", "rejoined", "healed"};
  return names[static_cast<std::size_t>(kind)];
}

std::string_view name(MilestoneEvent::Kind kind) {
  return kind == MilestoneEvent::Kind::saved ? "saved" : "epoch ended";
}

std::shared_ptr<Observer> all_of(std::vector<std::shared_ptr<Observer>> observers) {
  std::erase(observers, nullptr);
  if (observers.size() < 2) return observers.empty() ? nullptr : observers.front();
  return std::make_shared<SeveralObservers>(std::move(observers));
}

}  // namespace fast
