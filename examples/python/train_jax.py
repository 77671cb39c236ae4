"""A dense network on Fashion-MNIST in JAX.   mpiexec -n 4 python examples/python/train_jax.py [EPOCHS] [SAMPLES]"""
import gzip, sys
import jax, jax.numpy as jnp, numpy as np
import fast_decentralized as fast

def images(part, count=None):
    def read(kind, header):
        with gzip.open(f"/usr/share/datasets/fashion-mnist/{part}-{kind}-ubyte.gz") as file:
            return np.frombuffer(file.read(), np.uint8, offset=header)
    return read("images-idx3", 16).reshape(-1, 784)[:count] / np.float32(255), read("labels-idx1", 8)[:count].astype(int)

def logits(params, x):
    for layer in params[:-1]:
        x = jax.nn.relu(x @ layer["w"] + layer["b"])
    return x @ params[-1]["w"] + params[-1]["b"]

@jax.jit
def train_step(params, x, y):
    loss = lambda p: -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(logits(p, x)), y[:, None], 1))
    return jax.tree_util.tree_map(lambda p, g: p - 0.1 * g, params, jax.grad(loss)(params))

epochs, samples = [int(n) for n in (sys.argv[1:] + ["2", "60000"][len(sys.argv) - 1:])]
keys, sides = jax.random.split(jax.random.PRNGKey(0), 3), [784, 128, 64, 10]
params = [{"w": jax.random.normal(key, (i, o)) * (2 / i) ** 0.5, "b": jnp.zeros(o)} for key, i, o in zip(keys, sides, sides[1:])]

worker = fast.Worker(params, topology="torus2d")                               # line 1
x, y = (part[worker.rank::worker.size] for part in images("train", samples))   # this worker's
np.random.seed(worker.rank)
for epoch in range(epochs):
    for batch in np.split(np.random.permutation(len(x) // 64 * 64), len(x) // 64):
        params = train_step(params, x[batch], y[batch])
        params = worker.combine(params)                                        # line 2

worker.await_finish()
if worker.rank == 0:
    x, y = images("t10k")
    accuracy = (logits(worker.mean_model(), x).argmax(1) == y).mean()
    print(f"{worker.size} workers: the mean model tells {100 * accuracy:.1f} % right")
