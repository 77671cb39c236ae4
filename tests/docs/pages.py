#!/usr/bin/env python3
"""Checks and runs the commands and the code blocks of README.md, CONTRIBUTING.md and docs/.

  pages.py check SOURCE                     blocks run in a test or say why not; links and files are there;
                                            lines are at most 100 columns wide, sentences short
  pages.py extract SOURCE OUT               writes C and C++ blocks as sources, and OUT/blocks.cmake
  pages.py run SOURCE BUILD OUT PAGE        runs the blocks of a page in order; OUT: of extract

bash blocks run one after another in one shell, in a copy of the source tree with a build in
build/release. fast-train is in the path; it trains on a small data set. scripts/build.sh does
nothing there. C, C++ and Python blocks are complete programs, and run.

Comments directly before a block, one a line, change this:
  <!-- not run: REASON -->           the block is not run
  <!-- in: WRAPPER -->               the block is a part of a program: tests/docs/WRAPPER, line @BLOCK@
  <!-- from: FILE -->                the block is a part of FILE, which something else runs
  <!-- save as: FILE -->             the block is a file for the commands that follow
  <!-- first: COMMAND -->            a command that runs before, and is not shown
  <!-- run with: /SHOWN/RUN/ -->     RUN replaces SHOWN; the first character separates
  <!-- prints -->                    the block is what the block above prints; ... stands for any text
  <!-- prints in any order -->       the same, for each line
"""
import os
import pathlib
import re
import shlex
import shutil
import stat
import statistics
import subprocess
import sys
import tempfile
import tomllib

RUNNABLE = {"bash": None, "cpp": ".cpp", "c": ".c", "python": ".py"}
DATA = {"toml", "cmake", "json", "ini"}
SHOWN = {"text", "console"}
DIRECTIVES = ("not run", "in", "from", "save as", "first", "run with", "prints", "prints in any order")
WIDEST = 100  # columns
GENERATED = ("options", "rules", "end")  # tables that scripts/docs_tables.sh writes
LIBRARIES = {"torch": "torch", "dlib": "dlib", "cuda": "cuda", "testing": "testing", "train": "train", "data": "train",
             "nn": "nn", "observe": "observe", "fast.h": "c"}


class Block:
    """A fenced block of a page, and the comments directly before it."""

    def __init__(self, page, number, line, language, comments):
        self.page, self.number, self.line, self.language = page, number, line, language
        self.text = ""
        self.comments = comments  # (name, value), in order

    def all(self, name):
        return [value for known, value in self.comments if known == name]

    def has(self, name):
        return any(known == name for known, _ in self.comments)

    def get(self, name):
        return next(iter(self.all(name)), None)

    @property
    def place(self):
        return f"{self.page}:{self.line}"

    @property
    def is_program(self):
        """A C or C++ block that the build compiles."""
        return self.language in ("c", "cpp") and not any(map(self.has, ("not run", "from", "save as")))

    @property
    def name(self):
        return f"{page_name(self.page)}_{self.number}"


def page_name(page):
    return re.sub(r"[^A-Za-z0-9]+", "_", str(pathlib.PurePath(page).with_suffix("")).removeprefix("docs/"))


def pages_of(source):
    found = [p.relative_to(source).as_posix() for p in sorted((source / "docs").rglob("*.md"))]
    return ["README.md", "CONTRIBUTING.md", *found]


def parse_comment(line, place):
    text = re.fullmatch(r"\s*<!--\s*(.*?)\s*-->\s*", line)
    if not text:
        return None
    name, _, value = (part.strip() for part in text[1].partition(":"))
    if name in GENERATED:
        return None
    if name not in DIRECTIVES:
        raise SystemExit(f"{place}: there is no comment \"{name}\"; choose from {', '.join(DIRECTIVES)}")
    return name, value


def blocks_of(source, page):
    blocks, comments, current, indent = [], [], None, ""
    for number, line in enumerate((source / page).read_text().splitlines(), 1):
        fence = re.match(r"(\s*)```(\w*)", line)
        if current is None and fence:
            indent = fence[1]
            current = Block(page, len(blocks) + 1, number, fence[2] or "text", comments)
            comments = []
        elif current is not None and fence:
            blocks.append(current)
            current = None
        elif current is not None:
            current.text += line.removeprefix(indent) + "\n"
        elif comment := parse_comment(line, f"{page}:{number}"):
            comments.append(comment)
        elif line.strip() and comments:
            raise SystemExit(f"{page}:{number}: the comment above is not directly before a block")
    if current is not None:
        raise SystemExit(f"{current.place}: the block has no end")
    return blocks


# check ---------------------------------------------------------------------------------------


def fault_of(source, block):
    """Why a block is not covered, or None."""
    if block.has("not run"):
        return None if block.get("not run") else "\"not run\" needs a reason"
    if block.has("from"):
        return fault_of_quotation(source / block.get("from"), block)
    if block.language in SHOWN or block.language in RUNNABLE:
        return None
    if block.language == "toml":
        tomllib.loads(block.text)
    if block.language in DATA:
        return None if block.has("save as") else "nothing uses the block; say where to save it, or why it is not run"
    return f"\"{block.language}\" is not a language that a test runs; choose from {', '.join([*RUNNABLE, *DATA, *SHOWN])}"


def fault_of_quotation(file, block):
    if not file.is_file():
        return f"there is no {file}"
    return None if block.text in file.read_text() else f"the lines are not, one after another, in {file}"


def prose_of(source, page):
    """(number, line) of the lines outside of blocks."""
    in_block = False
    for number, line in enumerate((source / page).read_text().splitlines(), 1):
        fence = line.lstrip().startswith("```")
        if not fence and not in_block:
            yield number, line
        in_block ^= fence


def anchors_of(source, page):
    headings = (line for _, line in prose_of(source, page) if re.match("#+ ", line))
    plain = (re.sub(r"[`*]|\]\([^)]*\)|\[", "", line).lstrip("# ") for line in headings)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in plain}


def faults_of_links(source, page):
    for number, line in prose_of(source, page):
        for link in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`]*`", "", line)):
            path, _, anchor = link.partition("#")
            target = (source / page).parent / path if path else source / page
            if "://" in link:
                continue
            if not target.exists():
                yield f"{page}:{number}: {link}: there is no such file"
            elif anchor and target.suffix == ".md" and anchor not in anchors_of(source, target.resolve().relative_to(source)):
                yield f"{page}:{number}: {link}: the page has no such heading"


def faults_of_commands(source, page):
    """Blocks of bash that no test runs have its syntax. Options of pip are known to Debian's, which may be old."""
    for block in blocks_of(source, page):
        if block.language == "bash" and block.has("not run"):
            done = subprocess.run(["bash", "-n"], input=block.text, capture_output=True, text=True)
            if done.returncode != 0:
                yield f"{block.place}: bash cannot read the block: {done.stderr.strip()}"
    text = (source / page).read_text().replace("\\\n", " ")
    for command in re.findall(r"\bpip install ([^`#\n]*(?:\n(?=[^`\n]*`)[^`#\n]*)*)", text):
        fault = fault_of_pip(command)
        if fault:
            yield f"{page}: pip install {' '.join(command.split())}: {fault}"


def fault_of_pip(command):
    """Of Debian's pip, which is skipped where it is not installed."""
    parse = "import sys; from pip._internal.commands import create_command as c; c('install').parser.parse_args(sys.argv[1:])"
    python = "/usr/bin/python3"
    if subprocess.run([python, "-c", "import pip"], capture_output=True).returncode != 0:
        return None
    done = subprocess.run([python, "-c", parse, *shlex.split(command)], capture_output=True, text=True)
    return done.stderr.strip().splitlines()[-1] if done.returncode != 0 else None


def faults_of_names(source, page):
    """Files that a page names and that are not there. docs/extending names files to be written."""
    if page.startswith("docs/extending"):
        return
    for number, line in prose_of(source, page):
        for name in re.findall(r"`((?:\.ci|bench|cmake|docs|examples|include|lib|scripts|tests|tools|topology)/[\w./-]+)`", line):
            if "MODULE" not in name and not (source / name).exists():
                yield f"{page}:{number}: there is no {name}"


def may_be_wide(line):
    """Rows of tables, comments, and lines that have one link or address alone."""
    return re.match(r"\s*(\||<!--)", line) or re.fullmatch(r"\s*([-*] )?(\[[^]]*\]\(\S*\)|https?://\S*)[.,;:]?", line)


def faults_of_width(source, page):
    shown = {block.line + i for block in blocks_of(source, page) if block.language in SHOWN
             for i in range(1, block.text.count("\n") + 1)}  # a program decides how wide its output is
    for number, line in enumerate((source / page).read_text().splitlines(), 1):
        if len(line) > WIDEST and number not in shown and not may_be_wide(line):
            yield f"{page}:{number}: {len(line)} columns; {WIDEST} at most"


def sentences_of(source, page):
    """The numbers of words of the page's sentences; headings, tables and blocks have none."""
    paragraphs = [""]
    for _, line in prose_of(source, page):
        if not line.strip() or re.match(r"\s*([-*]|\d+\.) ", line) or re.match(r"\s*(```|\||#|!|<!--)", line):
            paragraphs.append("")
        if not re.match(r"\s*(```|\||#|!|<!--)", line):
            paragraphs[-1] += " " + re.sub(r"^\s*([-*]|\d+\.) ", "", line.strip())
    for paragraph in paragraphs:
        text = re.sub(r"(!?\[[^]]*\])\([^)\s]*\)", r"\1", paragraph)
        for sentence in re.split(r"(?<=[.!?:;])\s+(?=[A-Z`*(\[])", text):
            if (words := len(re.findall(r"[\w`'-]+", sentence))) >= 3:
                yield words


def faults_of_sentences(source):
    lengths = sorted(words for page in pages_of(source) for words in sentences_of(source, page))
    median, long = statistics.median(lengths), 100 * sum(words > 30 for words in lengths) / len(lengths)
    most = lengths[int(0.95 * (len(lengths) - 1))]
    print(f"documentation: {len(lengths)} sentences; words: median {median:.0f}, 95 % at most {most}; above 30 words {long:.1f} %")
    for name, found, largest in [("median", median, 13), ("95 %", most, 25), ("share above 30 words, in %", long, 3)]:
        if found > largest:
            yield f"words in a sentence: {name}: {found:.1f}; {largest} at most; write shorter sentences"


def studies_of(source):
    """Their commands are not run: tests/studies runs them in a small form."""
    return [page.relative_to(source).as_posix() for page in sorted((source / "studies").glob("*/README.md"))]


def check(source):
    faults = [*faults_of_links(source, "CHANGELOG.md"), *faults_of_sentences(source)]
    for page in [*pages_of(source), *studies_of(source)]:
        faults += [*faults_of_links(source, page), *faults_of_names(source, page),
                   *faults_of_commands(source, page), *faults_of_width(source, page)]
    for page in pages_of(source):
        faults += [f"{block.place}: {fault}" for block in blocks_of(source, page) if (fault := fault_of(source, block))]
    print("\n".join([*faults, f"documentation: {len(faults)} faults"]))
    return 1 if faults else 0


# extract -------------------------------------------------------------------------------------


def text_to_run(block):
    text = block.text
    for substitution in block.all("run with"):
        _, old, new, _ = substitution.split(substitution[0])
        if old not in text:
            raise SystemExit(f"{block.place}: \"run with\" replaces {old}, which is not in the block")
        text = text.replace(old, new)
    return text


def wrapped(source, block):
    """The block's source, within its wrapper. Compilers name the lines of the page and of the wrapper."""
    text = text_to_run(block)
    inner = text if block.language == "python" else f'#line {block.line + 1} "{source / block.page}"\n{text}'
    if not block.has("in"):
        return inner
    wrapper = source / "tests/docs" / block.get("in")
    before, mark, after = wrapper.read_text().partition("@BLOCK@\n")
    if not mark:
        raise SystemExit(f"{wrapper}: no line is @BLOCK@")
    if block.language == "python":
        return before + inner + after
    return f'#line 1 "{wrapper}"\n{before}{inner}#line {before.count(chr(10)) + 2} "{wrapper}"\n{after}'


def libraries_of(text):
    used = re.findall(r"#include <fast/(\w+(?:\.h\b)?)", text)
    return sorted({LIBRARIES[part] for part in used if part in LIBRARIES}) or ["fast"]


def write_if_changed(file, text):
    if not file.exists() or file.read_text() != text:
        file.write_text(text)


def extract(source, out):
    out.mkdir(parents=True, exist_ok=True)
    rows = []
    for page in pages_of(source):
        blocks = blocks_of(source, page)
        for block in filter(lambda block: block.is_program, blocks):
            text = wrapped(source, block)
            file = out / (block.name + RUNNABLE[block.language])
            write_if_changed(file, text)
            rows.append(f"fast_docs_program({block.name} {file} {' '.join(libraries_of(text))})")
        if any(commands_of(source, block, out) for block in blocks):
            rows.append(f"fast_docs_page({page_name(page)} {page})")
    write_if_changed(out / "blocks.cmake", "\n".join(rows) + "\n")
    return 0


# run -----------------------------------------------------------------------------------------

TRAIN = """#!/bin/bash
# fast-train with a small data set where the page trains on Fashion-MNIST.
for option; do [[ $option != --data* && $option != --help && $option != --version ]] || exec {program} "$@"; done
exec {program} --data {data} "$@"
"""


def make_executable(file, text):
    file.write_text(text)
    file.chmod(file.stat().st_mode | stat.S_IXUSR)


def link_all(folder, into, without):
    into.mkdir(parents=True, exist_ok=True)
    for entry in folder.iterdir():
        if entry.name not in without:
            (into / entry.name).symlink_to(entry)


def make_tree(source, build, tree):
    """A tree like the one that pages speak of: sources, and a build in build/release. Nothing is
    installed or built in it."""
    link_all(source, tree, {"build", "scripts", "runs", ".git"})
    shutil.copytree(source / "scripts", tree / "scripts")
    for script in ("build.sh", "setup.sh"):
        make_executable(tree / "scripts" / script, "#!/bin/bash\n")
    link_all(build, tree / "build/release", {"bin"})
    link_all(build / "bin", tree / "build/release/bin", {"fast-train"})
    if "PYTHON" in os.environ:
        (tree / "build/release/bin/python3").symlink_to(os.environ["PYTHON"])
    (tree / "build/ci").symlink_to(tree / "build/release")
    data = tree / "home/small"
    subprocess.run([sys.executable, source / "tests/docs/make_data.py", "idx", data], check=True)
    make_executable(tree / "build/release/bin/fast-train", TRAIN.format(program=build / "bin/fast-train", data=data))


def save(block):
    quoted = shlex.quote(block.get("save as"))
    return f"cat >{quoted} <<'END_OF_BLOCK'\n{block.text}END_OF_BLOCK\n"


def commands_of(source, block, out):
    """What runs a block, as lines of a shell script."""
    if block.has("not run"):
        return ""
    commands = "".join(command + "\n" for command in block.all("first"))
    if block.has("save as"):
        commands += save(block)
    elif block.language == "bash":
        commands += text_to_run(block)
    elif block.is_program:
        commands += f"if [[ -x {out}/bin/{block.name} ]]; then timeout 60 {out}/bin/{block.name}; else echo 'not built'; fi\n"
    elif block.language == "python" and not block.has("from"):
        script = out / (block.name + ".py")
        write_if_changed(script, wrapped(source, block))
        commands += f"timeout 60 python3 {script}\n"
    return commands


def script_of(source, blocks, out):
    lines = ["set -eEo pipefail", "trap 'echo \"FAILED: $PLACE: $BASH_COMMAND\"' ERR"]
    for block in blocks:
        if commands := commands_of(source, block, out):
            lines += [f"PLACE={block.place}", f"echo '::{block.line}'", commands]
    return "\n".join(lines) + "\n"


def printed(pattern, output):
    """Whether lines are in an output, one after another; "..." stands for any text or lines."""
    parts = []
    for line in pattern.splitlines():
        if line.strip() == "...":
            parts.append(r"(?:.*\n)*?")
        else:
            parts.append(r"\s*" + r".*".join(map(re.escape, line.strip().split("..."))) + r"\s*\n")
    return re.search("(?m)^" + "".join(parts), output) is not None


def faults_of_outputs(blocks, outputs):
    output = ""
    for block in blocks:
        output = outputs.get(block.line, output)
        expected = []
        if block.has("prints"):
            expected = [block.text]
        elif block.has("prints in any order"):
            expected = block.text.splitlines()
        for text in expected:
            if not printed(text, output) and "not built" not in output:
                yield f"{block.place}: the block above printed something else:\n{output}"


def outputs_by_line(text):
    parts = re.split(r"(?m)^::(\d+)\n", text)
    return {int(line): output for line, output in zip(parts[1::2], parts[2::2])}


def run(source, build, out, page):
    blocks = blocks_of(source, page)
    with tempfile.TemporaryDirectory(prefix="fast-docs-") as folder:
        tree = pathlib.Path(folder)
        make_tree(source, build, tree)
        environment = os.environ | {"HOME": f"{tree}/home", "PATH": f"{tree}/build/release/bin:{os.environ['PATH']}",
                                    "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        done = subprocess.run(["bash", "-c", script_of(source, blocks, out)], cwd=tree, env=environment, text=True,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    print(done.stdout, end="")
    faults = list(faults_of_outputs(blocks, outputs_by_line(done.stdout)))
    print("\n".join(faults))
    return 1 if done.returncode or faults else 0


def main(command, *arguments):
    paths = [pathlib.Path(argument).resolve() for argument in arguments[:3]]
    return {"check": check, "extract": extract, "run": run}[command](*paths, *arguments[3:])


if __name__ == "__main__":
    try:
        sys.exit(main(*sys.argv[1:]))
    except (KeyError, TypeError):
        if len(sys.argv) > 1 and sys.argv[1] in ("check", "extract", "run"):
            raise
        sys.exit(__doc__)
