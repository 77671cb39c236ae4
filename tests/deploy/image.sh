# Sourced by tests of images and packages, in bash. They set $directory to a folder of their own, and $root to the files of an image.
need_root() { [[ $(id -u) -eq 0 ]] || { echo "skipped: a chroot needs root"; exit 77; }; }
need_buildah() { command -v buildah >/dev/null || { echo "skipped: no buildah here; apt-get install buildah"; exit 77; }; }
need_debian() { apt-get indextargets --format '$(RELEASE)' 2>/dev/null | grep -q bookworm || { echo "skipped: apt has no source of Debian 12 here"; exit 77; }; }

# chroot of the image's files, as its user: what a container is without its limits. /shared is $directory/shared.
inside() { BIND="$directory/shared:/shared" scripts/bare_machine.sh run "$root" setpriv --reuid 1000 --regid 1000 --clear-groups env HOME=/home/fast "$@" </dev/null; }
weights_sum() { python3 tests/deploy/weights_sum.py "$1/mean-model.safetensors"; }

# same_weights TITLE FASTRUN FAST_TRAIN [OPTION...]: a run in the image, with these options too, gives bit for bit the weights of a
# run on the bare machine. Leaves that one's command in $bare_run, and the sum of its weights in $bare_sum.
same_weights() {
  local title=$1 fastrun=$2 train=$3 inside_sum
  local run=(-n 4 fast-train --data /usr/share/datasets/fashion-mnist --samples 1200 --model lenet --epochs 2 --seed 7 --staleness 0 --quiet)
  shift 3
  mkdir -p "$directory/shared" "$directory/bare"
  chmod 777 "$directory/shared"
  [[ -d /usr/share/datasets/fashion-mnist ]] || run=("${run[@]/\/usr\/share\/datasets\/fashion-mnist/fashion-mnist}")
  bare_run=("$fastrun" "${run[@]/#fast-train/$train}")
  inside fastrun "${run[@]}" "$@" --out /shared/run >"$directory/output" 2>&1 || report_failure "a run in the image: status $?"
  "${bare_run[@]}" --out "$directory/bare/run" >"$directory/output" 2>&1 || report_failure "a run on the bare machine: status $?"
  inside_sum=$(weights_sum "$directory/shared/run") bare_sum=$(weights_sum "$directory/bare/run")
  echo "$title: weights in the image $inside_sum, on the bare machine $bare_sum"
  : >"$directory/output"
  [[ -n $inside_sum && $inside_sum == "$bare_sum" ]] || report_failure "the weights differ"
}
