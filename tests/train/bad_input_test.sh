#!/usr/bin/env bash
# fast-train on bad input: every rank ends with an error, and all that is printed is one line that
# says what was found, what was required and what to do.
#   bad_input_test.sh names|values|files|runs FAST_TRAIN MPIEXEC
set -uo pipefail
part=$1 program=$2 mpiexec=$3
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
cases=0 failures=0
export CUDA_VISIBLE_DEVICES=  # no GPU, whatever this machine has

complain() {
  failures=$((failures + 1))
  echo "FAILED: $title: $1"
  sed 's/^/  | /' "$directory/output"
}

# expect TITLE TEXT... -- COMMAND...: the command fails with one line that has all the texts.
expect() {
  title=$1 && shift
  local texts=() status text lines
  while [[ $1 != -- ]]; do texts+=("$1") && shift; done
  shift
  timeout -k 5 60 "$@" </dev/null >"$directory/output" 2>&1
  status=$?
  cases=$((cases + 1))
  lines=$(grep -vc -e '^one worker; start more' -e '^$' "$directory/output")
  [[ $status -ne 0 ]] || complain "it succeeded"
  [[ $status -ne 124 && $status -ne 137 ]] || complain "it hung"
  [[ $lines -eq 1 ]] || complain "$lines lines, one is required"
  for text in "error: " "${texts[@]}"; do
    grep -qF -e "$text" "$directory/output" || complain "no \"$text\""
  done
}

small=(--data "$directory/good" --model mlp --batch-size 8 --epochs 2 --quiet)
# refused TITLE TEXT... -- OPTION...: the same of three ranks that all have those options.
refused() {
  local head=()
  while [[ $1 != -- ]]; do head+=("$1") && shift; done
  shift
  expect "${head[@]}" -- "$mpiexec" -n 3 "$program" "${small[@]}" "$@"
}

# differ TITLE TEXT... -- OPTION...: two ranks, of which only the second has those options.
differ() {
  local head=()
  while [[ $1 != -- ]]; do head+=("$1") && shift; done
  shift
  expect "${head[@]}" -- "$mpiexec" -n 1 "$program" "${small[@]}" : \
    -n 1 "$program" "${small[@]}" "$@"
}

word() { printf "\\x$(printf %02x $(($1 >> 24 & 255)))\\x$(printf %02x $(($1 >> 16 & 255)))\\x$(printf %02x $(($1 >> 8 & 255)))\\x$(printf %02x $(($1 & 255)))"; }
images() { word 0x803 && word "$1" && word 28 && word 28 && yes 'pixels of an image' | head -c $(($1 * 784)); }
labels() {
  word 0x801 && word "$1"
  for ((i = 0; i < $1; ++i)); do printf "\\x0$((i % 10))"; done
}

make_data() {
  mkdir "$directory/good"
  images 60 >"$directory/good/train-images-idx3-ubyte"
  labels 60 >"$directory/good/train-labels-idx1-ubyte"
  images 20 >"$directory/good/t10k-images-idx3-ubyte"
  labels 20 >"$directory/good/t10k-labels-idx1-ubyte"
  for name in absent truncated magic label; do cp -r "$directory/good" "$directory/$name"; done
  rm "$directory/absent/t10k-images-idx3-ubyte"
  images 60 | head -c 10000 >"$directory/truncated/train-images-idx3-ubyte"
  images 60 >"$directory/magic/train-labels-idx1-ubyte"
  for name in npz npy tar packed; do yes 'no data' | head -c 2000 >"$directory/table.$name"; done
  { labels 20 | head -c 27; printf '\x0b'; } >"$directory/label/t10k-labels-idx1-ubyte"
}

check_data() {
  refused "no directory" "\"/no/such\"" "fashion-mnist" "directory" -- --data /no/such
  mkdir -p "$directory/named/digits/metrics"
  expect "a directory of a data set's name" "digits has no train-" "./digits comes before the data set" \
    -- env -C "$directory/named" "$program" --data digits --quiet
  refused "a file is missing" "absent has no t10k-images" -- --data "$directory/absent"
  refused "truncated" "train-images-idx3-ubyte" "47040 bytes" "download it again" \
    -- --data "$directory/truncated"
  refused "wrong magic" "train-labels-idx1-ubyte" 0x00000803 0x00000801 -- --data "$directory/magic"
  refused "a label outside the classes" "t10k-labels" "11" "10 classes" -- --data "$directory/label"
  printf 'a,price\n1,2\n1,x\n' >"$directory/table.csv"
  refused "a table without a target" "table.csv" "--target" -- --data "$directory/table.csv"
  refused "no such column" "no column \"prise\"" "did you mean" -- --data "$directory/table.csv" --target prise
  refused "a field that is no number" "table.csv:3: column 2 (price): \"x\" is not a number" \
    -- --data "$directory/table.csv" --target a --test-share 0.5
  printf 'a,b\n1,2\n3\n' >"$directory/ragged.csv"
  refused "a ragged table" "ragged.csv:3: 1 fields" "names 2 columns" -- --data "$directory/ragged.csv" --target b
  printf 'a,b\n1,0.5\n3,nan\n' >"$directory/nan.csv"
  refused "a target that is not a number" "nan.csv:3: column 2 (b): the target is missing (\"nan\")" -- --data "$directory/nan.csv" --target b
  printf 'a;b\n1,5;2\n2.5;3\n' >"$directory/points.csv"
  refused "commas and points in numbers" "points.csv: line 2 has a decimal comma, line 3 a decimal point" \
    -- --data "$directory/points.csv" --target b --target-type numbers
  printf 'a,b\n1,0\n2,1\n' | gzip | head -c 20 >"$directory/cut.csv.gz"
  refused "a truncated file" "cut.csv.gz: damaged or truncated" -- --data "$directory/cut.csv.gz" --target b
  printf 'a,b\n1,x\n2,x\n3,x\n' >"$directory/one.csv"
  refused "one class" "one.csv: all targets are of one class" -- --data "$directory/one.csv" --target b
  mkdir -p "$directory/photos/train/cat" "$directory/photos/test/cat" "$directory/flat/cat"
  echo "no JPEG" | tee "$directory/photos/train/cat/a.jpg" "$directory/photos/test/cat/a.jpg" >"$directory/flat/cat/a.jpg"
  refused "a JPEG that is none" "photos/train/cat/a.jpg: cannot be read" -- --data "$directory/photos"
  refused "images without splits" "flat has images (cat)" "train/<class>/" -- --data "$directory/flat"
  tar -C "$directory/flat" -cf "$directory/whole.tar" cat/a.jpg && head -c 1024 "$directory/whole.tar" >"$directory/cut.tar"
  refused "a truncated tar" "cut.tar: truncated after \"cat/a.jpg\"" -- --data "$directory/cut.tar" --test-data "$directory/whole.tar"
  head -c 515 "$directory/whole.tar" >"$directory/short.tar"
  refused "a tar truncated in a member" "short.tar: truncated within \"cat/a.jpg\": 3 of its 8 bytes" \
    -- --data "$directory/short.tar" --test-data "$directory/whole.tar"
  refused "no NumPy file" "table.npz" "not a complete ZIP archive" -- --data "$directory/table.npz"
  refused "no array" "table.npy" "does not begin" -- --data "$directory/table.npy" --target "$directory/table.npy"
  refused "no tar file" "table.tar" "not a tar archive" -- --data "$directory/table.tar" --test-data "$directory/table.tar"
  refused "no packed file" "table.packed" "does not begin with FASTPACK" -- --data "$directory/table.packed" --test-data "$directory/table.packed"
  refused "shards without a test part" "--test-data" -- --data "$directory/table.tar"
  refused "no shards" "no file matches" -- --data "$directory/none-*.tar" --test-data "$directory/table.tar"
  refused "an option of tables" "--target: without effect" -- --target b
  refused "shares" "--test-share: 1;" "[0, 1)" -- --test-share 1
  refused "window" "--window: 0;" "at least 1" -- --window 0
  refused "skewed windows" "choose even sharding" -- --window 5 --shards dirichlet:1
  refused "no size of images" "--resize: " "\"28\"" "ROWSxCOLUMNS" -- --resize 28
  refused "a size of no model" "--resize model: model mlp takes samples of shape [784]" -- --resize model --model mlp
  printf 'a,price\n1,2\n1,3\n2,3\n' >"$directory/numbers.csv"
  refused "a table that is resized" "the samples of" "they are not images" -- --data "$directory/numbers.csv" --target price --resize 8x8
  differ "windows" "window auto" "window 5" -- --window 5
  differ "data missing on one rank" "\"/no/such\"" "directory" -- --data /no/such
}

check_names() {
  refused "model" "\"vgg\"" "choose lenet, mlp, mlp:A-B-..., lstm, lstm:HIDDEN, resnet20 or resnet50, or give a file" -- --model vgg
  refused "widths" "\"mlp:8-x\"" "widths of hidden layers" -- --model mlp:8-x
  refused "hidden units" "\"lstm:x\"" "number of hidden units" -- --model lstm:x
  refused "images of another size" "--model resnet50" "[3x224x224]" "[1x28x28]" "--resize" -- --model resnet50
  refused "path" "\"fax\"" "choose measured, two_sided or pull" -- --remote-path fax
  refused "backend" "\"jax\"" "choose nn, torch or dlib" -- --backend jax
  refused "a backend without the model, or not built" "--backend dlib: " -- --backend dlib --model lstm
  refused "device" "\"gpu\"" "choose cpu, cuda or cuda:INDEX" -- --device gpu
  refused "precision" "\"fp8\"" "choose f32, tf32 or bf16" -- --precision fp8
  refused "batches ahead" "--prefetch: -1" "0 or more" -- --prefetch -1
  refused "loader threads" "--loader-threads: 0" "at least 1" -- --loader-threads 0
  refused "device without a number" "\"cuda:x\"" "choose cpu, cuda or cuda:INDEX" -- --device cuda:x
  local reason="built without it"
  [[ $(ldd "$program") != *libcudnn* ]] || reason="no GPU here"
  refused "a device that is not there" "--device cuda: " "$reason" "--device cpu" -- --device cuda
  differ "no device on one rank" "--device cuda: " "$reason" "--device cpu" -- --device cuda
  refused "backend of a device" "only nn's models" "leave --backend torch out" -- --device cuda --backend torch
  refused "topology" "\"klein\"" "ring," "torus2d," ".toml or .mtx file" -- --topology klein
  refused "algorithm" "\"mean\"" "none, awc, atc, local" -- --algorithm mean
  refused "exchange" "\"pigeon\"" "hybrid, shared, local or allreduce" -- --exchange pigeon
  refused "codec" "\"fp8\"" "identity, bf16," "int8" -- --codec fp8
  refused "arena" "\"round\"" "fixed or rotating" -- --arena round
  refused "arena with a rule of its own" "rotating arena: algorithm atc" "take awc or pairwise" -- --arena rotating --algorithm atc
  refused "arena with a codec" "rotating arena: codec bf16" "the codec identity" -- --arena rotating --codec bf16
  refused "arena with an average over steps" "rotating arena" "fixed arena" -- --arena rotating --ema 0.9
  refused "rule of an all-reduce" "--algorithm: without effect" "leave one of the two out" -- --exchange allreduce --algorithm d2
  refused "codec of an all-reduce" "--codec: without effect" "exactly" -- --codec bf16 --exchange allreduce
  refused "codec of a rule that needs none" "algorithm event_triggered with codec int8" "identity only" \
    -- --codec int8 --algorithm event_triggered
  refused "local under mpiexec" "mpiexec started 3" "leave mpiexec out" -- --exchange local
  refused "schedule" "\"linear\"" "constant, step, cosine or plateau" -- --lr-schedule linear
  refused "optimizer" "\"lion\"" "choose sgd, adam or adamw" -- --optimizer lion
  refused "shards" "\"odd\"" "even or dirichlet:ALPHA" -- --shards odd
  refused "balance" "--balance: \"odd\"" "even, measured or a positive number" -- --balance odd
  refused "balance of others" "2 numbers, this run has 3" "one for each worker" -- --balance 1,2
  refused "balance of shards" "keeps its own samples" "choose even" -- --balance measured --shards dirichlet:1
  refused "staleness" "\"old\"" "0 or more, or inf" -- --staleness old
  refused "a port" "--metrics-port: 80000;" "from 0 to 65535 is required" -- --metrics-port 80000
  refused "closing rounds" "--closing-rounds: \"few\"" "or auto" -- --closing-rounds few
  refused "validation" "--validation: 1;" "[0, 1)" -- --validation 1
  refused "patience" "patience of 2" "samples to validate on (--validation)" -- --patience 2
  refused "patience of an all-reduce" "different rounds" -- --patience 2 --validation 0.1 --exchange allreduce
  refused "plateau" "needs samples to validate on" "--validation" -- --lr-schedule plateau
  refused "plateau of another schedule" "--plateau-factor: without effect" "plateau" -- --plateau-factor 0.5
  refused "plateau factor" "--plateau-factor: 1;" "(0, 1)" -- --lr-schedule plateau --plateau-factor 1
  refused "all validated" "(--validation) leaves" "smaller share" -- --validation 0.9999
  refused "averages" "choose one" -- --validation 0.1 --ema 0.9
  refused "slow" "--slow: \"2\"" "RANK:FACTOR" -- --slow 2
  refused "slow worker" "worker 3 shall be slow" "workers are 0 to 2" -- --slow 3:4
  refused "slow factor" "0.5 times slower" "1 or more" -- --slow 1:0.5
  refused "not finite" "--on-nonfinite: \"ignore\"" "abort or heal" -- --nan ignore
  refused "checkpoints" "--checkpoint-every: \"often\"" "10min" -- --checkpoint-every often
  refused "checkpoints kept" "--keep: 0;" "at least 1" -- --checkpoints "$directory/c" --keep 0
  refused "no checkpoint" "no checkpoint in /no/such" -- --resume /no/such
  refused "option" "--frobnicate" "--help" -- --frobnicate
  refused "option misspelled" "--epoch=3" "did you mean \"--epochs\"?" -- --epoch=3
}

# Model files, and losses that do not fit the data.
check_models() {
  local file=$directory/net.toml
  refused "no model file" "/no/such.toml" "there is no such file" -- --model /no/such.toml
  printf 'layers = [\n{type = "flatten"},\n{type = "dens"}]\n' >"$file"
  refused "a layer misspelled" "net.toml:3: layer 2: " "did you mean \"dense\"?" -- --model "$file"
  printf 'layers = [\n{type = "conv2d", channels = 2, kernel = 3, stide = 1}]\n' >"$file"
  refused "a key misspelled" "net.toml:2: layer 1 (conv2d): " "did you mean \"stride\"?" -- --model "$file"
  printf 'layers = [\n{type = "lstm", hidden = 2}, {type = "conv2d", channels = 2, kernel = 3}]\n' >"$file"
  refused "a layer that does not fit" "net.toml:2: layer 2 (conv2d" "[2]" -- --model "$file"
  printf 'layers = [\n{type = "lstm", hidden = 2},\n{type = "lstm", hiden = 2}]\n' >"$file"
  refused "a key that is required, misspelled" "net.toml:3: layer 2 (lstm): \"hidden\" is missing" "\"hiden\"" -- --model "$file"
  printf 'layers = [{type = "flatten"}, {type = "dense", units = 3}]\n' >"$file"
  refused "a file with other outputs" "outputs are [3], of layer 2 (dense 3)" "needs [10]" -- --model "$file"
  printf 'layers = [{type = "flatten"}, {type = "dense"}, {type = "softmax"}]\n' >"$file"
  refused "a softmax before a loss that has one" "last layer is softmax" "cross_entropy applies itself" -- --model "$file"
  printf 'layers = [{type = "lstm", hidden = 6, every_step = true},\n{type = "attention", heads = 4}]\n' >"$file"
  refused "heads that do not divide" "net.toml:2: layer 2 (attention, heads 4)" "6 features do not split" -- --model "$file"
  printf 'a,share\n1,0.5\n2,1.5\n3,0.25\n4,0.5\n' >"$directory/share.csv"
  refused "targets that are no shares" "share.csv has the target 1.5" "from 0 to 1" \
    -- --data "$directory/share.csv" --target share --loss binary_cross_entropy --model mlp:2 --batch-size 1
  printf 'a,b\n1,0\n2,1\n3,0\n4,1\n5,0\n6,1\n' >"$directory/two.csv"
  printf 'layers = [{type = "dense", units = 1}]\n' >"$directory/one.toml"
  printf 'layers = [{type = "flatten"}, {type = "dense"}]\n' >"$file"
  differ "a model on one rank" "model" -- --model "$file"
  cp "$file" "$directory/other.toml"
  printf 'layers = [{type = "flatten"}, {type = "dense"}, {type = "relu"}]\n' >"$directory/host.toml"
  expect "contents on one rank" "contents of the model file" -- "$mpiexec" \
    -n 1 bash -c "cd '$directory' && ln -sf other.toml a.toml && exec '$program' ${small[*]} --model a.toml" : \
    -n 1 bash -c "mkdir -p '$directory/b' && cd '$directory/b' && ln -sf ../host.toml a.toml && exec '$program' ${small[*]} --model a.toml"
  refused "mixed numbers" "mixup (--mixup) of data" "no single class label" \
    -- --data "$directory/share.csv" --target share --loss mse --model mlp:2 --batch-size 1 --mixup 0.2
  refused "mixed for another loss" "mixup (--mixup) with backend nn" "cross_entropy" \
    -- --data "$directory/two.csv" --target b --loss binary_cross_entropy --model "$directory/one.toml" --batch-size 1 --mixup 0.2
  refused "loss" "--loss: \"l1\"" "choose" "huber" -- --loss l1
  refused "a loss for targets" "--loss mse" "class labels; choose cross_entropy" -- --loss mse
  refused "a loss for two classes" "--loss binary_cross_entropy" "10 classes" -- --loss binary_cross_entropy
  refused "an option of huber" "--huber-delta: without effect" "--loss huber" -- --huber-delta 2
  differ "a loss on one rank" "loss" -- --loss cross_entropy
}

# Configuration files: one line with file and line.
check_files() {
  local file=$directory/run.toml
  printf 'epochs = 2\nstalenes = 1\n' >"$file"
  refused "unknown key" "run.toml:2: " "\"stalenes\"" "did you mean \"staleness\"?" -- --config "$file"
  printf 'take-over = true\n' >"$file"
  refused "without effect" "run.toml:1: take-over: without effect" "--shards dirichlet" -- --config "$file"
  printf 'staleness = 1\n' >"$file"
  differ "a file on one rank" "staleness 0" "staleness 1" -- --config "$file"
}

check_numbers() {
  refused "batch size 0" "--batch-size: 0" "at least 1" -- --batch-size 0
  refused "batch size larger than a shard" "21" "at most 20" -- --batch-size 21
  refused "batch size no number" "--batch-size: \"many\"" "whole number, at least 1" -- --batch-size many
  for lr in nan inf -0.1 0; do
    refused "lr $lr" "--lr: ${lr#+}" "positive" -- --lr "$lr"
  done
  refused "momentum" "momentum" "[0, 1)" -- --momentum nan
  refused "weight decay" "--weight-decay: inf;" "finite" -- --weight-decay inf
  refused "beta" "--beta2: 1;" "[0, 1)" -- --optimizer adam --beta2 1
  refused "momentum of adam" "--momentum: without effect" "option of sgd" -- --optimizer adam --momentum 0.9
  refused "beta of sgd" "--beta2: without effect" "option of adam and adamw" -- --beta2 0.99
  refused "momentum twice" "quasi_global_momentum: it brings momentum itself" -- --algorithm quasi_global_momentum --momentum 0.9
  refused "decentlam's optimizer" "decentlam: it brings momentum itself" -- --algorithm decentlam --optimizer adam
  refused "threads of ranks" "--workers: " "--exchange local" -- --workers 2
  refused "clipping" "--clip-norm: -1;" "0 or more" -- --clip-norm -1
  refused "accumulation" "--accumulate: 0" "at least 1" -- --accumulate 0
  refused "threads" "--threads: 0;" "at least 1" -- --threads 0
  refused "warm-up" "--warmup: -1;" "0 or more" -- --warmup -1
  refused "epochs" "--epochs: 0;" "at least 1" -- --epochs 0
  refused "deadline" "--deadline: 0" "positive" -- --deadline 0
}

# Each option that a run would have ignored, and what the message says to do.
check_needs() {
  local option
  for option in "--precision bf16" --autotune --cuda-graph --deterministic; do
    # shellcheck disable=SC2086
    refused "$option on a CPU" "${option%% *}: without effect" "--device cuda" -- $option
  done
  refused "tuned by the clock" "--autotune: without effect" "--deterministic" -- --device cuda --autotune --deterministic
  refused "cores of a GPU" "--threads: without effect" "--device cpu" -- --device cuda --threads 2
  refused "samples of even shards" "--adopt-lost-shards: without effect" "--shards dirichlet" -- --take-over
  for option in "--topology ring" "--staleness 1" "--closing-rounds 2" "--rejoin-after 5" "--remote-path pull" "--remote-rate 9" --no-placement; do
    # shellcheck disable=SC2086
    refused "$option of an all-reduce" "${option%% *}: without effect" "leave" -- $option --exchange allreduce
  done
  refused "a topology of nobody" "--topology: without effect" "averages with neighbors" -- --topology ring --algorithm none
  refused "a path to other hosts" "--remote-path: without effect" "--exchange hybrid" -- --remote-path pull --exchange shared
  refused "a codec without messages" "--codec: without effect" -- --codec bf16 --algorithm none
  refused "samples that nobody leaves" "--adopt-lost-shards: without effect" -- --take-over --shards dirichlet:1 --exchange allreduce
  refused "options of no rule" "--algorithm-option: without effect" -- --algorithm allreduce --algorithm-option period=8
  refused "metrics without a directory" "--evaluate-every: without effect" "--out" -- --evaluate-every 3
  refused "checkpoints without a directory" "without a directory" "(--checkpoints)" "(--out)" -- --checkpoint-every 3
  refused "checkpoints that nobody writes" "--keep: without effect" "--checkpoint-every" -- --keep 3
  refused "nothing to overwrite" "--overwrite: without effect" "add --out" -- --overwrite
  refused "a strict start" "--strict: without effect" "--resume" -- --strict
}

# Numbers that no host has memory or samples for, before any is taken.
check_capacity() {
  refused "samples below zero" "--samples" "\"-1\"" "whole number" -- --samples -1
  refused "more samples than a number holds" "--samples" "whole number" -- --samples 99999999999999999999
  refused "more samples than there are" "--samples 61" "has 60" -- --samples 61
  refused "a step of more samples than there are" "--batch-size 9223372036854775807 with --accumulate 2" "has 60" \
    -- --batch-size 9223372036854775807 --accumulate 2
  refused "seed below zero" "--seed" "\"-1\"" -- --seed -1
  refused "threads without samples" "--threads 100000" "at most as many" -- --threads 100000
  refused "loader threads without samples" "--loader-threads 100000" "at most as many" -- --loader-threads 100000
  refused "batches ahead" "--prefetch 1000000000" "are available" -- --prefetch 1000000000
  refused "a model without memory" "3 workers on this host" "are available" -- --model mlp:1000000-1000000
  refused "a model without end" "on this host" "are available" -- --model mlp:9000000000000000000
  expect "a process with a limit" "1 worker on this host" "MiB to this process" -- \
    bash -c 'ulimit -v 1000000 && exec "$@"' bash "$program" "${small[@]}" --model mlp:100000
  expect "workers without memory" "100000 workers on this host" "in all" "are available" "fewer workers" -- \
    "$program" "${small[@]}" --model mlp:100000 --batch-size 1 --exchange local --workers 100000
  (($(</proc/sys/vm/max_map_count) / 2 > 80000)) || # each worker is two threads at least
    expect "workers without threads" "40000" "take fewer workers" -- \
      "$program" "${small[@]}" --model mlp:1 --batch-size 1 --exchange local --workers 40000
}

# As a user who may not read them; root may read all.
check_permissions() {
  local nobody=(setpriv --reuid 65534 --regid 65534 --clear-groups)
  if ! "${nobody[@]}" test -x "$program" 2>/dev/null; then
    echo "skipped: unreadable files: cannot run the program as another user here"
    return
  fi
  mkdir "$directory/closed" "$directory/half"
  cp "$directory"/good/* "$directory/half"
  chmod 711 "$directory" && chmod 700 "$directory/closed" && chmod 755 "$directory/half"
  chmod 600 "$directory/half/train-images-idx3-ubyte"
  printf 'edges = [[0, 1]]\n' >"$directory/closed/pair.toml"
  expect "unreadable directory" "/closed cannot be read: Permission denied" -- "${nobody[@]}" "$program" "${small[@]}" --data "$directory/closed"
  expect "unreadable images" "train-images-idx3-ubyte: Permission denied" -- "${nobody[@]}" "$program" "${small[@]}" --data "$directory/half"
  expect "unreadable topology" "pair.toml cannot be read: Permission denied" -- "${nobody[@]}" "$program" "${small[@]}" --topology "$directory/closed/pair.toml"
}

check_topology_files() {
  printf 'stencil = "torus2d\n' >"$directory/malformed.toml"
  refused "malformed topology" "malformed.toml:1" -- --topology "$directory/malformed.toml"
  printf 'edges = [[0, 1], [1, 12]]\n' >"$directory/twelve.toml"
  refused "a topology of more workers" "twelve.toml" "worker 12" "this run has 3" "start at least 13" \
    -- --topology "$directory/twelve.toml"
  printf 'stencil = "torus"\nsides = [2, 2]\n' >"$directory/sides.toml"
  refused "sides of more workers" "sides.toml" "4" "3" -- --topology "$directory/sides.toml"
  refused "no topology file" "/no/such.toml" -- --topology /no/such.toml
}

check_differences() {
  differ "models" "model mlp" "model lenet" "on every worker" -- --model lenet
  differ "learning rates" "learning rate 0.05" "learning rate 0.1" -- --lr 0.1
  differ "optimizers" "optimizer sgd" "optimizer adam" -- --optimizer adam --lr 0.05
  differ "schedules" "schedule" -- --lr-schedule step
  differ "batch sizes" "batch size 8" "batch size 4" -- --batch-size 4
  differ "shards" "shards even" "shards dirichlet:0.1" -- --shards dirichlet:0.1
  differ "closing rounds" "closing_rounds auto" "closing_rounds 3" -- --closing-rounds 3
  differ "staleness" "staleness 0" "staleness inf" -- --staleness inf
  differ "algorithms" "algorithm awc" "algorithm atc" -- --algorithm atc
  differ "weight rules" "weights automatic" "weights uniform_rows" -- --weights uniform_rows
  differ "codecs" "codec identity" "codec bf16" -- --codec bf16
  differ "topologies" "torus" "ring" -- --topology ring
  differ "the baseline on one rank" "all-reduce false" "all-reduce true" -- --exchange allreduce
  differ "placement on one rank" "placement true" "placement false" -- --no-placement
  differ "an option unknown on one rank" "--frobnicate" "--help" -- --frobnicate
  differ "a bad value on one rank" "--lr: nan" "positive" -- --lr nan
}

check_runs() {
  refused "loss" "loss of worker" "in round" "not published" "smaller learning rate" -- --lr 1e30
  refused "loss, stale" "loss of worker" "in round" -- --lr 1e30 --staleness inf
  refused "loss, after the step" "loss of worker" "in round" -- --lr 1e30 --algorithm atc
  refused "loss, all-reduce" "loss of worker" "in round" -- --lr 1e30 --exchange allreduce
  expect "loss, threads" "loss of worker" "in round" -- \
    "$program" "${small[@]}" --exchange local --workers 3 --lr 1e30
  expect "loss, alone" "loss of worker 0" "in round" -- "$program" "${small[@]}" --lr 1e30
  printf '' >"$directory/file"
  refused "--out is a file" "$directory/file" -- --out "$directory/file/below"
  refused "--out cannot be made" "/proc/no/such" "choose another" -- --out /proc/no/such
  differ "--out on one rank" "/proc/no/such" "choose another" -- --out /proc/no/such
  mkdir -p "$directory/ran/metrics" && echo '{"kind":"epoch","epoch":1}' >"$directory/ran/metrics/0.jsonl"
  refused "--out holds a run" "$directory/ran holds a run already (metrics/0.jsonl)" "--overwrite" -- --out "$directory/ran"
  refused "--summary-json" "/proc/none.json" "choose another" -- --summary-json /proc/none.json
}

# A /dev/shm in which MPI starts (13 MB for three ranks) but the window (7 MB) has no room, in a mount namespace of its own.
check_shared_memory() {
  local namespace=(unshare -m -- sh -c 'mount -t tmpfs -o size=16m tmpfs /dev/shm && exec "$@"' sh)
  if ! "${namespace[@]}" true 2>/dev/null; then
    echo "skipped: too little /dev/shm: no mount namespace can be made here"
    return
  fi
  expect "too little /dev/shm" "/dev/shm has" "MiB free" "enlarge it" -- \
    "${namespace[@]}" "$mpiexec" -n 3 "$program" "${small[@]}"
}

make_data
case $part in
names) checks=names ;;
values) checks="numbers needs" ;;
files) checks="data models files topology_files permissions" ;;
runs) checks="capacity differences runs shared_memory" ;;
esac
for check in $checks; do "check_$check"; done
echo "$cases cases, $failures failures"
[[ $failures -eq 0 ]]
