// Why a request gets no prediction: a status of HTTP and a sentence for the client.
#pragma once

#include <fmt/core.h>

#include <stdexcept>
#include <string>
#include <utility>

namespace fast::serve {

class Refusal : public std::runtime_error {
 public:
  Refusal(int status, const std::string& text) : std::runtime_error(text), status_(status) {}
  int status() const noexcept { return status_; }  ///< 400 to 599

 private:
  int status_;
};

template <class... Args>
[[noreturn]] void refuse(int status, fmt::format_string<Args...> format, Args&&... args) {
  throw Refusal(status, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace fast::serve
