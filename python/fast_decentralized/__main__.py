"""Versions, and what runs need of this machine.   python -m fast_decentralized

Ends with status 1 if something has to be mended.
"""
from __future__ import annotations

import importlib.metadata
import os
import platform
import shutil
import subprocess
import sys

from . import __version__, _core, implementation

FRAMEWORKS = ("numpy", "torch", "jax", "mpi4py", "networkx", "scipy")
TRIAL = """
import fast_decentralized as fast, numpy
worker = fast.Worker({"w": numpy.zeros(3)}, "complete", deadline=20)
with worker.round():
    pass
if worker.rank == 0:
    print("averaged", worker.size)
"""


def versions() -> None:
    print(f"fast-decentralized {__version__} on Python {platform.python_version()}, {_core.mpi_library()}")
    print(f"      fast::cuda: {'built in' if _core.has_cuda else 'not built in'}")
    for name in FRAMEWORKS:
        try:
            print(f"      {name} {importlib.metadata.version(name)}")
        except importlib.metadata.PackageNotFoundError:
            print(f"      {name}: not installed")


def said(command: list[str]) -> str:
    """What a command prints, or why it cannot be run."""
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL).stdout
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)


class Doctor:
    def __init__(self) -> None:
        self.is_well = True

    def say(self, well: bool, what: str, remedy: str) -> None:
        print(f"ok    {what}" if well else f"FIX   {what}: {remedy}")
        self.is_well = self.is_well and well

    def is_own(self, mpiexec: str) -> bool:
        """False, with what to do, for the mpiexec of another MPI."""
        found, own = implementation.named_in(said([mpiexec, "--version"])), implementation.of_this_package()
        if found is not None and own is not None and found != own:
            self.say(False, f"mpiexec is {own}'s", f"it is {found}'s, with which each rank would be rank 0 of 1; choose it by "
                     "update-alternatives --config mpirun, or put that of " + own + " first in PATH")
            return False
        return True

    def examine(self) -> None:
        mpiexec = shutil.which("mpiexec")
        self.say(mpiexec is not None, "mpiexec is in the path", implementation.package())
        if mpiexec is not None and self.is_own(mpiexec):
            output = said([mpiexec, "-n", "2", sys.executable, "-c", TRIAL])
            self.say(output.strip() == "averaged 2", "two processes average their weights",
                     "mpiexec and the MPI library of this package are not the same, or /dev/shm is full; it printed: "
                     + repr(output[-300:]))
        self.say(shutil.which("fastrun") is not None, "fastrun is in the path",
                 "add the folder of this Python's scripts to PATH")
        memory = os.statvfs("/dev/shm")
        free_mib = memory.f_bavail * memory.f_frsize >> 20
        self.say(free_mib >= 16, f"/dev/shm has {free_mib} MiB free", "enlarge it (mount -o remount,size=... /dev/shm; "
                 "docker run --shm-size=...)")
        print(f"note  {len(os.sched_getaffinity(0))} cores")


if __name__ == "__main__":
    versions()
    doctor = Doctor()
    doctor.examine()
    sys.exit(0 if doctor.is_well else 1)
