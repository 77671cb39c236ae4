"""Draws mutants of the code in SOURCE from a seed and judges each by the tests that cover it; called by scripts/mutation.sh."""
import argparse
import hashlib
import pathlib
import random
import re
import shutil
import subprocess
import sys
import time

# A folder of the code, and the test programs that cover it, the quick ones first. A program that ctest runs in parts
# or on several rank counts has tests NAME_part and NAME_nRANKS.
COVERED = {
    "lib/exchange/shared": ["exchange_test", "slot_model_test", "worker_test", "worker_mpi_test"],
    "lib/combine": ["worker_parts_test", "worker_test"],
    "lib/algorithm": ["worker_test", "worker_golden_mpi_test"],
    "lib/codec": ["codec_test", "worker_test"],
    "lib/mixing": ["mixing_kernels_test", "weights_test", "topology_test"],
    "lib/train/checkpoint": ["train_test", "trainer_mpi_test"],
    "lib/membership": ["membership_test", "train_test", "worker_test", "trainer_mpi_test"],
}
# Changes: a pattern, and what takes its place. clang-format puts spaces around binary operators, and none into templates.
CHANGES = [
    (r" < ", " <= "), (r" <= ", " < "), (r" > ", " >= "), (r" >= ", " > "),
    (r" == ", " != "), (r" != ", " == "),
    (r" \+ ", " - "), (r" - ", " + "), (r" \* ", " / "), (r" / ", " * "), (r" % ", " / "),
    (r" \+= ", " -= "), (r" -= ", " += "),
    (r" && ", " || "), (r" \|\| ", " && "),
    (r"\btrue\b", "false"), (r"\bfalse\b", "true"),
    (r"\bstd::min\b", "std::max"), (r"\bstd::max\b", "std::min"),
    (r"(?<![\w.'\"<])0(?![\w.'>])", "1"), (r"(?<![\w.'\"<])1(?![\w.'>])", "2"),
    (r"\bif \((?!!)(?=[^;{}]*\) )", "if (!"),
    (r"\bif \(!", "if ("),
    (r"\breturn (?=[\w:.>()-]+ ?[<>=!]=? ?[\w:.>()-]+;)", "return !!"),
    (r"(?<=^)( +)(?!return|delete|throw|using|else|break|continue|case|static|const|auto|public|private)"
     r"[a-z][\w.>:()-]*\([^;{}]*\);$", r"\1;"),
    (r"\bbreak;", "continue;"),
]
BUILD_S = 900  # of one mutant
TEST_S = 120  # of one test


def code_of(line):
    """The line with its comment and the content of its strings replaced by spaces."""
    line = re.sub(r'"(\\.|[^"\\])*"', lambda m: '"' + " " * (len(m[0]) - 2) + '"', line)
    return re.sub(r"//.*", lambda m: " " * len(m[0]), line)


def is_code(text):
    stripped = text.strip()
    return bool(stripped) and not stripped.startswith(("#", "static_assert", "template", "namespace", "using", "require("))


def places_of(path):
    """All (line number, changed line) of a file."""
    for number, line in enumerate(path.read_text().split("\n")):
        code = code_of(line)
        if not is_code(code):
            continue
        for pattern, replacement in CHANGES:
            for match in re.finditer(pattern, code):
                changed = line[: match.start()] + match.expand(replacement) + line[match.end() :]
                if "if (!" in replacement and not pattern.startswith(r"\bif \(!"):
                    changed = negated(line, match.start())
                if replacement == "return !!":
                    changed = re.sub(r"return (.*);", r"return !(\1);", line)
                if changed and changed != line:
                    yield number, changed


def negated(line, begin):
    """`if (X)` as `if (!(X))`; nothing if the condition goes on in the next line or declares a name."""
    opening = line.index("(", begin)
    depth = 0
    for at in range(opening, len(line)):
        depth += {"(": 1, ")": -1}.get(line[at], 0)
        if depth == 0:
            condition = line[opening + 1 : at]
            if ";" in condition or re.search(r"\w [a-z]\w* = ", condition):
                return None
            return f"{line[:opening]}(!({condition})){line[at + 1:]}"
    return None


class Copy:
    """The copy of the checkout that is changed, built and tested."""

    def __init__(self, root):
        self.root = root
        self.build = root / "build/dev"

    def make(self, programs):
        """True if the programs could be built."""
        command = ["nice", "ninja", "-C", self.build, *programs]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=BUILD_S)
        except subprocess.TimeoutExpired:
            return False
        return done.returncode == 0

    def digest(self, programs):
        return [hashlib.sha256((self.build / "bin" / name).read_bytes()).digest() for name in programs]

    def failing_test(self, programs):
        """The first test that fails; None if all pass."""
        for name in programs:
            command = ["ctest", "--preset", "dev", "-R", rf"^{name}(_[a-z]\w*)?$|^{name}_n[1-9]$",
                       "--stop-on-failure", "--timeout", str(TEST_S), "-j2", "--no-tests=error"]
            done = subprocess.run(command, capture_output=True, text=True, cwd=self.root)
            if done.returncode != 0:
                failed = re.search(r"Test +#\d+: (\S+) .*\*\*\*(\w+)", done.stdout)
                return " ".join(failed.groups()) if failed else name
        return None


def draw(copy, folders, chance):
    """Endless draws: each folder as often, a file by its number of places. No place comes twice."""
    places = {}
    for folder in folders:
        for path in sorted((copy.root / folder).rglob("*.[ch]pp")):
            for number, changed in places_of(path):
                places.setdefault(folder, []).append((path, number, changed))
    while any(places.values()):
        folder = chance.choice([name for name in folders if places.get(name)])
        yield folder, *places[folder].pop(chance.randrange(len(places[folder])))


def judge(copy, programs, original):
    """killed, survived or equivalent, and the test that failed; None if the change does not compile."""
    if not copy.make(programs):
        return None
    if copy.digest(programs) == original:
        return "equivalent", ""
    failed = copy.failing_test(programs)
    return ("killed", failed) if failed else ("survived", "")


def try_out(copy, folder, path, number, changed):
    programs = COVERED[folder]
    if not copy.make(programs):
        sys.exit(f"mutation: {' '.join(programs)} cannot be built without a change")
    original = copy.digest(programs)
    text = path.read_text()
    lines = text.split("\n")
    was = lines[number]
    lines[number] = changed
    path.write_text("\n".join(lines))
    began = time.monotonic()
    try:
        verdict = judge(copy, programs, original)
    finally:
        path.write_text(text)
    if verdict is None:
        return None
    place = f"{path.relative_to(copy.root)}:{number + 1}"
    print(f"{verdict[0]}: {place}: {was.strip()}  ->  {changed.strip()}  "
          f"{verdict[1]} ({time.monotonic() - began:.0f} s)", flush=True)
    return verdict[0]


def copy_checkout(target):
    """Makes TARGET the same as the checkout, build folders aside. Equal files keep their times, so that little is built."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split("\0")
    names = {name for name in names if name and pathlib.Path(name).is_file()}
    for old in [path for path in target.rglob("*") if path.is_file() and "build" not in path.relative_to(target).parts[:1]]:
        if str(old.relative_to(target)) not in names:
            old.unlink()
    for name in names:
        there = target / name
        if not there.is_file() or there.read_bytes() != pathlib.Path(name).read_bytes():
            there.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(name, there)


def main():
    parser = argparse.ArgumentParser(prog="scripts/mutation.sh")
    parser.add_argument("source", type=pathlib.Path)
    parser.add_argument("--count", type=int, default=30)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    parser.add_argument("--only", action="append", metavar="FOLDER", choices=sorted(COVERED))
    parser.add_argument("--at-least", type=float, default=0.85, metavar="SHARE")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--copy", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.copy:
        return copy_checkout(options.source)
    copy = Copy(options.source.resolve())
    folders = [name for name in options.only or COVERED if (copy.root / name).is_dir()]
    drawn = draw(copy, folders, random.Random(options.seed))
    print(f"mutation: seed {options.seed}, {', '.join(folders)}", flush=True)
    if options.list:
        for folder, path, number, changed in (next(drawn) for _ in range(options.count)):
            print(f"{path.relative_to(copy.root)}:{number + 1}: {changed.strip()}")
        return 0
    for name in folders:
        failed = copy.failing_test(COVERED[name]) if copy.make(COVERED[name]) else "they cannot be built"
        if failed:
            sys.exit(f"mutation: without a change, the tests of {name} do not pass: {failed}")
    tally = {"killed": 0, "survived": 0, "equivalent": 0}
    for place in drawn:
        verdict = try_out(copy, *place)
        if verdict:
            tally[verdict] += 1
        if sum(tally.values()) >= options.count:
            break
    changed = tally["killed"] + tally["survived"]
    print(f"mutation: {tally['killed']} killed, {tally['survived']} survived, {tally['equivalent']} equivalent; "
          f"seed {options.seed}")
    return 0 if tally["killed"] >= options.at_least * changed else 1


if __name__ == "__main__":
    sys.exit(main())
