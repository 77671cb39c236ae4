#!/usr/bin/env bash
# What fastrun makes of its ranks' output: --prefix, --log-dir.   fastrun_output_test.sh FASTRUN
set -uo pipefail
fastrun=$1
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
source "$(dirname "$0")/../support/expect.sh"

# Lines of ranks that print much, in pieces that end within lines.
cat >"$directory/prints" <<'END'
#!/usr/bin/env bash
for ((i = 0; i < 3000; ++i)); do printf '%s' "rank $FASTRUN_RANK "; echo "line $i of many"; done
echo "errors of $FASTRUN_RANK" >&2
printf 'a bar\r 50 %%\r100 %%\n'
printf 'no end of the line'
END
chmod +x "$directory/prints"
for ranks in 1 2 4 3; do
  rm -rf "$directory/logs"
  timeout 100 "$fastrun" --prefix --log-dir "$directory/logs" -n $ranks "$directory/prints" </dev/null >"$directory/output" 2>"$directory/errors"
  status=$?
  [[ $status -eq 0 ]] || report_failure "$ranks ranks: status $status, $(cat "$directory/errors")"
  for ((rank = 0; rank < ranks; ++rank)); do
    FASTRUN_RANK=$rank "$directory/prints" >"$directory/alone" 2>/dev/null
    tr '\r' '\n' <"$directory/alone" | sed "s/^/[$rank] /; \$a\\" >"$directory/expected"
    grep -F "[$rank] " "$directory/output" | cmp - "$directory/expected" || report_failure "$ranks ranks: lines of rank $rank"
    grep -qxF "[$rank] errors of $rank" "$directory/errors" || report_failure "$ranks ranks: errors of rank $rank: $(cat "$directory/errors")"
    grep -avxF "errors of $rank" "$directory/logs/rank-$rank.log" | cmp - <(cat "$directory/alone" && echo) ||
      report_failure "$ranks ranks: rank-$rank.log"
    grep -qxF "errors of $rank" "$directory/logs/rank-$rank.log" || report_failure "$ranks ranks: no errors in rank-$rank.log"
  done
  [[ $(wc -l <"$directory/output") -eq $((3004 * ranks)) ]] || report_failure "$ranks ranks: $(wc -l <"$directory/output") lines"
  [[ $(ls "$directory/logs" | wc -l) -eq $ranks ]] || report_failure "$ranks ranks: $(ls "$directory/logs")"
done

# A job that is queued again appends. What fastrun prints stays as it is without --prefix.
again=("$fastrun" --log-dir "$directory/new/logs" -n 2 bash -c 'echo "job $FASTRUN_RANK"')
expect "a folder that is missing" 0 "job 0" "job 1" -- "${again[@]}"
expect "the same again" 0 "job 0" "job 1" -- "${again[@]}"
[[ $(cat "$directory/new/logs/rank-1.log") == $'job 1\njob 1' ]] || report_failure "a job again: $(cat "$directory/new/logs/rank-1.log")"
grep -qF "[" "$directory/output" && report_failure "a prefix that nobody asked for"

# Files that cannot be written end nobody.
touch "$directory/file"
expect "a file in place of the folder" 1 "fastrun: --log-dir: no files can be made in $directory/file/logs" "choose another folder" -- \
  "$fastrun" --log-dir "$directory/file/logs" -n 2 true
mkdir -p "$directory/taken/rank-0.log" "$directory/taken/rank-1.log"
expect "folders in place of the files" 0 "rank 0 prints" "rank-" "cannot be written (Is a directory); it is left out from now on" -- \
  "$fastrun" --log-dir "$directory/taken" -n 2 bash -c 'echo "rank $FASTRUN_RANK prints"'
[[ $(grep -c "cannot be written" "$directory/output") -eq 1 ]] || report_failure "files that cannot be written: not told once"
ln -s /dev/full "$directory/rank-0.log"
expect "a full disk" 0 "rank 0 prints" "(No space left on device)" -- "$fastrun" --log-dir "$directory" -n 1 bash -c 'echo "rank 0 prints"'

echo "fastrun output: $failures failures"
exit $((failures > 0))
