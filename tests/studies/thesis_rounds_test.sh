#!/usr/bin/env bash
# thesis_rounds_test.sh: studies/thesis/run.sh measures its rounds before it trains, and --rounds makes their table and picture
# without any training. In place of fast-train, mpiexec and bench_scaling there are programs that do nothing but write a row.
# 77: cannot be done here.
set -euo pipefail
source "$(dirname "$0")/stand_ins.sh"
mkdir -p "$place/whole/data/color"
echo there >"$place/whole/data/color/test_batch.bin"
program path/mpiexec <<<'shift 2 && exec "$@"'
program bin/fast-train <<<'exit 1'
program bin/bench_scaling <<'END'
while [[ $1 != --json ]]; do shift; done
echo '[{"round_ms": 41}]' >"$2"
END
export PATH=$place/path:$PATH

# An unknown option does not start the whole study.
! "$root/studies/thesis/run.sh" --round "$place/bin" "$place/none" >"$place/out" 2>&1 || fail "it took --round" "$place/out"
grep -q 'there is no --round;' "$place/out" || fail "it does not say why" "$place/out"
[[ ! -e $place/none ]] || fail "it began" "$place/out"

# A study that ends at its first training has all rounds: 3 of 6 methods on 1, 2, 4 and 8 workers.
! "$root/studies/thesis/run.sh" "$place/bin" "$place/whole" >"$place/out" 2>&1 || fail "it did not end" "$place/out"
rounds=("$place"/whole/rounds/*.json)
[[ ${#rounds[@]} == 72 ]] || fail "${#rounds[@]} rounds" "$place/out"

"$root/studies/thesis/run.sh" --rounds "$place/bin" "$place/alone" >"$place/out" 2>&1 || fail "--rounds failed" "$place/out"
[[ -s $place/alone/rounds.svg ]] || fail "there is no rounds.svg" "$place/out"
grep -q '^| parameter server | 41.0 | 41.0 | 41.0 | 41.0 |$' "$place/alone/table.md" || fail "no row of the server" "$place/alone/table.md"
