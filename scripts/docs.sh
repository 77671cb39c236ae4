#!/usr/bin/env bash
# Builds the documentation site:  scripts/docs.sh [OUT]   (build/docs/site). Open OUT/index.html in a browser.
# Doxygen reads the public headers; MkDocs Material is installed from PyPI into build/docs/venv. A dead link or anchor, a
# page that is not in the navigation and a header that Doxygen cannot read fail the build.
set -euo pipefail
cd "$(dirname "$0")/.."
out=$(realpath -m "${1:-build/docs/site}")
work=build/docs

scripts/setup.sh docs
mkdir -p "$work"
if ! cmp -s docs/requirements.txt "$work/venv/requirements.txt"; then
  echo "docs: installing $(grep -v '^#' docs/requirements.txt | tr '\n' ' ')"
  rm -rf "$work/venv"
  python3 -m venv "$work/venv"
  "$work/venv/bin/pip" install -q --disable-pip-version-check -r docs/requirements.txt
  cp docs/requirements.txt "$work/venv/requirements.txt"
fi

rm -rf "$work/xml"
doxygen - <<END
INPUT = include
RECURSIVE = YES
FILE_PATTERNS = *.hpp *.h
STRIP_FROM_PATH = include
OUTPUT_DIRECTORY = $work
GENERATE_HTML = NO
GENERATE_LATEX = NO
GENERATE_XML = YES
XML_PROGRAMLISTING = NO
JAVADOC_AUTOBRIEF = NO
EXTRACT_ALL = YES
ENABLE_PREPROCESSING = YES
MACRO_EXPANSION = YES
EXPAND_ONLY_PREDEF = YES
PREDEFINED = FAST_HOST_DEVICE= FAST_API=
QUIET = YES
WARN_IF_DOC_ERROR = NO
WARN_IF_UNDOCUMENTED = NO
END

PYTHONDONTWRITEBYTECODE=1 NO_MKDOCS_2_WARNING=1 "$work/venv/bin/mkdocs" build --strict --config-file scripts/docs/mkdocs.yml --site-dir "$out" 2>&1 | sed "/^INFO/d"
echo "docs: $(find "$out" -name '*.html' | wc -l) pages in $out"
