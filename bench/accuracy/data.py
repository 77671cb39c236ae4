"""Fashion-MNIST with fewer test images, for models that are slow to test, and in color."""
import gzip
import pathlib
import subprocess
import sys

from runs import RunFailed

SOURCE = pathlib.Path("/usr/share/datasets/fashion-mnist")
FILES = {"images-idx3-ubyte.gz": 28 * 28, "labels-idx1-ubyte.gz": 1}  # bytes a sample


def cut(whole, count, size):
    """The first samples of an IDX file: magic number, number of samples, other lengths, values."""
    header = 16 if size > 1 else 8
    return whole[:4] + count.to_bytes(4, "big") + whole[8:header] + whole[header:header + count * size]


def with_tests(folder, count):
    """Makes `folder`, where it is not there: all images for training, the first `count` for the test."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, size in FILES.items():
        train, test = folder / f"train-{name}", folder / f"t10k-{name}"
        if not train.exists():
            train.symlink_to(SOURCE / train.name)
        if not test.exists():
            with gzip.open(SOURCE / test.name) as file:
                test.write_bytes(gzip.compress(cut(file.read(), count, size)))
    return folder


def colored(folder, train, tests):
    """The folder of color images, in the files of CIFAR-10. Makes it within `folder`, where it is not there."""
    made = folder / f"colored-{train}-{tests}"
    if not (made / "color" / "test_batch.bin").exists():
        script = pathlib.Path(__file__).resolve().parents[2] / "studies" / "colored.py"
        command = [sys.executable, str(script), str(made), str(train), str(tests)]
        done = subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False)
        if done.returncode != 0:
            raise RunFailed((done.stderr.strip().splitlines() or [f"status {done.returncode}"])[-1])
    return made / "color"
