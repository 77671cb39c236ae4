// Calls into LibTorch and the caller's code, whose errors become one line.
#pragma once

#include <ATen/core/Tensor.h>
#include <fmt/format.h>

#include <fast/core/error.hpp>
#include <sstream>
#include <string>
#include <type_traits>

namespace fast::torch {

inline std::string text_of(at::IntArrayRef shape) {
  std::ostringstream text;
  text << shape;
  return text.str();
}

/// The result of `call`. Throws Error(argument) with the first line of an error of LibTorch. `what`
/// names the call. `with()` returns the shapes, for the message.
template <class With, class Call>
std::invoke_result_t<const Call&> in_one_line(const char* what, const With& with,
                                              const Call& call) {
  try {
    return call();
  } catch (const c10::Error& error) {
    const std::string text = error.what_without_backtrace();
    fail(ErrorKind::argument, "torch: {} failed{}: {}", what, with(),
         text.substr(0, text.find('\n')));
  }
}

/// The same for a function of the caller that gets outputs and targets.
template <class Call>
std::invoke_result_t<const Call&> calling_own(const char* what, const at::Tensor& outputs,
                                              const at::Tensor& targets, const Call& call) {
  const auto shapes = [&] {
    return fmt::format(" with outputs {} and targets {}", text_of(outputs.sizes()),
                       text_of(targets.sizes()));
  };
  return in_one_line(what, shapes, call);
}

}  // namespace fast::torch
