#!/usr/bin/env bash
# fast-report as a user calls it: with good directories, bad ones, and files that are in the way.
#   program_test.sh FAST_REPORT PYTHON
set -uo pipefail
report=$1 python=$2
here=$(dirname "$(readlink -f "$0")")
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
source "$here/../support/expect.sh"
cd "$directory" || exit 1
make_run() { "$python" "$here/make_run.py" "$@" || report_failure "make_run.py $*"; }
one_line() { [[ $(wc -l <"$directory/output") -eq 1 ]] || report_failure "$1: not one line"; }

make_run four
make_run sixteen --workers 16 --topology "torus 4x4" --lost 6 --paused 9
make_run resumed --resumed --epochs 6
make_run killed --unfinished --epochs 3

expect "help" 0 "--html" "--overwrite" "or of several" -- "$report" --help
expect "one run" 0 "report.html: 1 run" -- "$report" four
one_line "one run"
expect "again" 0 "report.html: 1 run" -- "$report" four
for run in sixteen resumed killed; do
  expect "$run" 0 "$run.html: 1 run" -- "$report" "$run" --html "$run.html"
done
grep -q "15 of 16 workers finished. Lost: worker 6." sixteen.html || report_failure "the lost worker"
grep -q "resumed 1 time" resumed.html || report_failure "the resumed run"
grep -q "The run was killed, or it still trains." killed.html || report_failure "the killed run"
expect "several" 0 "all.html: 3 runs" -- "$report" four sixteen resumed --html all.html

# A run directory that is not complete gives a page that says so.
cp -r sixteen partly
rm partly/metrics.jsonl partly/metrics/3.jsonl
: >partly/metrics/5.jsonl
truncate -s -20 partly/metrics/7.jsonl
rm partly/config.toml
expect "a part of a run" 0 "2 of 16 workers: 3, 5." "metrics/5.jsonl is empty" "last line of metrics/7.jsonl is cut" \
  "no config.toml" "partly.html: 1 run" -- "$report" partly --html partly.html
grep -q "2 of 16 workers: 3, 5" partly.html || report_failure "the page says what is missing"

# What is no run, and what cannot be written: one line, status 1, and no file.
mkdir empty
bad() {
  local title=$1
  expect "$@"
  one_line "$title"
  [[ ! -e new.html ]] || report_failure "$title: a file was written"
}
bad "no run" 1 "it has no metrics" -- "$report" empty --html new.html
bad "no directory" 1 "there is no such" -- "$report" nowhere --html new.html
bad "a file" 1 "four.txt" -- "$report" four.txt --html new.html
bad "one of two is no run" 1 "empty" -- "$report" four empty --html new.html
bad "no such folder" 1 "No such file or directory" -- "$report" four --html no/new.html
bad "a directory in the way" 1 "Is a directory" -- "$report" four --html empty
bad "a full disk" 1 "No space left" -- "$report" four --html /dev/full
echo mine >mine.html
bad "another file in the way" 2 "--overwrite" -- "$report" four --html mine.html
[[ $(cat mine.html) == mine ]] || report_failure "the file was changed"
expect "it may be replaced" 0 "mine.html" -- "$report" four --html mine.html --overwrite
expect "no argument" 2 "fast-report: give the directory of a run; --help" -- "$report"
expect "a mistyped option" 2 "did you mean \"--html\"" -- "$report" four --htlm x.html

# A name cannot become a script.
name='<img src=x onerror=alert(1)>'
mv four "$name"
expect "a hostile name" 0 -- "$report" "$name" resumed --html hostile.html
grep -q '<img src=x' hostile.html && report_failure "the name is markup"
grep -q '&lt;img src=x' hostile.html || report_failure "the name is not shown"

# The installed program needs no file beside it.
mkdir alone
cp "$report" alone/fast-report
expect "alone" 0 "1 run" -- env -C "$directory" alone/fast-report resumed --html alone.html
for part in vegaLite vegaEmbed "University of Washington"; do
  grep -q "$part" alone.html || report_failure "no $part in the page"
done
echo "$failures failures"
[[ $failures -eq 0 ]]
