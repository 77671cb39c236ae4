// The files that every page carries; they are in the program.
#pragma once

#include <string_view>

namespace fast_report::assets {

std::string_view vega();        ///< third_party/vega
std::string_view vega_lite();   ///< third_party/vega
std::string_view vega_embed();  ///< third_party/vega
std::string_view licenses();    ///< of these three
std::string_view script();      ///< page.js
std::string_view style();       ///< page.css

}  // namespace fast_report::assets
