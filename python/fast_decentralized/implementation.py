"""Implementations of MPI by the texts in which they name themselves."""
from __future__ import annotations

from . import _core

NAMES = {"MPICH": ("MPICH", "HYDRA"), "Open MPI": ("Open MPI", "OpenRTE")}


def named_in(text: str) -> str | None:
    """"MPICH" or "Open MPI", for what ``mpiexec --version`` prints or the library calls itself; None for neither."""
    return next((name for name, words in NAMES.items() if any(word in text for word in words)), None)


def of_this_package() -> str | None:
    """The implementation whose library this package has loaded."""
    return named_in(_core.mpi_library())


def package() -> str:
    """How to install the mpiexec of this package's MPI."""
    return "install Open MPI (apt-get install openmpi-bin)" if of_this_package() == "Open MPI" else \
        "install MPICH (apt-get install mpich)"
