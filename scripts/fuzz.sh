#!/usr/bin/env bash
# Feeds mutations of topology/, of models, of data files and of requests to their readers, under libFuzzer and the sanitizers:
#   scripts/fuzz.sh [SECONDS]   (60 each)
# Installs clang. Inputs that crash are left in build/fuzz.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:-60}
scripts/setup.sh clang
scripts/setup.sh test
scripts/build.sh fuzz topology_fuzz safetensors_fuzz data_fuzz request_fuzz
# fuzz NAME CORPUS: what is found to be of interest is added to build/fuzz/NAME.
fuzz() {
  mkdir -p "build/fuzz/$1"
  "build/fuzz/bin/$1" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -verbosity=0 \
    -print_funcs=0 -print_final_stats=1 -artifact_prefix=build/fuzz/ "build/fuzz/$1" "$2"
}
fuzz topology_fuzz topology &
topology=$!
mkdir -p build/fuzz/models
printf '\x50\0\0\0\0\0\0\0%-80s12345678' '{"__metadata__":{"a":"b"},"x":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}' >build/fuzz/models/small.safetensors
fuzz safetensors_fuzz build/fuzz/models &
models=$!
# A file of each form, after the letter of its reader.
mkdir -p build/fuzz/files
python3 - build/fuzz/files <<'END'
import io, pathlib, sys, tarfile, zipfile
folder = pathlib.Path(sys.argv[1])
header = b"{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }".ljust(117) + b"\n"
npy = b"\x93NUMPY\x01\0" + len(header).to_bytes(2, "little") + header + bytes(8)
files = {"c": b'x,y,"z"\r\n1,2,"a ""b"""\n-3e4,5,\n', "n": npy, "p": b"FASTPACK"}
for form in (tarfile.GNU_FORMAT, tarfile.PAX_FORMAT):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=form) as archive:
        member = tarfile.TarInfo("a/" * 60 + "0.cls")
        member.size = 1
        archive.addfile(member, io.BytesIO(b"7"))
    files[f"t{form}"] = buffer.getvalue()
buffer = io.BytesIO()
with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
    archive.writestr("x.npy", npy)
files["z"] = buffer.getvalue()
for name, contents in files.items():
    (folder / name).write_bytes(name[0].encode() + contents)
END
fuzz data_fuzz build/fuzz/files &
files=$!
mkdir -p build/fuzz/requests
printf '{"instances":[[1,2,3,4],[[1,2],[3,4e1]]],"type":"u8","normalized":true}' >build/fuzz/requests/json
printf 'f1x1x2x2\n0123456789abcdef' >build/fuzz/requests/raw
fuzz request_fuzz build/fuzz/requests &
requests=$!
status=0
wait "$topology" || status=$?
wait "$models" || status=$?
wait "$files" || status=$?
wait "$requests" || status=$?
exit "$status"
