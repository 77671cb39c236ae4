#!/usr/bin/env bash
# The runtime image, built by buildah on a Debian 12 of mmdebstrap: its size, settings and files; and a run in it (a chroot
# of its files, as its user) gives bit for bit the weights of the run on the bare machine.
#   container_test.sh PACKAGES FASTRUN FAST_TRAIN [FOLDER]
#     PACKAGES: of scripts/deb.sh; FASTRUN, FAST_TRAIN: of the same machine; FOLDER: keeps the image, and takes one that is there
# 77: cannot be done here
set -uo pipefail
packages=$(realpath "$1") fastrun=$2 train=$3
cd "$(dirname "$0")/../.." || exit 1
source tests/deploy/image.sh
need_root
need_buildah
need_debian
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
trap 'exit 1' INT TERM HUP
folder=${4:-$directory/kept}
mkdir -p "$folder"
source tests/support/expect.sh
tag=localhost/fast:test most_mb=250
root=$folder/root
[[ -d $root ]] || scripts/container.sh --bare --packages "$packages" --storage "$folder/storage" --tag $tag --export "$root" || exit 1

size_mb=$(du -sxm --apparent-size "$root" | cut -f 1)
echo "container: $size_mb MB"
[[ $size_mb -le $most_mb ]] || { echo "$size_mb MB" >"$directory/output" && report_failure "the image has more than $most_mb MB"; }
images=(buildah --root "$folder/storage/images" --runroot "$folder/storage/run" --storage-driver vfs)
"${images[@]}" inspect --type image $tag >"$directory/output" || report_failure "no image"
settings() { python3 -c "import json, sys; d = json.load(open(sys.argv[1]))['Docker']['config']; print($1)" "$directory/output"; }
[[ $(settings "d['User']") == 1000:1000 ]] || report_failure "the user is $(settings "d['User']")"
[[ $(settings "d['Healthcheck']['Test']") == "['CMD', 'fast-health']" ]] || report_failure "no health check"
[[ $(settings "d['Labels']['org.opencontainers.image.version']") == "$("$train" --version | cut -d ' ' -f 2)" ]] || report_failure "the label version"
[[ $(settings "d['Labels']['org.opencontainers.image.revision']") == "$(git rev-parse HEAD)" ]] || echo "container: it is of another commit"
for name in title description licenses; do [[ -n $(settings "d['Labels']['org.opencontainers.image.$name']") ]] || report_failure "no label $name"; done
settings "' '.join(d['Env'])" | grep -qi proxy && report_failure "a proxy is in the image"
for file in usr/bin/{fast-train,fastrun,fast-model,fast-topology,fast-sim,fast-trace,fast-report,fast-pods,fast-health,fast-ssh,mpiexec} usr/sbin/sshd \
  usr/share/fast/packages.tsv usr/share/doc/{fast-tools,libmpich12}/copyright; do
  [[ -e $root/$file ]] || { echo "$file" >"$directory/output" && report_failure "the image lacks $file"; }
done
for file in etc/ssh/{ssh_host_rsa_key,ssh_config.d/fast.conf} tmp/packages usr/bin/g++ fast/CMakeLists.txt var/lib/apt/lists/lock; do
  [[ ! -e $root/$file ]] || { echo "$file" >"$directory/output" && report_failure "the image has $file"; }
done
# How this machine reaches Debian stays out.
echo "deb http://deb.debian.org/debian bookworm main" | diff - "$root/etc/apt/sources.list" >"$directory/output" || report_failure "sources of packages"
grep -rhE "Acquire|Proxy" "$root/etc/apt" >"$directory/output" && report_failure "a setting of apt is in the image"
! grep -E "^(perl|g\+\+)[[:space:]]" "$root/usr/share/fast/packages.tsv" >"$directory/output" || report_failure "packages that nothing needs"
# The list of packages is that of dpkg.
diff <(dpkg-query --admindir="$root/var/lib/dpkg" -W -f '${Package}\t${Version}\n') <(cut -f 1,2 "$root/usr/share/fast/packages.tsv") >"$directory/output" ||
  report_failure "the list of packages"

same_weights container "$fastrun" "$train"
expect "another seed" 0 "test accuracy" -- "${bare_run[@]}" --seed 8 --out "$directory/bare/other"
[[ $(weights_sum "$directory/bare/other") != "$bare_sum" ]] || report_failure "the comparison sees no difference"
# As the MPI Operator has it: a key of the job, sshd of the user, a host file. The key lies in a
# folder of its own, as it is mounted there.
mkdir -p "$directory/key"
ssh-keygen -q -t rsa -b 2048 -N "" -f "$directory/key/id_rsa" && cp "$directory/key/id_rsa.pub" "$directory/key/authorized_keys"
chown -R 1000:1000 "$directory/key"
echo "127.0.0.1:2" >"$directory/shared/hostfile"
cat >"$directory/shared/by_ssh" <<'END'
/usr/sbin/sshd -De -f /home/fast/.sshd_config 2>/tmp/sshd.log &
for ((i = 0; i < 100; ++i)); do fast-ssh -o BatchMode=yes 127.0.0.1 true 2>/dev/null && break || sleep 0.1; done
fast-ssh -o BatchMode=yes 127.0.0.1 'echo "ssh as $(id -un)"'
HYDRA_HOST_FILE=/shared/hostfile HYDRA_LAUNCHER=ssh HYDRA_LAUNCHER_EXEC=/usr/bin/fast-ssh fastrun -n 2 bash -c 'echo "rank $FASTRUN_RANK"'
status=$?
[[ $status -eq 0 ]] || cat /tmp/sshd.log
kill $!
exit $status
END
BIND="$directory/shared:/shared $directory/key:/home/fast/.ssh" scripts/bare_machine.sh run "$root" setpriv --reuid 1000 --regid 1000 --clear-groups \
  env HOME=/home/fast LC_ALL=C timeout 60 bash /shared/by_ssh </dev/null >"$directory/output" 2>&1 || report_failure "sshd and fastrun in the image"
for text in "ssh as fast" "rank 0" "rank 1"; do grep -q "$text" "$directory/output" || report_failure "ssh in the image: no $text"; done
inside fast-health /shared/run >"$directory/output" 2>&1 || report_failure "the health check in the image"
echo "$failures failures"
[[ $failures -eq 0 ]]
