#!/usr/bin/env bash
# Installs the Debian packages that a build of FAST needs (scripts/packages.txt);  scripts/setup.sh test  those of the
# tests too (scripts/packages-test.txt);  scripts/setup.sh docs  those of the documentation site alone
# (scripts/packages-docs.txt);  scripts/setup.sh deb  what packing needs (scripts/packages-deb.txt). Idempotent: does nothing when all are there. Without root or sudo it prints the one line
# to run and stops. Only apt is used.
set -euo pipefail
cd "$(dirname "$0")/.."

lists=(scripts/packages.txt)
case "$*" in
"") ;;
test) lists+=(scripts/packages-test.txt) ;;
docs) lists=(scripts/packages-docs.txt) ;;
deb) lists=(scripts/packages.txt scripts/packages-deb.txt) ;;
*) echo "setup: $* is not a list of packages; give nothing, test, docs or deb" >&2 && exit 2 ;;
esac

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
  echo "setup: this is not a Debian system; install the equivalents of ${lists[*]} by hand" >&2
  exit 1
fi

missing=()
while read -r package; do
  [[ -z $package || $package == \#* ]] && continue
  status=$(dpkg-query -W -f='${Status}' "$package" 2>/dev/null || true)
  [[ $status == "install ok installed" ]] || missing+=("$package")
done < <(cat "${lists[@]}")
[[ ${#missing[@]} -eq 0 ]] && exit 0

if [[ $(id -u) -eq 0 ]]; then
  as_root=()
elif command -v sudo >/dev/null && { sudo -n true 2>/dev/null || [[ -t 0 ]]; }; then
  as_root=(sudo)
else
  echo "setup: packages are missing and there is neither root nor sudo; run this, then try again:" >&2
  echo "  apt-get update && apt-get install -y --no-install-recommends ${missing[*]}" >&2
  exit 1
fi
echo "setup: installing ${missing[*]}"
"${as_root[@]}" apt-get update -qq
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}"
