#!/usr/bin/env bash
# A container of a pod, without a container runtime: the files of an image, with what Kubernetes gives. Needs root.
#   image_pod.sh NETWORK NAME ROOT COMMAND...
# NETWORK: a network namespace; NAME: the pod's; ROOT: the files of the image (scripts/container.sh --export), which stay
# as they are. From the environment: IMAGE_POD, an empty folder for mounts; IMAGE_POD_PLACES, a line for each volume, as in
#   /shared=FOLDER    /etc/hosts=FILE    /etc/fast=FOLDER:ro    /dev/shm=1073741824    (bytes: it is in memory, and empty)
# IMAGE_POD_USER=UID:GID; IMAGE_POD_FOLDER, where the command runs; IMAGE_POD_VARIABLES, its whole environment, a line each.
# The command is process 1 of a process table of its own, without capabilities, and everything ends with it. Its file system
# is read-only but for the volumes. There are no limits of memory and processors, and no filter of system calls.
set -euo pipefail
[[ $# -ge 4 ]] || { sed -n '2,10s/^# \{0,1\}//p' "$0" >&2 && exit 2; }

# The image, under files of the pod's own: Kubernetes makes the places of volumes, which the image need not have.
mount_image() { # ROOT
  mount -t tmpfs -o mode=755 tmpfs "$IMAGE_POD"
  mkdir "$IMAGE_POD"/{own,work,root}
  mount -t overlay -o "lowerdir=$1,upperdir=$IMAGE_POD/own,workdir=$IMAGE_POD/work" overlay "$IMAGE_POD/root"
}

mount_devices() {
  local device
  mount -t tmpfs -o mode=755 tmpfs dev
  for device in null zero full random urandom; do
    touch "dev/$device"
    mount --bind "/dev/$device" "dev/$device"
  done
  ln -s /proc/self/fd dev/fd
}

mount_volume() { # PLACE=VOLUME
  local place=.${1%%=*} volume=${1#*=}
  local from=${volume%:ro}
  if [[ $from == /* && ! -d $from ]]; then touch "$place"; else mkdir -p "$place"; fi
  if [[ $from == /* ]]; then
    mount --bind "$from" "$place"
  else
    mount -t tmpfs -o "size=$from,mode=1777,nosuid,nodev" tmpfs "$place"
  fi
  [[ $volume == "$from" ]] || mount -o remount,bind,ro "$place"
}

be_a_container() { # NAME ROOT COMMAND...
  local name=$1 places variables
  hostname "$name"
  mount_image "$2"
  shift 2
  cd "$IMAGE_POD/root"
  mount -t proc proc proc
  mount -t sysfs -o ro sysfs sys
  mount_devices
  mapfile -t places <<<"$IMAGE_POD_PLACES"
  for place in "${places[@]}"; do mount_volume "$place"; done
  mount -o remount,ro "$IMAGE_POD/root"
  mapfile -t variables <<<"$IMAGE_POD_VARIABLES"
  exec chroot . setpriv --reuid "${IMAGE_POD_USER%:*}" --regid "${IMAGE_POD_USER#*:}" --clear-groups --no-new-privs --bounding-set=-all --inh-caps=-all \
    env -i -C "$IMAGE_POD_FOLDER" PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOSTNAME="$name" HOME="$IMAGE_POD_FOLDER" \
    "${variables[@]}" "$@"
}

if [[ ${IMAGE_POD_INSIDE:-} != 1 ]]; then
  IMAGE_POD_INSIDE=1 exec nsenter --net="/run/netns/$1" unshare -u -i -m -p -f --kill-child "$(readlink -f "$0")" "$@"
fi
shift
be_a_container "$@"
