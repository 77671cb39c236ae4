#!/usr/bin/env bash
# The small files of deploy/container: fast-health, fast-pods with bad settings, what nvidia-packages installs and
# toolkit-libraries copies; and what scripts/container.sh asks buildah for.
set -uo pipefail
files=$(readlink -f "$(dirname "$0")/../../deploy/container")
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
source "$(dirname "$0")/../support/expect.sh"
unset FAST_SHARED FAST_RUN FAST_RUN_FOLDER FAST_PODS FAST_INDEX FAST_HOST JOB_COMPLETION_INDEX

mkdir -p "$directory/shared/run/metrics"
touch "$directory/shared/run/metrics/0.jsonl"
expect "a run that writes" 0 "written" -- "$files/fast-health" "$directory/shared/run"
expect "the same by the settings of fast-pods" 0 "$directory/shared/run: written" -- env FAST_SHARED="$directory/shared" "$files/fast-health"
touch -d "1 hour ago" "$directory/shared/run/metrics/0.jsonl"
expect "a run that stands still" 1 "at most 600 are allowed" -- "$files/fast-health" "$directory/shared/run"
expect "a run that may stand still" 0 "written" -- env FAST_HEALTH_S=7200 "$files/fast-health" "$directory/shared/run"
# Processes of other tests are not looked at.
mkdir "$directory/programs" && cp "$(command -v sleep)" "$directory/programs/fast-train"
alone() { # TITLE STATUS TEXT COMMANDS: of a shell, before fast-health
  if unshare -p -f --mount-proc true 2>/dev/null; then
    expect "$1" "$2" "$3" -- unshare -p -f --mount-proc --kill-child bash -c "train=$directory/programs/fast-train; $4 '$files/fast-health' '$directory/none'"
  else
    echo "left out: $1: no table of processes of its own can be made here"
  fi
}
alone "a run before its first file" 0 "no run to look at" ""
is() { for ((i = 0; i < 600; ++i)); do [[ $(cat "/proc/$1/stat" 2>/dev/null) == *"($2"* ]] && return || sleep 0.05; done; } # PROCESS NAME) STATE: waits
export -f is
alone "a run that works" 0 "no run to look at" '$train 60 & is $! "fast-train)";'
alone "a stopped rank" 1 "a fast-train does not run: state T" \
  '$train 60 & $train 60 & is $! "fast-train)"; kill -STOP $!; is $! "fast-train) T";'
# The process that becomes sleep does not wait for its child.
ends='bash -c "$train 60 & exec sleep 60" & is $! "sleep)"; child=$(pgrep -P $!); is $child "fast-train)"; kill $child; is $child "fast-train) Z";'
alone "a run that has ended" 1 "a fast-train does not run: state Z" "$ends"
alone "a rank that died" 0 "no run to look at" "\$train 60 & is \$! 'fast-train)'; $ends"

mkdir "$directory/empty"
good=(FAST_INDEX=0 FAST_PODS=2 FAST_HOST=fast-@.fast FAST_SHARED="$directory/empty")
refused() { # TITLE TEXT SETTING...: one line, status 2
  local title=$1 text=$2
  shift 2
  expect "$title" 2 "$text" -- env "${good[@]}" "$@" "$files/fast-pods" fast-train
  [[ $(wc -l <"$directory/output") -eq 1 ]] || report_failure "$title: more than one line"
}
refused "an index that is no number" 'FAST_INDEX: "one"' FAST_INDEX=one
refused "an index that is too large" "more than 2, is required" FAST_INDEX=2
refused "no number of pods" 'FAST_PODS: ""' FAST_PODS=
refused "no names" "FAST_HOST: a name of pod 0 is required" FAST_HOST=
refused "only spares" "at least one must train" FAST_SPARES=2
refused "an unknown way to return" "choose resume or wait" FAST_RETURN=never
refused "a folder that is not there" "cannot be written; mount a volume" FAST_SHARED="$directory/none"
expect "no program" 2 "no program is given" -- env "${good[@]}" "$files/fast-pods"
[[ -z $(ls "$directory/empty") ]] || report_failure "a refused job leaves files"

# Stand-ins for what installs and builds write down how they are called.
mkdir -p "$directory/bin" "$directory/image"
for name in apt-get wget dpkg buildah; do
  printf '#!/bin/sh\n[ "$1" != mount ] || echo "%s"\necho "%s $*" >>"%s"\n' "$directory/image" $name "$directory/calls" >"$directory/bin/$name"
done
chmod +x "$directory"/bin/*
calls() { # TITLE TEXT... -- COMMAND...: it ends well, and a line of what it calls has all texts
  local title=$1 texts=()
  shift
  while [[ $1 != -- ]]; do texts+=("$1") && shift; done
  rm -f "$directory/calls"
  expect "$title" 0 -- env PATH="$directory/bin:$PATH" "${@:2}"
  for text in "${texts[@]}"; do
    grep -qF -e "$text" "$directory/calls" || { cp "$directory/calls" "$directory/output" && report_failure "$title: no \"$text\""; }
  done
}
nvidia=$files/nvidia-packages
calls "GPUs: to run" "recommends cuda-cudart-12-6 cuda-nvrtc-12-6 libcublas-12-6 libcudnn9-cuda-12" -- "$nvidia" 12-6 run
calls "GPUs: to compile" "recommends cuda-nvcc-13-0 cuda-cudart-dev-13-0 libcublas-dev-13-0 libcudnn9-dev-cuda-13" -- "$nvidia" 13-0 build
calls "GPUs: the archive" "repos/debian12/x86_64/cuda-keyring" -- "$nvidia" 12-6 run
for version in "" 12 12.6 12-6-1 12- -6; do expect "CUDA \"$version\"" 2 "as in 12-6" -- "$nvidia" "$version" run; done

# A toolkit as NVIDIA's archives have it, and what else lies beside the libraries.
toolkit=$directory/toolkit
mkdir -p "$toolkit"/{bin,include} "$toolkit/targets/x86_64-linux/lib"
lib=$toolkit/targets/x86_64-linux/lib
ln -s targets/x86_64-linux/lib "$toolkit/lib64"
incomplete() { # TEXT: the toolkit lacks this
  expect "a toolkit: $1" 1 "toolkit-libraries: $toolkit: there is no $1" -- "$files/toolkit-libraries" "$toolkit" "$directory/taken"
  [[ $(wc -l <"$directory/output") -eq 1 && ! -e $directory/taken ]] || report_failure "a toolkit: $1: more than an error"
}
incomplete bin/nvcc
printf '#!/bin/sh\n' >"$toolkit/bin/nvcc" && chmod +x "$toolkit/bin/nvcc"
incomplete libcublasLt
for name in cublasLt.so.12.6.4 cublas.so.12.6.4 nvrtc.so.12.6.85 nvrtc.alt.so.12.6.85 cufft.so.11.3.0; do
  echo "$name" >"$lib/lib$name"
  ln -s "lib$name" "$lib/lib${name%.*.*}"
  ln -s "lib$name" "$lib/lib${name%%.so.*}.so"
done
echo "cuBLAS, static" >"$lib/libcublasLt_static.a"
incomplete libcudnn
for part in "" _ops _engines_precompiled; do
  echo "$part" >"$lib/libcudnn$part.so.9.5.1"
  ln -s "libcudnn$part.so.9.5.1" "$lib/libcudnn$part.so.9"
done
incomplete cudnn_version.h
touch "$toolkit/include/cudnn_version.h"
incomplete libnvrtc
for end in 12.6.85 12.6; do echo builtins >"$lib/libnvrtc-builtins.so.$end"; done
touch "$lib/libnvrtc-builtins.alt.so.12.6"
taken="libcublasLt.so.12 libcudnn.so.9 libcudnn_engines_precompiled.so.9 libcudnn_ops.so.9 libnvrtc-builtins.so.12.6 libnvrtc.so.12"
expect "a toolkit" 0 -- "$files/toolkit-libraries" "$toolkit" "$directory/taken"
[[ $(LC_ALL=C ls "$directory/taken" | xargs) == "$taken" ]] || { ls "$directory/taken" >"$directory/output" && report_failure "a toolkit: other libraries"; }
[[ -f $directory/taken/libcudnn_ops.so.9 && ! -L $directory/taken/libcudnn_ops.so.9 ]] || report_failure "a toolkit: a link is copied as a link"
cmp -s "$directory/taken/libcublasLt.so.12" "$lib/libcublasLt.so.12.6.4" || report_failure "a toolkit: another file"
echo "loads libcublas.so.12" >"$lib/libcudnn_ops.so.9.5.1"
expect "a toolkit whose cuDNN loads cuBLAS" 0 "$toolkit/lib64/libcublas.so.12" -- "$files/toolkit-libraries" "$toolkit"

script=$files/../../scripts/container.sh
tag=localhost/fast:$(sed -n 's/^project(fast VERSION \([0-9.]*\).*/\1/p' "$files/../../CMakeLists.txt")
expect "an unknown image" 2 "" -- "$script" --image small
for option in --tag --target --packages --export; do
  for value in "" --bare; do
    expect "$option $value" 2 "container: $option needs a value" -- "$script" $option $value
    [[ $(wc -l <"$directory/output") -eq 1 ]] || report_failure "$option without a value: more than one line"
  done
done
# From a folder of the caller's.
mkdir "$directory/own" && touch "$directory/own/fast-tools_1.deb"
elsewhere() { (cd "$directory" && "$@"); }
export -f elsewhere
export directory
expect "a folder without packages" 1 "--packages $directory/empty: it has no fast-tools_*.deb" -- bash -c 'elsewhere "$@"' . "$script" --packages empty
expect "no folder of packages" 1 "--packages $directory/none/own: it has no fast-tools_*.deb" -- bash -c 'elsewhere "$@"' . "$script" --packages none/own
expect "packages and files of the caller's folder" 1 "--export $directory/own is there already" -- \
  bash -c 'elsewhere "$@"' . "$script" --packages own --export own
# scripts/deb.sh in a tree whose other scripts do nothing.
mkdir -p "$directory/tree/scripts" "$directory/tree/build/deb"
cp "$files/../../scripts/deb.sh" "$directory/tree/scripts/"
for name in tree/scripts/setup.sh tree/scripts/build.sh bin/cmake bin/dpkg-deb; do printf '#!/bin/sh\n' >"$directory/$name"; done
printf '#!/bin/sh\ntouch "$4/fast-tools_1.deb"\n' >"$directory/bin/cpack"
chmod +x "$directory"/tree/scripts/*.sh "$directory"/bin/*
makes() { # FOLDER ARGUMENT...: in which the packages are
  expect "packages in $1" 0 -- env PATH="$directory/bin:$PATH" bash -c 'elsewhere "$@"' . "$directory/tree/scripts/deb.sh" "${@:2}"
  [[ -e $directory/$1/fast-tools_1.deb ]] || report_failure "packages: none in $1"
}
makes out/packages out/packages
makes tree/build/packages
expect "a version of CUDA" 1 "--cuda 12.6: write the version as NVIDIA's packages do" -- "$script" --cuda 12.6
expect "no toolkit" 1 "toolkit-libraries: $directory/empty: there is no bin/nvcc" -- "$script" --cuda-from "$directory/empty"
expect "a toolkit and a version" 1 "--cuda and --cuda-from exclude each other" -- "$script" --cuda 12-6 --cuda-from "$toolkit"
if git -C "$files" rev-parse HEAD >/dev/null 2>&1; then
  calls "the runtime image" "--target runtime --tag $tag " "--build-arg REVISION=$(git -C "$files" rev-parse HEAD)" -- "$script"
  ! grep -F "CUDA=" "$directory/calls" >"$directory/output" || report_failure "the runtime image: GPUs"
  calls "the development image" "--target development --tag $tag-development " -- "$script" --target development
  calls "the variant for GPUs" "--target runtime --tag $tag-cuda " "--build-arg CUDA=12-6 " -- "$script" --cuda 12-6
  calls "the same from a toolkit" "--target runtime --tag $tag-cuda " "--build-arg CUDA=toolkit " "--build-context toolkit=$toolkit " -- "$script" --cuda-from "$toolkit"
  calls "both" "--tag $tag-cuda-development " -- "$script" --cuda 12-6 --target development
  calls "another base" "--build-arg BASE=debian:other " -- "$script" --base debian:other
fi
# Patterns of git match at any depth, those of Docker only where ** says so.
{ printf '%s\n' .git venv && sed 's|^/||; s|/$||; s|^\*|**/*|' "$files/../../.gitignore"; } |
  grep -vxFf "$files/Containerfile.dockerignore" >"$directory/output" 2>&1
[[ $? -eq 1 ]] || report_failure "docker build takes what git ignores"
[[ $(grep -cE '^[a-z0-9.+-]+=[^ ]+$' "$files/packages.lock") -gt 50 ]] || report_failure "packages.lock is empty"
! grep -vE '^(#.*|[a-z0-9.+-]+=[^ =]+)$' "$files/packages.lock" >"$directory/output" || report_failure "packages.lock has other lines"
echo "$failures failures"
[[ $failures -eq 0 ]]
