#!/usr/bin/env bash
# Pages in a browser without a screen: all figures are drawn, the console has no message, no name
# runs as a script, and the page prints. Skipped where there is no Chromium.
#   browser_test.sh FAST_REPORT PYTHON
set -uo pipefail
report=$1 python=$2
here=$(dirname "$(readlink -f "$0")")
browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome) ||
  { echo "skipped: no Chromium here; apt-get install chromium" && exit 77; }
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
source "$here/../support/expect.sh"
cd "$directory" || exit 1

# browse FILE OPTION...: what the browser prints goes to FILE. Its start may hang on a loaded machine, and
# its virtual time does; so it has real time, and is started again when it does not end.
browse() {
  local into=$1
  shift
  for _ in 1 2 3 4; do
    timeout -k 5 40 "$browser" --headless=new --no-sandbox --disable-gpu --disable-dev-shm-usage --hide-scrollbars \
      --user-data-dir="$(mktemp -d -p "$directory")" --no-first-run --disable-background-networking \
      --host-resolver-rules="MAP * ~NOTFOUND" --enable-logging=stderr --v=0 "$@" >"$into" 2>messages && return
  done
  cp messages output
  report_failure "the browser does not end"
}

# page NAME FIGURES RUN...: the page of these runs has that many figures, and all are drawn.
page() {
  local name=$1 figures=$2
  shift 2
  expect "$name" 0 -- "$report" "$@" --html "$name.html"
  browse "$name.dom" --dump-dom "file://$directory/$name.html"
  cp "$name.dom" output
  grep -qF "data-figures=\"$figures\" data-drawn=\"$figures\"" "$name.dom" ||
    { grep -o '<body[^>]*>' "$name.dom" >output; report_failure "$name: not $figures figures"; }
  [[ $(grep -o '<svg ' "$name.dom" | wc -l) -ge $figures ]] || report_failure "$name: drawings are missing"
  grep 'CONSOLE' messages >output && report_failure "$name: messages in the console"
  grep -qF 'pwned' "$name.dom" && ! grep -qF 'pwned' "$name.html" && report_failure "$name: a name ran as a script"
}

"$python" "$here/make_run.py" four
"$python" "$here/make_run.py" sixteen --workers 16 --topology "torus 4x4" --lost 6 --paused 9 --epochs 8
"$python" "$here/make_run.py" one --workers 1 --topology ring --option ring --epochs 1
"$python" "$here/make_run.py" resumed --resumed --epochs 6 --unfinished --topology ring --option ring
name='<img src=x onerror="document.title=`pw`+`ned`">'
cp -r four "$name"

# A run of which there is one line only.
mkdir -p little/metrics
echo '{"kind":"start","time":1000,"seconds":0,"rank":0,"workers":2}' >little/metrics/0.jsonl

# Of a run: loss, accuracy, learning rate, speed, gradient norm, distance, network, waited for, anatomy,
# timeline. One worker has no distance, and one line gives the network only. Several runs: three more.
# One page, since a browser takes long to start.
page all 53 four sixteen resumed "$name" one little

browse printed --print-to-pdf="$directory/all.pdf" "file://$directory/all.html"
[[ $(head -c 5 all.pdf) == %PDF- && $(stat -c %s all.pdf) -gt 50000 ]] || report_failure "the page does not print"
echo "$failures failures"
[[ $failures -eq 0 ]]
