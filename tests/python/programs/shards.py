"""Arrays on several devices, as a user has placed them.   python3 shards.py   prints where the combined ones are"""
import fast_decentralized as fast
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

first, second, third = jax.devices()
halves = NamedSharding(Mesh(np.array([first, third]), ("half",)), PartitionSpec("half"))


def work():
    mine = float(fast.rank())
    params = {"x": jax.device_put(jnp.full(4, mine), halves), "y": jax.device_put(jnp.full(2, mine), second),
              "z": jnp.full(2, mine)}
    worker = fast.Worker(params, "complete", initial="as_is", deadline=60)
    combined = worker.combine(params)
    worker.await_finish()
    return combined, worker.mean_model()


for combined in fast.local.run(2, work)[0]:
    for name, array in combined.items():
        is_where_it_was = array.sharding == {"x": halves, "y": jax.sharding.SingleDeviceSharding(second)}.get(name)
        print(name, array.tolist(), sorted(device.id for device in array.devices()), is_where_it_was)
