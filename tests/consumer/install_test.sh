#!/usr/bin/env bash
# Installs a build into a new directory, and builds and runs a program against what was installed.
# install_test.sh CMAKE BUILD_DIRECTORY CXX_COMPILER COMPONENTS   (fast,nn,...)
set -euo pipefail
cmake=$1 build=$2 compiler=$3 components=${4//,/;}
source=$(cd "$(dirname "$0")" && pwd)
prefix=$(mktemp -d)
trap 'rm -rf "$prefix"' EXIT

configure() { "$cmake" -G Ninja -S "$source" -B "$prefix/$1" -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_CXX_COMPILER="$compiler" "${@:2}"; }
refuse() { echo "FAILED: $1" && exit 1; }

"$cmake" --install "$build" --prefix "$prefix" >/dev/null
grep -rlF "$build" "$prefix" --include='*.cmake' && refuse "the package names the directory it was built in"

configure consumer "-DCOMPONENTS=$components"
"$cmake" --build "$prefix/consumer"
"$prefix/consumer/consumer"
for program in "$prefix"/consumer/consumer_*; do "$program"; done

# The installed program carries what its pages need.
if [[ -x $prefix/bin/fast-report ]]; then
  python3 "$source/../report/make_run.py" "$prefix/run"
  "$prefix/bin/fast-report" "$prefix/run" --html "$prefix/report.html"
  grep -q vegaEmbed "$prefix/report.html" || refuse "the report has no charts"
fi

configure unknown "-DCOMPONENTS=nn;warp" >"$prefix/log" 2>&1 && refuse "a component that does not exist was found"
tr -s ' \n' ' ' <"$prefix/log" | grep -F "component 'warp' was not built; this installation has: ${4//,/, }" ||
  { cat "$prefix/log" && refuse "the message does not name the components there are"; }
