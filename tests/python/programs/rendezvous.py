"""Prints the address at which torch.distributed is to meet; rank 0 alone asks for the hosts."""
import os

import fast_decentralized as fast
from fast_decentralized import loops

loops.set_rendezvous()
print(f"rank {fast.rank()} meets at {os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']}")
