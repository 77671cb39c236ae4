# Sourced by tests in bash. Needs $directory to write to; counts in $failures.
failures=0

# expect TITLE STATUS TEXT... -- COMMAND...: ends with that status and prints all the texts.
expect() {
  local title=$1 status=$2 texts=() found
  shift 2
  while [[ $1 != -- ]]; do texts+=("$1") && shift; done
  shift
  timeout -k 5 200 "$@" </dev/null >"$directory/output" 2>&1 9>&-
  found=$?
  [[ $found -eq $status ]] || report_failure "$title: status $found"
  for text in "${texts[@]}"; do
    grep -qF -e "$text" "$directory/output" || report_failure "$title: no \"$text\""
  done
}

report_failure() {
  echo "FAILED: $1"
  failures=$((failures + 1))
  sed 's/^/  | /' "$directory/output"
}

# results FILE: how many epochs and tests within one a file of metrics has.
results() { grep -cE '^\{"kind":"(epoch|evaluation)"' "$1" 2>/dev/null || true; }

# expect_on_the_way TITLE TEXT FILE ACTION -- COMMAND...: once FILE, of metrics, has a result, does ACTION; COMMAND then ends
# well and prints the text.
expect_on_the_way() {
  local title=$1 text=$2 file=$3 action=$4 started
  shift 5
  timeout -k 5 200 "$@" </dev/null >"$directory/output" 2>&1 9>&- &
  started=$!
  for ((i = 0; i < 1200 && $(results "$file")0 < 1; ++i)); do sleep 0.1; done
  $action $started
  wait $started || report_failure "$title: status $?"
  grep -qF -e "$text" "$directory/output" || report_failure "$title: no \"$text\""
}
