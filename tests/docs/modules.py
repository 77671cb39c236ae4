#!/usr/bin/env python3
"""Compares the includes of the sources with the table of modules in docs/explanation/design.md:  modules.py SOURCE

A module is a folder of lib/ and of include/fast/; the CUDA half of nn is one more. It may include the modules that its row names, those that these use in
turn, and its own headers. No module may use itself through others. The library, from core to worker, has at most 8 layers.
"""
import pathlib
import re
import sys

PAGE = "docs/explanation/design.md"
LAYERS = 8
TOP = "the top of the library"  # include/fast/fast.hpp and fast.h


def modules_in(page):
    """{module: the modules that its row names}, in the order of the rows."""
    table = {}
    rows = page.split("## Modules")[1].split("\n## ")[0]
    for names, uses in re.findall(r"^\| (`[^|]*`) \|[^|]*\| ([^|]+) \|$", rows, re.M):
        below = list(table) if uses == "all above" else [] if uses == "–" else uses.split(", ")
        table.update({name: set(below) for name in re.findall(r"`(\w+)`", names)})
    return table


def closure(table):
    """{module: all modules that it may include}; raises ValueError for a circle or an unknown name."""
    closed = {}
    for module, uses in table.items():
        later = [name for name in uses if name not in closed]
        if later:
            raise ValueError(f"{PAGE}: {module} uses {', '.join(later)}, whose row is not above its own")
        closed[module] = uses.union(*(closed[name] for name in uses))
    return closed


def module_of(parts):
    """The CUDA half of nn, nn_cuda, is the folder nn/cuda and the parts of layers beside the layers."""
    is_half = parts[0] == "nn" and (parts[1] == "cuda" or parts[-1].endswith("_cuda.hpp") or parts[-1] == "cuda_part.hpp")
    return "nn_cuda" if is_half else parts[0]


def layer_of(module, table):
    return 1 + max((layer_of(name, table) for name in table[module]), default=0)


def includes(source):
    """(file, its module, the included module) of each include of another module of the library."""
    roots = [source / "include" / "fast", source / "lib"]
    for root in roots:
        for path in sorted(root.rglob("*")):
            if path.suffix not in (".hpp", ".cpp", ".cu", ".cuh", ".h"):
                continue
            own = path.relative_to(root).parts
            module = module_of(own) if len(own) > 1 else TOP
            for header in re.findall(r'#include [<"]([^>"]+)[>"]', path.read_text()):
                parts = header.removeprefix("fast/").split("/")
                if len(parts) > 1 and module_of(parts) != module and any((root / parts[0]).is_dir() for root in roots):
                    yield path.relative_to(source), module, module_of(parts)


def faults(source):
    table = modules_in((source / PAGE).read_text())
    allowed = closure(table)
    allowed[TOP] = set(table)
    found = [f"{path}: {module} includes {other}; {PAGE} does not let it"
             for path, module, other in includes(source) if other not in allowed.get(module, ())]
    folders = {path.name for folder in ("lib", "include/fast") for path in (source / folder).iterdir() if path.is_dir()}
    found += [f"{PAGE}: no row for the module {name}" for name in sorted(folders - set(table))]
    layers = layer_of("worker", table)
    if layers > LAYERS:
        found.append(f"{PAGE}: {layers} layers from core to worker; at most {LAYERS} are allowed")
    return found


def main():
    try:
        found = faults(pathlib.Path(sys.argv[1]))
    except ValueError as error:
        found = [str(error)]
    print("\n".join(found) or "all includes follow the table of modules")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
