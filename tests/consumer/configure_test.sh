#!/usr/bin/env bash
# What is found but does not link is left out of the configuration, in one line that says what mends it.
# configure_test.sh CMAKE CXX_COMPILER
set -uo pipefail
cmake=$1 compiler=$2
source=$(cd "$(dirname "$0")/../.." && pwd)
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
source "$(dirname "$0")/../support/expect.sh"

# package NAME TARGET LIBRARY: a package whose target links with that file.
package() {
  mkdir -p "$directory/$1"
  printf '%s\n' "add_library($2 INTERFACE IMPORTED)" "target_link_libraries($2 INTERFACE $3)" "set($1_FOUND TRUE)" >"$directory/$1/$1Config.cmake"
  printf '%s\n' 'set(PACKAGE_VERSION 19.24)' 'set(PACKAGE_VERSION_COMPATIBLE TRUE)' >"$directory/$1/$1ConfigVersion.cmake"
}
configure=("$cmake" -S "$source" -B "$directory/build" -G Ninja -Wno-dev "-DCMAKE_CXX_COMPILER=$compiler" -DFAST_BUILD_TESTS=OFF
  -DFAST_BUILD_EXAMPLES=OFF "-Ddlib_DIR=$directory/dlib" "-DTorch_DIR=$directory/Torch")

package dlib dlib::dlib /no/such/libjpeg.so
package Torch torch no_such_library
expect "what does not link" 0 \
  "fast::dlib is left out: it was found, but no program links with it (/no/such/libjpeg.so is missing); apt-get install libjpeg-dev libblas-dev liblapack-dev" \
  "fast::torch is left out: it was found, but no program links with it (-lno_such_library is missing); apt-get install --reinstall libtorch-dev" \
  -- "${configure[@]}"
package dlib dlib::dlib m
package Torch torch m
expect "what links, in the same folder" 0 "fast::dlib: dlib 19.24" "fast::torch: LibTorch 19.24" -- "${configure[@]}"
grep -F "left out" "$directory/output" && report_failure "what links is left out"
package Torch torch "m named::there_alone"
sed -i '1i add_library(there_alone INTERFACE)\nadd_library(named::there_alone ALIAS there_alone)' "$directory/Torch/TorchConfig.cmake"
expect "a target that names one of its package's own, as that of current LibTorch does" 0 "fast::torch: LibTorch 19.24" -- "${configure[@]}"
echo "$failures failures"
[[ $failures -eq 0 ]]
