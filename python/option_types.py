"""Writes the types of a Worker's keyword arguments, from the library's table of options.

  option_types.py OUT
"""
import pathlib
import sys

import _core

LINES = ['"""A worker\'s options. Written by the build, from the table of the C++ library."""',
         "from typing import Any, Literal, TypedDict", "", "class WorkerOptions(TypedDict, total=False):"]


def type_of(row):
    if row["names"]:
        return "Literal[" + ", ".join(f'"{name}"' for name in row["names"]) + "]"
    return row["type"].replace("object", "Any")


def lines_of(row):
    default = f" Default: {row['default']}." if row["default"] else ""
    yield f"    {row['name']}: {type_of(row)}"
    yield f'    """{row["help"]}. {row["required"]}.{default}"""'


rows = [row for row in _core.worker_options() if row["name"] != "algorithm"]
lines = LINES + [line for row in rows for line in lines_of(row)]
pathlib.Path(sys.argv[1]).write_text("\n".join(lines) + "\n")
