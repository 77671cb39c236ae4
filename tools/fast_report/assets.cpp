#include "fast_report/assets.hpp"

// The assembler reads the files. CMake passes the two folders, and lists the files as dependencies
// of this source.
#define FAST_REPORT_ASSET(name, path)                                     \
  __asm__(                                                                \
      ".pushsection .rodata\n.balign 16\n"                                \
      ".hidden fast_report_" #name "\n.globl fast_report_" #name          \
      "\n"                                                                \
      "fast_report_" #name ":\n.incbin \"" path                           \
      "\"\n"                                                              \
      ".hidden fast_report_" #name "_end\n.globl fast_report_" #name      \
      "_end\n"                                                            \
      "fast_report_" #name "_end:\n.byte 0\n.popsection\n");              \
  extern "C" const char fast_report_##name[], fast_report_##name##_end[]; \
  std::string_view fast_report::assets::name() {                          \
    return {fast_report_##name, fast_report_##name##_end};                \
  }

FAST_REPORT_ASSET(vega, FAST_REPORT_VEGA "/vega.min.js")
FAST_REPORT_ASSET(vega_lite, FAST_REPORT_VEGA "/vega-lite.min.js")
FAST_REPORT_ASSET(vega_embed, FAST_REPORT_VEGA "/vega-embed.min.js")
FAST_REPORT_ASSET(licenses, FAST_REPORT_VEGA "/LICENSES.txt")
FAST_REPORT_ASSET(script, FAST_REPORT_PAGE "/page.js")
FAST_REPORT_ASSET(style, FAST_REPORT_PAGE "/page.css")
