// The documentation's table of averaging rules, from their traits.
#pragma once

#include <string>

namespace fast_train {

/// Markdown between the lines "<!-- rules -->" and "<!-- end -->".
std::string rules_markdown();

}  // namespace fast_train
