"""Workers in a framework's loop, with plain PyTorch: different numbers of batches, and kinds of tensors.

    mpiexec -n 3 python3 loops.py
"""
import fast_decentralized as fast
import torch
from fast_decentralized import loops

EPOCHS = 3
rank, size = fast.rank(), fast.size()
STEPS = [[2 + (5 * one + 3 * epoch) % 7 for one in range(size)] for epoch in range(EPOCHS)]  # batches of each worker
assert size < 3 or any(len(set(of_all)) > 1 for of_all in STEPS), "all have as many batches"


def loop_of(module, topology, timeout_s=60, **options):
    return loops.Loop(module, topology, {"deadline": 60, "log": lambda *_: None, **options}, timeout_s)


def train(**options):
    """A mean after each epoch. Averages keep the mean, so that of the weights is that of the steps. Each worker makes as
    many rounds as the one with the most batches."""
    module = torch.nn.Linear(1, 1, bias=False).double()
    with torch.no_grad():
        module.weight.zero_()
    loop = loop_of(module, "ring", **options)
    for epoch in range(EPOCHS):
        for _ in range(STEPS[epoch][rank]):
            loop.begin_round()
            with torch.no_grad():
                module.weight += 1
            loop.end_round(0.1)
        with loop.mean():
            mean = module.weight.item()
        assert len(set(loops.gather(mean))) == 1
        if "staleness" not in options:
            expected = sum(sum(of_all) for of_all in STEPS[:epoch + 1]) / size
            assert abs(mean - expected) < 1e-9, f"{options}, epoch {epoch}: the mean is {mean}, {expected} is required"
            assert loop.worker.rounds == sum(max(of_all) for of_all in STEPS[:epoch + 1]), loop.worker.rounds
        loop.join("an epoch's end")
        loops.meet("an epoch's end")
    loop.finish()
    loop.close()


def mean_of_kinds():
    """Complex, transposed and replaced tensors."""
    module = torch.nn.Conv2d(8, 16, (1, 3)).to(memory_format=torch.channels_last)
    module.c = torch.nn.Parameter(torch.full((2, 3), complex(0, rank)).t())
    module.register_buffer("table", torch.zeros(3))
    module.register_buffer("empty", torch.zeros(0))
    values = [torch.randn(module.weight.shape, generator=torch.Generator().manual_seed(one)) for one in range(size)]
    with torch.no_grad():
        module.weight.copy_(values[rank])
    loop = loop_of(module, "complete", initial="as_is", algorithm="none")
    loop.begin_round()
    if rank == 0:
        module.table = torch.ones(5)  # of this worker alone
    loop.end_round(0.1)

    def require_mean():
        torch.testing.assert_close(module.weight.detach(), (sum(values) / size).to(memory_format=torch.channels_last))
        torch.testing.assert_close(module.c.detach(), torch.full((3, 2), complex(0, (size - 1) / 2)))
        assert module.table.tolist() == ([1.0] * 5 if rank == 0 else [0.0] * 3)

    with loop.mean():
        require_mean()
    assert module.weight.equal(values[rank]) and module.c[0, 0].item() == complex(0, rank)
    loop.finish()
    require_mean()
    loop.close()


def wait_in_vain():
    """The others come to another meeting."""
    loop = loop_of(torch.nn.Linear(1, 1), "ring", timeout_s=1)
    if rank == 0 and size > 1:
        try:
            loop.join("an epoch's end")
        except fast.DeadlineError as error:
            assert 'worker 0 is at "an epoch\'s end" and has waited 1 s for worker 1' in str(error), error
        else:
            raise AssertionError("nobody came, and the worker went on")
    loops.meet("the end")
    loop.finish()


for options in ({}, {"algorithm": "atc"}, {"algorithm": "gradient_tracking"}, {"staleness": 2}, {"staleness": "inf"}):
    train(**options)
mean_of_kinds()
wait_in_vain()
print(f"rank {rank} ended\n", end="", flush=True)
