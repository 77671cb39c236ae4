# Sourced by tests that render deploy/kubernetes.

# find_kustomize: whether this machine has a program for it.
find_kustomize() { command -v kubectl >/dev/null || command -v kustomize >/dev/null; }

# render FOLDER: prints the objects.
render() { if command -v kubectl >/dev/null; then kubectl kustomize "$1"; else kustomize build "$1"; fi; }

# is_too_old OUTPUT: whether a failure of render is one of versions before 5.0, which know no labels with pairs. Debian 12 has a
# kustomize 2.0.
is_too_old() { grep -qE 'unknown field|invalid Kustomization' "$1"; }
