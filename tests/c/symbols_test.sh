#!/usr/bin/env bash
# The C library exports what fast.h declares, under a version, and nothing else.   symbols_test.sh LIBRARY HEADER
set -euo pipefail
library=$1 header=$2
exported=$(nm -D --defined-only "$library" | awk '$2 == "T" || $2 == "W" || $2 == "B" || $2 == "D" || $2 == "u" || $2 == "V" {print $3}' | sort)
declared=$(grep -oE '\bfast_[a-z_]+\(' "$header" | tr -d '(' | sort -u | sed 's/$/@@FAST_0.1/')
diff <(echo "$declared") <(echo "$exported") || { echo "FAILED: < declared, > exported" && exit 1; }
echo "$(wc -l <<<"$exported") functions"
