"""A DataLoader whose processes are forked within training.   mpiexec -n 2 python3 loader.py"""
import fast_decentralized as fast
import torch

STEPS = 8


class Rows(torch.utils.data.Dataset):
    """Each worker's rows have its number. The loader's processes may ask for it."""

    def __len__(self):
        return 4 * STEPS

    def __getitem__(self, place):
        assert torch.utils.data.get_worker_info() is not None
        return torch.full((1,), float(fast.rank()))


module = torch.nn.Linear(1, 1, bias=False)
worker = fast.Worker(module, "complete", algorithm="atc", deadline=60)
loader = torch.utils.data.DataLoader(Rows(), batch_size=4, num_workers=2, multiprocessing_context="fork")
for epoch in range(2):
    for batch in loader:
        with worker.round():
            assert batch.eq(fast.rank()).all() and len(batch) == 4
            with torch.no_grad():
                module.weight += batch.mean() - (fast.size() - 1) / 2 + 1
first = module.weight.item() - 2 * STEPS
worker.await_finish()
starts = [float(one) for one in fast.world().all_gather(str(first).encode())]
assert worker.rounds == 2 * STEPS and max(starts) - min(starts) < 1e-4, starts
print(f"rank {fast.rank()} ended\n", end="", flush=True)
