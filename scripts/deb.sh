#!/usr/bin/env bash
# Builds the Debian packages libfast-c0, libfast-dev and fast-tools.   scripts/deb.sh [FOLDER]     (build/packages)
# They need Debian 12 and a processor with AVX2. PORTABLE=1: any x86-64 processor; training is slower.
# Prints name, version and size of each package, and what it depends on.
set -euo pipefail
folder=${1:+$(realpath -m "$1")} # of the caller's folder
cd "$(dirname "$0")/.."
folder=${folder:-$PWD/build/packages}
scripts/setup.sh deb
[[ -n ${SOURCE_DATE_EPOCH:-} ]] || SOURCE_DATE_EPOCH=$(git log -1 --format=%ct 2>/dev/null || date +%s)
export SOURCE_DATE_EPOCH
cmake --preset deb -Wno-dev -DFAST_PORTABLE="${PORTABLE:-OFF}" >/dev/null
scripts/build.sh deb
mkdir -p "$folder"
rm -f "$folder"/{libfast-c0,libfast-dev,fast-tools}_*.deb
log=$(mktemp)
trap 'rm -f "$log"' EXIT
(cd build/deb && umask 022 && cpack -G DEB -B "$folder") >"$log" 2>&1 || { cat "$log" && exit 1; }
rm -rf "$folder/_CPack_Packages"
for package in "$folder"/*.deb; do
  dpkg-deb --showformat='${Package} ${Version} (${Installed-Size} kB installed)\n  depends on: ${Depends}\n' --show "$package"
done
