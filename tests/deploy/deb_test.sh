#!/usr/bin/env bash
# The Debian packages on a Debian 12 that has nothing else (mmdebstrap): they install, the programs run, programs build
# against libfast-dev by CMake and by pkg-config, and nothing is left when they are removed.
#   deb_test.sh PACKAGES [FOLDER]    PACKAGES: made by scripts/deb.sh; FOLDER: keeps the machine. Needs root.
# 77: cannot be done here
set -euo pipefail
packages=$(realpath "$1")
cd "$(dirname "$0")/../.."
source tests/deploy/image.sh
need_root
need_debian
if command -v lintian >/dev/null; then
  lintian --fail-on error "$packages"/*.deb
else
  echo "lintian: skipped: it is not installed (apt-get install lintian)"
fi
folder=${2:-$(mktemp -d)}
[[ $# -ge 2 ]] || trap 'rm -rf "$folder"' EXIT
trap 'exit 1' INT TERM HUP
mkdir -p "$folder"
root=$folder/root
[[ -d $root ]] || scripts/bare_machine.sh make "$root"
rm -rf "$root/packages" "$root/consumer"
mkdir -p "$root/packages" "$root/consumer/tests" "$root/consumer/examples"
cp "$packages"/*.deb "$root/packages/"
cp -r tests/consumer "$root/consumer/tests/"
cp examples/c_training.c "$root/consumer/examples/"

cat >"$root/check" <<'END'
set -euo pipefail
export DEBIAN_FRONTEND=noninteractive
step() { echo "deb: $*"; }
stop() { echo "deb: FAILED: $*" && exit 1; }
step "the programs"
apt-get update -qq
apt-get install -y -qq --no-install-recommends /packages/libfast-c0_*.deb /packages/fast-tools_*.deb dataset-fashion-mnist >/dev/null
! command -v g++ >/dev/null || stop "a compiler came along"
for program in fast-train fast-model fast-topology fast-sim fast-trace fast-report fastrun; do
  $program --version
  [[ -s /usr/share/bash-completion/completions/$program ]] || stop "$program: no completion"
done
fastrun -n 3 fast-train --samples 600 --model mlp --epochs 1 --quiet --topology ring --out /tmp/run >/tmp/output || { cat /tmp/output && stop "training"; }
grep "test accuracy, mean model" /tmp/output
fast-report /tmp/run --html /tmp/report.html
step "the library"
apt-get install -y -qq --no-install-recommends /packages/libfast-dev_*.deb g++ cmake ninja-build >/dev/null
cmake -G Ninja -S /consumer/tests/consumer -B /tmp/consumer >/dev/null
cmake --build /tmp/consumer >/dev/null
for program in /tmp/consumer/consumer*; do [[ ! -x $program || -d $program ]] || { echo "deb: $program" && $program; }; done
step "pkg-config"
g++ -std=c++20 -O1 /consumer/tests/consumer/main.cpp -o /tmp/by_pkg_config $(pkg-config --cflags --libs fast-train fast-nn)
/tmp/by_pkg_config
gcc /consumer/examples/c_training.c -o /tmp/c_by_pkg_config $(pkg-config --cflags --libs fast-c) -lm
/tmp/c_by_pkg_config
objdump -p /tmp/c_by_pkg_config | grep "NEEDED.*libfast_c.so.0" || stop "the C program does not use the shared library"
for file in /usr/lib/*/pkgconfig/fast*.pc; do pkg-config --exists --print-errors "$(basename "$file" .pc)" || stop "$file"; done
step "removed"
dpkg -L libfast-c0 libfast-dev fast-tools | sort -u >/tmp/files
apt-get purge -y -qq libfast-c0 libfast-dev fast-tools >/dev/null
while read -r file; do [[ ! -f $file ]] || stop "$file is left"; done </tmp/files
step "all is well"
END
scripts/bare_machine.sh run "$root" bash /check </dev/null
