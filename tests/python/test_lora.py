"""Adapters (LoRA) over a base that does not train, by hand. scripts/python_integrations.sh runs the example with peft."""
import fast_decentralized as fast
import pytest

torch = pytest.importorskip("torch")
WORKERS, SIDE, RANK = 4, 12, 2


class Adapted(torch.nn.Module):
    """W x + B A x: W stays."""

    def __init__(self, seed, trains_a=True):
        super().__init__()
        random = torch.Generator().manual_seed(seed)
        self.w = torch.nn.Parameter(torch.randn(SIDE, SIDE, generator=random).double(), requires_grad=False)
        self.a = torch.nn.Parameter(torch.randn(RANK, SIDE, generator=random).double() / SIDE**0.5, requires_grad=trains_a)
        self.b = torch.nn.Parameter(torch.zeros(SIDE, RANK).double())

    def delta(self):
        return (self.b @ self.a).detach()

    def forward(self, x):
        return x @ self.w.T + x @ self.a.T @ self.b.T


def data(seed, worker):
    """Of the base's map and a change of it of low rank. Each worker sees its own part of the space more than others."""
    random = torch.Generator().manual_seed(100 * seed + 7)
    change = torch.randn(SIDE, 1, generator=random) @ torch.randn(1, SIDE, generator=random) / SIDE**0.5
    target = Adapted(seed).w.detach() + change.double()
    scale = torch.ones(SIDE).double()
    scale[worker::WORKERS] = 2
    x = torch.randn(64, SIDE, generator=torch.Generator().manual_seed(seed + 10 * worker)).double() * scale
    return x, x @ target.T


def loss_of(module, seed):
    with torch.no_grad():
        return sum((module(x) - y).pow(2).mean().item() for x, y in (data(seed, one) for one in range(WORKERS))) / WORKERS


def work(seed, topology, trains_a, options):
    module = Adapted(seed + (fast.rank() if trains_a else 0), trains_a)  # at the start, all get worker 0's base
    optimizer = torch.optim.Adam([one for one in module.parameters() if one.requires_grad], 0.02)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 300)
    x, y = data(seed, fast.rank())
    worker = fast.Worker(module, topology, deadline=60, **options)
    before = worker.stats
    for _ in range(300):
        with worker.round():
            optimizer.zero_grad()
            (module(x) - y).pow(2).mean().backward()
            optimizer.step()
            schedule.step()
    after = worker.stats
    own = module.delta()
    worker.await_finish()
    module.load_state_dict(worker.mean_model())
    bytes_of_a_round = (after.bytes_sent - before.bytes_sent) / max(1, after.messages_sent - before.messages_sent)
    return bytes_of_a_round, module.w.detach(), own, module.delta(), loss_of(module, seed)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_adapters_are_all_that_is_sent_and_train_as_by_an_all_reduce(seed):
    base = loss_of(Adapted(seed), seed)
    ours = fast.local.run(WORKERS, work, seed, "ring", True, {})
    central = fast.local.run(WORKERS, work, seed, "complete", True, {"algorithm": "allreduce"})
    for sent, kept, _, _, loss in ours:
        assert sent == 8 * 2 * RANK * SIDE
        assert kept.equal(Adapted(seed).w)
        assert loss < 0.9 * base and abs(loss - central[0][4]) < 0.005 * base, (base, loss, central[0][4])
    for sent, _, _, _, loss in fast.local.run(WORKERS, work, seed, "ring", False, {}):
        assert sent == 8 * RANK * SIDE and loss < 0.9 * base, (base, loss)


@pytest.mark.parametrize("trains_a", [True, False])
def test_the_mean_of_adapters_is_the_mean_of_their_products_only_where_a_is_frozen(trains_a):
    found = fast.local.run(WORKERS, work, 1, "ring", trains_a, {"algorithm": "none"})
    products = sum(own for _, _, own, _, _ in found) / WORKERS
    distance = (found[0][3] - products).norm() / products.norm()
    assert distance > 0.01 if trains_a else distance < 1e-12, distance
