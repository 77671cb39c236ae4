#!/usr/bin/env bash
# The MPIJob of deploy/kubernetes/mpijob by the schema that the MPI Operator gives to a cluster (its CRD).   mpijob_schema_test.sh
#   FAST_MPIJOB_CRD=FILE   the operator's manifests/base/kubeflow.org_mpijobs.yaml; without it, the file of MPI_OPERATOR
#   MPI_OPERATOR=TAG       a release of github.com/kubeflow/mpi-operator (v0.8.0)
# 77: cannot be done here
set -uo pipefail
here=$(dirname "$(readlink -f "$0")")
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
source "$here/../support/expect.sh"
source "$here/kustomize.sh"
python3 -c 'import yaml' 2>/dev/null || { echo "skipped: no PyYAML; apt-get install python3-yaml"; exit 77; }
python3 -c 'import jsonschema' 2>/dev/null || { echo "skipped: no jsonschema; apt-get install python3-jsonschema"; exit 77; }
find_kustomize || { echo "skipped: neither kubectl nor kustomize here"; exit 77; }
fetch='import sys, urllib.request as r; sys.stdout.buffer.write(r.urlopen(sys.argv[1], timeout=20).read())'
crd=${FAST_MPIJOB_CRD:-$directory/crd.yaml}
if [[ -z ${FAST_MPIJOB_CRD:-} ]]; then
  address=https://raw.githubusercontent.com/kubeflow/mpi-operator/${MPI_OPERATOR:-v0.8.0}/manifests/base/kubeflow.org_mpijobs.yaml
  timeout 60 python3 -c "$fetch" "$address" >"$crd" 2>"$directory/output" ||
    { echo "skipped: FAST_MPIJOB_CRD names no file, and $address is not reachable: $(tail -n 1 "$directory/output")"; exit 77; }
fi
[[ -r $crd ]] || { echo "FAILED: FAST_MPIJOB_CRD: $crd cannot be read"; exit 1; }
if ! render "$here/../../deploy/kubernetes/mpijob" >"$directory/mpijob.yaml" 2>"$directory/output"; then
  ! is_too_old "$directory/output" || { echo "skipped: this kustomize is too old: $(tail -n 1 "$directory/output")"; exit 77; }
  report_failure "it is not rendered"
fi

check=(python3 "$here/kubernetes_check.py" --crd)
expect "the MPIJob" 0 "mpijob.yaml: 3 objects, 1 of the CRD" -- "${check[@]}" "$crd" "$directory/mpijob.yaml"
cat "$directory/output"
# wrong TITLE SED FAULT: the schema finds this fault, and no other.
wrong() {
  sed "$2" "$directory/mpijob.yaml" >"$directory/wrong.yaml"
  ! cmp -s "$directory/mpijob.yaml" "$directory/wrong.yaml" || { : >"$directory/output" && report_failure "$1: nothing is changed"; }
  expect "$1" 1 "FAILED: wrong.yaml: MPIJob: $3" -- "${check[@]}" "$crd" "$directory/wrong.yaml"
  [[ $(grep -c FAILED "$directory/output") -eq 1 ]] || report_failure "$1: other faults too"
}
of_launcher=spec.mpiReplicaSpecs.Launcher.template.spec
wrong "a field of the job" 's/^  slotsPerWorker: 1/&\n  slotsPerNode: 1/' "spec: Additional properties"
wrong "a field of its policy" 's/cleanPodPolicy/cleanPodPolicies/' "spec.runPolicy: Additional properties"
wrong "a field of a pod" '0,/enableServiceLinks/s//enableServiceLink/' "$of_launcher: Additional properties"
wrong "a field of a container" 's/readinessProbe/readyProbe/' "${of_launcher/Launcher/Worker}.containers.0: Additional properties"
wrong "a field of its rights" '0,/ fsGroup/s// fsgroup/' "$of_launcher.securityContext: Additional properties"
wrong "a number" 's/backoffLimit: 20/backoffLimit: many/' "spec.runPolicy.backoffLimit: 'many' is not of type 'integer'"
wrong "a yes or no" '0,/automountServiceAccountToken: false/s//automountServiceAccountToken: "no"/' "$of_launcher.automountServiceAccountToken: 'no' is not of type 'boolean'"
wrong "a size" '0,/sizeLimit: 64Mi/s//sizeLimit: 64 MB/' "$of_launcher.volumes"
wrong "an MPI" 's/mpiImplementation: MPICH/mpiImplementation: MPICH4/' "spec.mpiImplementation: 'MPICH4' is not one of"
wrong "a version" 's|kubeflow.org/v2beta1|kubeflow.org/v3|' "the CRD has no version v3"
expect "a file that is no CRD" 1 "mpijob.yaml: this is no CustomResourceDefinition" -- "${check[@]}" "$directory/mpijob.yaml" "$directory/mpijob.yaml"
echo "$failures failures"
[[ $failures -eq 0 ]]
