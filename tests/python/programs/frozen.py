"""Layers that are unfrozen, and frozen, in the middle of training.

    mpiexec -n 3 python3 frozen.py
"""
import tempfile

import fast_decentralized as fast
import torch

RATE = 0.1
rank, size = fast.rank(), fast.size()


def net():
    module = torch.nn.Sequential(torch.nn.Linear(1, 1, bias=False), torch.nn.Linear(1, 1, bias=False)).double()
    with torch.no_grad():
        module[0].weight.fill_(1)
        module[1].weight.fill_(2)
    return module


def step(module):
    """Each trained weight moves towards the worker's number."""
    with torch.no_grad():
        for weight in module.parameters():
            if weight.requires_grad:
                weight -= RATE * (weight - rank)


def values(module):
    return [weight.item() for weight in module.parameters()]


def everywhere(value):
    return [eval(one) for one in fast.world().all_gather(repr(value).encode())]


def bytes_of_a_round(worker, module):
    before = worker.stats
    worker.step(step, module)
    after = worker.stats
    return (after.bytes_sent - before.bytes_sent) // max(1, after.messages_sent - before.messages_sent)


def train(algorithm, **options):
    """The mean of the weights is that of gradient descent on the mean of the losses."""
    module, expected = net(), [1.0, 2.0]
    target, sends = (size - 1) / 2, 8 if size > 1 else 0
    module[0].requires_grad_(False)
    worker = fast.Worker(module, "complete", algorithm=algorithm, deadline=60, **options)
    for phase, trained in enumerate([(False, True), (True, True), (True, False)]):
        for layer, trains in zip(module, trained):
            layer.requires_grad_(trains)
        if phase > 0:
            worker.rebind()
        kept = values(module)
        if trained == (True, False):
            assert len({repr(one[1]) for one in everywhere(kept)}) == 1, "what has stopped training differs"
            assert abs(kept[1] - expected[1]) < 1e-9 or "staleness" in options, (algorithm, kept, expected)
        for _ in range(4):
            sent = bytes_of_a_round(worker, module)
            assert sent == sends * sum(trained) or algorithm == "gradient_tracking" or "staleness" in options, (algorithm, sent)
            expected = [old - RATE * (old - target) * trains for old, trains in zip(expected, trained)]
        assert all(old == new for old, new, trains in zip(kept, values(module), trained) if not trains)
        assert worker.rounds == worker.stats.rounds == 4 * (phase + 1), (worker.rounds, phase)
    worker.await_finish()
    mean = [weight.item() for weight in worker.mean_model().values()]
    if "staleness" not in options:
        assert all(abs(found - wanted) < 1e-9 for found, wanted in zip(mean, expected)), (algorithm, mean, expected)
    worker.close()


def within_a_round():
    module = net()
    module[0].requires_grad_(False)
    worker = fast.Worker(module, "complete", deadline=60)
    worker.begin_round()
    module[0].requires_grad_(True)
    try:
        worker.rebind()
    except fast.ArgumentError as error:
        assert "a round has begun; call it between two rounds" in str(error), error
    else:
        raise AssertionError("it was not refused")


for algorithm, options in [("awc", {}), ("atc", {}), ("gradient_tracking", {}), ("awc", {"staleness": 2}),
                           ("awc", {"observer": fast.observe.Trace(tempfile.mkdtemp())})]:
    train(algorithm, **options)
if size == 1:
    within_a_round()
print(f"rank {rank} ended\n", end="", flush=True)
