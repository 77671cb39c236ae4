"""Runs a program whose arrays of zeros are tensors on a GPU.   python3 on_gpu.py grows.py"""
import runpy
import sys

import fast_decentralized as fast
import numpy as np
import torch

place = f"cuda:{fast.local_rank() % torch.cuda.device_count()}"
np.zeros = lambda shape: torch.zeros(shape, dtype=torch.float64, device=place)
runpy.run_path(sys.argv[1], run_name="__main__")
