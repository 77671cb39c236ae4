# Sourced by tests in bash that start ranks on several hosts (tests/hosts/hosts.sh). Sets $hosts and $directory, and makes
# mpiexec and fastrun start ranks there. Ends the test with 77 and the reason where there can be no hosts.
#   source .../support/hosts.sh "" or any     any: with Open MPI too; without a word, the arguments of the test would be taken
source "$(dirname "${BASH_SOURCE[0]}")/expect.sh"
hosts=$(readlink -f "$(dirname "${BASH_SOURCE[0]}")/../hosts/hosts.sh")
why=$("$hosts" check "$@") || { echo "skipped: $why"; exit 77; }
exec 9>/tmp/fasthosts.lock # the hosts' names and addresses are the machine's
flock -w 120 9 || { echo "other tests have used the hosts of this machine for two minutes"; exit 1; }
directory=$(mktemp -d)
trap '"$hosts" down; rm -rf "$directory"' EXIT
trap 'exit 1' TERM
if mpiexec --version 2>/dev/null | grep -qE "OpenRTE|Open MPI"; then
  export OMPI_MCA_plm_rsh_agent=$hosts OMPI_MCA_oob_tcp_if_include=10.99.0.0/24 OMPI_MCA_btl_tcp_if_include=10.99.0.0/24
else
  export HYDRA_LAUNCHER=ssh HYDRA_LAUNCHER_EXEC=$hosts HYDRA_IFACE=fasthosts
fi
