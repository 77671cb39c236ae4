# fast_links(RESULT NAME TARGETS... [PACKAGE name VARIABLES...] MENDED_BY text): sets RESULT to whether a program links with
# imported targets that were found. A package may be there without the libraries that it names. Where it is, one line says
# that fast::NAME is left out, what is missing, and what mends it. Nothing is cached, so that the next configuration tries
# again. With PACKAGE, the program looks for the package itself, with these variables: its targets may name others that
# exist there alone.
function(fast_links result name)
  cmake_parse_arguments(arg "" "MENDED_BY;PACKAGE" "TARGETS;VARIABLES" ${ARGN})
  set(CMAKE_TRY_COMPILE_TARGET_TYPE EXECUTABLE)
  set(CMAKE_TRY_COMPILE_CONFIGURATION Release)
  if(arg_PACKAGE)
    set(project ${CMAKE_BINARY_DIR}/CMakeFiles/fast_links/${name})
    file(WRITE ${project}/CMakeLists.txt "cmake_minimum_required(VERSION 3.25)
project(links CXX)
set(CMAKE_FIND_PACKAGE_TARGETS_GLOBAL ON)
find_package(${arg_PACKAGE} REQUIRED)
file(WRITE \${CMAKE_BINARY_DIR}/main.cpp \"int main() {}\\n\")
add_executable(links \${CMAKE_BINARY_DIR}/main.cpp)
target_link_libraries(links PRIVATE ${arg_TARGETS})
")
    set(flags)
    foreach(variable IN LISTS arg_VARIABLES ITEMS CMAKE_CXX_COMPILER CMAKE_TOOLCHAIN_FILE CMAKE_EXE_LINKER_FLAGS)
      list(APPEND flags "-D${variable}=${${variable}}")
    endforeach()
    file(REMOVE_RECURSE ${project}/build)  # what is there may be another package than before
    try_compile(links PROJECT links SOURCE_DIR ${project} BINARY_DIR ${project}/build NO_CACHE
                CMAKE_FLAGS ${flags} OUTPUT_VARIABLE output)
  else()
    try_compile(links SOURCE_FROM_CONTENT main.cpp "int main() {}\n" NO_CACHE
                LINK_LIBRARIES ${arg_TARGETS} OUTPUT_VARIABLE output)
  endif()
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
