#!/usr/bin/env python3
"""The scripts of the wheel (python/wheel/start_program.py) in environments that are made here: what they start, with which
MPI, and what they say where it is missing."""
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "python/wheel/start_program.py"
VERSION = f"python{sys.version_info.major}.{sys.version_info.minor}"


class Launcher(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.environment = pathlib.Path(folder.name)
        self.site = self.environment / "lib" / VERSION / "site-packages"
        self.package = self.site / "fast_decentralized"
        (self.package / "bin").mkdir(parents=True)
        (self.environment / "bin").mkdir()
        (self.package / "__init__.py").write_text("raise ImportError('a program needs no import of the package')\n")
        self.put(self.package / "bin/fast-train", "#!/bin/sh\necho \"$0 $*\"\necho \"$PATH\"\nexit 7\n")
        shutil.copy(SCRIPT, self.environment / "bin/fast-train")

    def put(self, path, text=""):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)

    def start(self, *arguments, program="fast-train"):
        return subprocess.run([sys.executable, self.environment / "bin" / program, *arguments], text=True, capture_output=True,
                              env={"PYTHONPATH": str(self.site), "PATH": "/usr/bin:/bin"})

    def test_a_program_gets_its_arguments_and_returns_its_status(self):
        self.put(self.environment / "lib/libmpi.so.12")
        done = self.start("--data", "two words")
        self.assertEqual(done.stdout.splitlines()[0], f"{self.package}/bin/fast-train --data two words", done.stderr)
        self.assertEqual(done.returncode, 7)
        self.assertEqual(done.stdout.splitlines()[1], "/usr/bin:/bin")

    def test_the_mpiexec_of_the_environment_goes_before_others(self):
        self.put(self.environment / "lib/libmpi.so.12")
        self.put(self.environment / "bin/mpiexec")
        self.assertEqual(self.start().stdout.splitlines()[1], f"{self.environment}/bin:/usr/bin:/bin")

    def test_without_mpi_one_line_says_what_to_install(self):
        done = self.start()
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stderr, "fast-train: there is no MPICH here: pip install mpich (or, on Debian and Ubuntu, "
                                      "apt-get install mpich)\n")

    def test_the_library_of_debian_does_as_well(self):
        listed = subprocess.run(["/sbin/ldconfig", "-p"], text=True, capture_output=True).stdout
        found = [line.split()[-1] for line in listed.splitlines() if line.split()[:1] == ["libmpich.so.12"]]
        if not found:
            self.skipTest("no libmpich.so.12 of Debian here")
        (self.package / "debian_mpich").mkdir()
        (self.package / "debian_mpich/libmpi.so.12").symlink_to(found[0])
        self.assertEqual(self.start().returncode, 7)

    def test_the_mpiexec_of_another_wheel_is_refused(self):
        shutil.copy(SCRIPT, self.environment / "bin/fastrun")
        shutil.copy(self.package / "bin/fast-train", self.package / "bin/fastrun")
        self.put(self.environment / "lib/libmpi.so.12")
        self.put(self.environment / "bin/mpiexec.hydra", "of MPICH")
        self.put(self.environment / "bin/mpiexec", "of MPICH")
        self.assertEqual(self.start(program="fastrun").returncode, 7)
        self.put(self.environment / "bin/mpiexec", "of another")
        done = self.start(program="fastrun")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, "^fastrun: the mpiexec of this environment is not MPICH's.*mpich\n$")

    def test_a_package_that_is_not_the_wheel_is_named(self):
        shutil.rmtree(self.package / "bin")
        done = self.start()
        self.assertEqual((done.returncode, done.stderr.count("\n")), (1, 1))
        self.assertIn("is not the wheel", done.stderr)

    def test_the_first_line_lets_pip_name_the_python(self):
        self.assertEqual(SCRIPT.read_text().splitlines()[0], "#!python")


if __name__ == "__main__":
    unittest.main()
