#!/usr/bin/env bash
# The development image, built by buildah on a Debian 12 of mmdebstrap: programs of others build and run against the FAST that
# is installed there, nothing that a build with tests needs is missing, and CMake configures such a build.
#   development_image_test.sh PACKAGES [FOLDER]
#     PACKAGES: of scripts/deb.sh; FOLDER: keeps the image, and takes one that is there; it may be that of container_test.sh
# 77: cannot be done here
set -uo pipefail
packages=$(realpath "${1:?the folder of packages}")
cd "$(dirname "$0")/../.." || exit 1
source tests/deploy/image.sh
need_root
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
trap 'exit 1' INT TERM HUP
folder=${2:-$directory/kept}
root=$folder/development
mkdir -p "$folder"
source tests/support/expect.sh
if [[ ! -d $root ]]; then
  need_buildah
  need_debian
  scripts/container.sh --target development --bare --packages "$packages" --storage "$folder/storage" --tag localhost/fast:test-development \
    --export "$root" || exit 1
fi

cat >"$directory/look" <<'END'
set -euo pipefail
step() { echo "development: $*"; }
step "programs of others, by CMake"
cmake -G Ninja -S /fast/tests/consumer -B /tmp/consumer "-DCOMPONENTS=nn;train;c;testing" >/dev/null
cmake --build /tmp/consumer >/dev/null
for program in consumer consumer_c consumer_testing; do /tmp/consumer/$program >/dev/null && step "$program runs"; done
step "programs of others, by pkg-config"
g++ -std=c++20 -O1 /fast/tests/consumer/main.cpp -o /tmp/by_pkg_config $(pkg-config --cflags --libs fast-train fast-nn)
/tmp/by_pkg_config
step "programs of FAST"
fastrun -n 2 fast-train --samples 600 --model mlp --epochs 1 --quiet | grep "test accuracy"
step "packages"
cd /fast
[[ -z $(scripts/setup.sh test) ]] && step "no package is missing"
step "a build"
cmake --preset release -B /tmp/build >/tmp/configured
grep -E "fast::(torch|dlib): " /tmp/configured
[[ -z $(sed -n '/ left out: /p' /tmp/configured) ]] && step "nothing is left out"
ninja -C /tmp/build -n fast-train | tail -n 1
END
# What is written goes to a memory of its own, and the image stays as it is. Packages cannot be installed: there is no network.
BIND="$directory:/look" timeout -k 5 500 unshare -n bash -c 'ip link set lo up && exec scripts/bare_machine.sh run "$@"' run "$root" \
  bash -c 'mount -t tmpfs tmpfs /tmp && exec env OMP_NUM_THREADS=1 bash /look/look' </dev/null >"$directory/output" 2>&1
status=$?
cat "$directory/output"
[[ $status -eq 0 ]] || report_failure "the image: status $status"
for text in "consumer runs" "consumer_c runs" "consumer_testing runs" "test accuracy" "no package is missing" "fast::torch: " "fast::dlib: " "nothing is left out"; do
  grep -qF "$text" "$directory/output" || report_failure "the image: no \"$text\""
done
echo "$failures failures"
[[ $failures -eq 0 ]]
