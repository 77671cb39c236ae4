#!/usr/bin/env python3
"""fast-train trains on a stream: as on the same samples of a file, through a kill -9 and a restart of the server.

  stream_training_test.py FAST_TRAIN FAST_DATA MPIEXEC [TEST...]
"""
import json
import os
import pathlib
import random
import signal
import struct
import subprocess
import sys
import tempfile

import nats
from programs import PATIENCE_S, Program, check, refused, run_all, skip, wait_for

TRAIN, DATA, MPIEXEC = (pathlib.Path(argument).resolve() for argument in sys.argv[1:4])
WORKERS, BATCH, ROUNDS, EPOCHS = 2, 16, 20, 3
SAMPLES = WORKERS * BATCH * ROUNDS
SIDE = 28


def make_samples(count):
    """Images that tell their class by the place of a bright row, and noise."""
    chance = random.Random(7)
    samples = []
    for i in range(count):
        label = chance.randrange(10)
        image = bytearray(chance.randbytes(SIDE * SIDE))
        image[2 * label * SIDE:(2 * label + 2) * SIDE] = bytes([255]) * (2 * SIDE)
        samples.append((bytes(image), label))
    return samples


def write_idx(folder, train, test):
    folder.mkdir()
    for name, samples in (("train", train), ("t10k", test)):
        (folder / f"{name}-images-idx3-ubyte").write_bytes(
            struct.pack(">4i", 2051, len(samples), SIDE, SIDE) + b"".join(image for image, _ in samples))
        (folder / f"{name}-labels-idx1-ubyte").write_bytes(
            struct.pack(">2i", 2049, len(samples)) + bytes(label for _, label in samples))


def as_file(samples):
    """The order in which the rounds of a run on a file take what they take of a stream: a worker has a block."""
    order = [None] * SAMPLES
    for i, sample in enumerate(samples):
        turn, within = divmod(i, BATCH)
        round_, worker = divmod(turn, WORKERS)
        order[worker * ROUNDS * BATCH + round_ * BATCH + within] = sample
    return order


def words(data, out, *options):
    return [str(word) for word in (
        TRAIN, "--data", data, "--model", "mlp:16", "--batch-size", BATCH, "--epochs", EPOCHS, "--out", out,
        "--topology", "ring", "--quiet", *options)]


def of_stream(server, out, *options):
    return words(f"{server.url}/samples", out, "--samples", SAMPLES, "--test-data", "file", *options)


def ranks(count, command):
    return [str(MPIEXEC), "-n", str(count), *command]


def run(command):
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S)
    check(done.returncode == 0, f"{command}: status {done.returncode}: {done.stderr}")
    return done


def publish(server, folder, *options):
    return run([str(DATA), "publish", folder, f"{server.url}/samples", *map(str, options)]).stdout


def new_server(folder):
    server = nats.Server(folder)
    client = nats.Client(server)
    client.add_stream("SAMPLES", ["samples"])
    return server, client


def weights(out):
    """The model's file without the texts in its header."""
    contents = (pathlib.Path(out) / "mean-model.safetensors").read_bytes()
    return contents[8 + struct.unpack("<Q", contents[:8])[0]:]


def lines_of(out, kind):
    lines = [json.loads(line) for line in (pathlib.Path(out) / "metrics.jsonl").read_text().splitlines()]
    return [line for line in lines if line["kind"] == kind]


def processes_of(mark):
    found = []
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if os.readlink(process / "exe") == str(TRAIN) and mark.encode() in (process / "environ").read_bytes():
                found.append(int(process.name))
        except OSError:
            pass
    return found


def checkpoints(out):
    folder = pathlib.Path(out) / "checkpoints"
    return [each for each in folder.iterdir() if (each / "manifest.json").exists()] if folder.exists() else []


def publish_slowly(client, samples, begin, end):
    headers = {"X-Tensor-Type": "u8"}
    for i in range(begin, end):
        image, label = samples[i % SAMPLES]
        client.request("samples", image, {**headers, "X-Label": str(label)})


def test_as_of_a_file(samples):
    run(ranks(WORKERS, words("file", "golden", "--window", 1)))
    server, client = new_server("store-file")
    said = publish(server, "in-order", "--repeat", EPOCHS)
    check(f"{EPOCHS * SAMPLES} samples stored, 0 were there already" in said, said)
    check(client.stored("SAMPLES") == EPOCHS * SAMPLES, "all are stored")
    said = publish(server, "in-order", "--repeat", EPOCHS)
    check(f"0 samples stored, {EPOCHS * SAMPLES} were there already" in said, said)
    run(ranks(WORKERS, of_stream(server, "streamed")))
    said = publish(server, "in-order", "--resize", "14x14")
    check(f"{SAMPLES} samples stored" in said, f"samples of another size are others: {said}")
    check(weights("streamed") == weights("golden"), "the run on the stream ends with the weights of that on the file")
    accuracy = lines_of("streamed", "epoch")[-1]["test_accuracy"]
    check(accuracy > 0.5, f"it has learned: {accuracy}")
    left = client.api("STREAM.INFO.SAMPLES")["state"]["consumer_count"]
    check(left == 0, f"{left} consumers are left")
    server.stop()


def test_killed_and_resumed(samples):
    """The stream is slower than training, its server restarts, and the job is killed with -9."""
    server, client = new_server("store-kill")
    publish_slowly(client, samples, 0, SAMPLES)
    mark = f"FAST_TEST=killed-{os.getpid()}"
    os.environ.update([mark.split("=")])
    command = of_stream(server, "killed", "--checkpoint-every", 5, "--suspect-after", 5)
    job = Program(*ranks(WORKERS, command))
    wait_for(lambda: len(checkpoints("killed")) >= 2, "checkpoints of the first epoch")
    server.stop()
    wait_for(lambda: "is lost" in job.stderr(), "the loss of the server is reported")
    server.start()
    client = nats.Client(server)
    publish_slowly(client, samples, SAMPLES, SAMPLES + 7 * WORKERS * BATCH + 3)
    wait_for(lambda: any(each.name.endswith("025") for each in checkpoints("killed")),
             "a checkpoint after the restart")
    for process in processes_of(mark):
        os.kill(process, signal.SIGKILL)
    job.process.wait(PATIENCE_S)
    check(job.process.returncode != 0, "the job was killed")
    publish_slowly(client, samples, SAMPLES + 7 * WORKERS * BATCH + 3, EPOCHS * SAMPLES)
    run(ranks(WORKERS, [*command, "--resume", "killed/checkpoints"]))
    check(weights("killed") == weights("golden"), "the resumed run ends with the weights of that on the file")
    server.stop()


def test_malformed_and_removed(samples):
    server, client = new_server("store-bad")
    publish(server, "in-order")
    client.request("samples", b"hello")
    client.request("samples", bytes(SIDE * SIDE), {"X-Tensor-Type": "u8", "X-Label": "11"})
    publish(server, "in-order", "--id", "again", "--shuffle", 1)
    for number in range(65, 65 + 3 * BATCH):  # a round and a half
        client.api("STREAM.MSG.DELETE.SAMPLES", seq=number)
    run([*of_stream(server, "bad", "--epochs", 2), "--exchange", "local", "--workers", str(WORKERS)])
    skipped = {}
    for line in lines_of("bad", "epoch"):
        skipped[line["epoch"]] = skipped.get(line["epoch"], 0) + line["skipped_samples"]
    check(skipped == {0: 3 * BATCH, 1: 2} or skipped == {1: 3 * BATCH, 2: 2}, f"skipped: {skipped}")
    server.stop()


def test_saved_while_it_waits(samples):
    """A checkpoint by time. The address has a password, which stands in no file."""
    server, client = new_server("store-save")
    publish_slowly(client, samples, 0, 100)
    data = f"{server.url}/samples".replace("nats://", "nats://me:secret@")
    job = Program(*words(data, "saves", "--samples", SAMPLES, "--test-data", "file", "--checkpoint-every", "1s",
                         "--exchange", "local", "--workers", WORKERS))
    wait_for(lambda: checkpoints("saves"), "a checkpoint while the run waits")
    check([each.name for each in checkpoints("saves")] == ["round-000000000003"], f"{checkpoints('saves')}")
    check(job.end() == 0, f"SIGTERM ends a run that waits with 0: {job.stderr()}")
    texts = {str(path): path.read_bytes() for path in pathlib.Path("saves").rglob("*") if path.is_file()}
    check("saves/config.toml" in texts, f"{sorted(texts)}")
    told = [name for name, text in {**texts, "errors": job.stderr().encode()}.items() if b"secret" in text]
    check(not told, f"the password is in {told}")
    server.stop()


def test_stopped_while_it_waits(samples):
    server, client = new_server("store-stop")
    publish_slowly(client, samples, 0, 100)
    job = Program(*of_stream(server, "waits", "--checkpoint-every", 1000), "--exchange", "local", "--workers", str(WORKERS))
    wait_for(lambda: "needs those up to message 128" in job.stderr(), "the run says that it waits")
    check(job.end() == 0, f"SIGTERM ends a run that waits with 0: {job.stderr()}")
    check(len(checkpoints("waits")) == 1, "its place is saved")
    server.stop()


def test_made_anew(samples):
    """While the run waits for samples, and while it has more than enough of them."""
    for waits in (True, False):
        server, client = new_server(f"store-anew-{waits}")
        publish_slowly(client, samples, 0, 100 if waits else 600)
        out = f"anew-{waits}"
        job = Program(*of_stream(server, out, "--exchange", "local", "--workers", WORKERS, "--step-ms", 50,
                                 "--checkpoint-every", 3))
        wait_for(lambda: checkpoints(out), "a run that has made three rounds")
        client.api("STREAM.DELETE.SAMPLES")
        client.add_stream("SAMPLES", ["samples"])
        publish_slowly(client, samples, 0, 200)
        wait_for(lambda: job.process.poll() is not None, "a run whose stream was made anew ends")
        said = job.stderr().count("the stream SAMPLES was deleted and made again")
        check(job.process.returncode == 1 and said == 1, f"status {job.process.returncode}: {job.stderr()}")
        server.stop()


def test_resumed_on_another_stream(samples):
    """Of the same name, and long enough: its numbers are those of other samples."""
    server, client = new_server("store-other")
    publish_slowly(client, samples, 0, SAMPLES)
    local = ("--exchange", "local", "--workers", str(WORKERS))
    job = Program(*of_stream(server, "other", *local, "--checkpoint-every", 3))
    wait_for(lambda: "needs those up to message" in job.stderr(), "the run waits for samples")
    check(job.end() == 0, f"SIGTERM ends a run that waits with 0: {job.stderr()}")
    resumed = of_stream(server, "other", *local, "--resume", "other/checkpoints")
    client.api("STREAM.DELETE.SAMPLES")
    client.add_stream("SAMPLES", ["samples"])
    publish_slowly(client, samples, 0, SAMPLES)
    done = subprocess.run(resumed, capture_output=True, text=True, timeout=PATIENCE_S)
    check(done.returncode == 1 and done.stderr.count("deleted and made again since the checkpoint") == 1,
          f"status {done.returncode}: {done.stderr}")
    server.stop()


def test_refusals(samples):
    server, client = new_server("store-refused")
    local = ("--exchange", "local", "--workers", "2")
    sound = of_stream(server, "refused", *local)
    lost = f"nats://127.0.0.1:{nats.free_port()}/samples"
    refused(*words(lost, "refused", "--samples", 640, "--test-data", "file", *local), text="no connection")
    refused(*words(f"{server.url}/other", "refused", "--samples", 640, "--test-data", "file", *local),
            text="no stream has the subject other")
    refused(*words(server.url, "refused", "--samples", 640, "--test-data", "file", *local), text="HOST:PORT/SUBJECT")
    refused(*words(f"{server.url}/samples", "refused", "--test-data", "file", *local), text="add --samples")
    refused(*words(f"{server.url}/samples", "refused", "--samples", 640, *local), text="add --test-data")
    refused(*sound, "--validation", "0.1", text="validation")
    refused(*sound, "--balance", "measured", text="even balance")
    refused(str(DATA), "publish", "file", f"{server.url}/other", text="no stream has the subject other")
    client.request("samples", bytes(100), {"X-Tensor-Type": "u8", "X-Label": "1"})
    refused(*sound, text="100 bytes")
    done = subprocess.run(ranks(3, of_stream(server, "refused")), capture_output=True, text=True, timeout=PATIENCE_S)
    check(done.returncode == 1 and done.stderr.count("none of the first 1 messages") == 1,
          f"three ranks: status {done.returncode}: {done.stderr}")
    server.stop()


def main():
    if not nats.is_installed():
        skip("no nats-server (apt-get install nats-server)")
    with tempfile.TemporaryDirectory(prefix="fast-stream-") as folder:
        os.chdir(folder)
        samples = make_samples(SAMPLES)
        test = make_samples(100)
        write_idx(pathlib.Path("in-order"), samples, test)
        write_idx(pathlib.Path("file"), as_file(samples), test)
        probe = subprocess.run(words("nats://127.0.0.1:1/a", "o", "--samples", 640, "--test-data", "file"),
                               capture_output=True, text=True, timeout=PATIENCE_S)
        if "built without streams" in probe.stderr:
            skip("fast-train was built without streams (apt-get install libnats-dev)")
        tests = (test_as_of_a_file, test_killed_and_resumed, test_malformed_and_removed, test_saved_while_it_waits,
                 test_resumed_on_another_stream,
                 test_stopped_while_it_waits, test_made_anew, test_refusals)
        status = run_all([(each, (samples,)) for each in tests if not sys.argv[4:] or each.__name__ in sys.argv[4:]])
        os.chdir("/")
    return status


sys.exit(main())
