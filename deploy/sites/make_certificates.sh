#!/bin/sh
# Makes certificates of servers and clients, and the authority (CA) that signs them.
#
#   make_certificates.sh FOLDER NAME[,OTHER_NAME...]...
#
# FOLDER/ca.pem and FOLDER/ca-key.pem are made if they are not there. Each NAME gets FOLDER/NAME.pem and
# FOLDER/NAME-key.pem; all names of its group stand in the certificate: hosts, and IP addresses. DAYS (365) says how
# long certificates are valid. ca-key.pem can sign certificates of anybody: keep it off the servers.
set -eu
[ $# -ge 2 ] || { sed -n '2,9s/^# \{0,1\}//p' "$0" >&2; exit 2; }
folder=$1 days=${DAYS:-365}
shift
umask 077
mkdir -p "$folder"
cd "$folder"

new_key() { openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out "$1"; }

if [ ! -e ca.pem ]; then
  new_key ca-key.pem
  openssl req -x509 -new -key ca-key.pem -sha256 -days 3650 -subj "/CN=sites CA" \
    -addext "basicConstraints=critical,CA:TRUE" -addext "keyUsage=critical,keyCertSign,cRLSign" -out ca.pem
fi

for group; do
  name=${group%%,*} names=
  for each in $(echo "$group" | tr , ' '); do
    kind=DNS
    case $each in *:* | [0-9]*.[0-9]*.[0-9]*.[0-9]*) kind=IP ;; esac
    names=${names:+$names,}$kind:$each
  done
  new_key "$name-key.pem"
  # A server is a client of the servers that it is linked with.
  printf '%s\n' "subjectAltName=$names" "basicConstraints=CA:FALSE" "extendedKeyUsage=serverAuth,clientAuth" > "$name.ext"
  openssl req -new -key "$name-key.pem" -subj "/CN=$name" |
    openssl x509 -req -sha256 -days "$days" -CA ca.pem -CAkey ca-key.pem -CAcreateserial \
      -extfile "$name.ext" -out "$name.pem" 2> "$name.log" || { cat "$name.log" >&2; exit 1; }
  rm -f "$name.ext" "$name.log"
  chmod 644 "$name.pem" ca.pem
done
