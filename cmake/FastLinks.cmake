# fast_links(RESULT NAME TARGETS... MENDED_BY text): sets RESULT to whether a program links with imported targets that were
# found. A package may be there without the libraries that it names. Where it is, one line says that fast::NAME is left out,
# what is missing, and what mends it. Nothing is cached, so that the next configuration tries again.
function(fast_links result name)
  cmake_parse_arguments(arg "" "MENDED_BY" "TARGETS" ${ARGN})
  set(CMAKE_TRY_COMPILE_TARGET_TYPE EXECUTABLE)
  set(CMAKE_TRY_COMPILE_CONFIGURATION Release)
  try_compile(links SOURCE_FROM_CONTENT main.cpp "int main() {}\n" NO_CACHE
              LINK_LIBRARIES ${arg_TARGETS} OUTPUT_VARIABLE output)
  set(${result} ${links} PARENT_SCOPE)
  if(links)
    return()
  endif()
  set(missing "see CMakeFiles/CMakeError.log")
  # As Ninja, make and the linker put it.
  if(output MATCHES "'([^']+)', needed by|No rule to make target '([^']+)'|cannot find ([^ \n:]+)")
    set(missing "${CMAKE_MATCH_1}${CMAKE_MATCH_2}${CMAKE_MATCH_3} is missing")
  endif()
  message(STATUS "fast::${name} is left out: it was found, but no program links with it (${missing}); ${arg_MENDED_BY}")
endfunction()
