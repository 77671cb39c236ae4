#!/usr/bin/env python3
"""LeNet-5 training steps a second by PyTorch: what fast::cuda is to be compared with.

  bench/peers/lenet_torch.py [--batch 128] [--precision f32|tf32|bf16] [--steps 200] [--graph] [--json FILE]

Random images on the GPU, SGD with momentum 0.9, in the layout (contiguous, channels last) that is faster. Needs torch with
CUDA; without it or a GPU it says so and ends with status 77.
"""
import eager

eager.main("lenet", (1, 28, 28), 10, ["contiguous", "channels_last"], steps=200)
