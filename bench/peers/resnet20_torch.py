#!/usr/bin/env python3
"""ResNet-20 training steps a second by PyTorch: what fast::cuda is to be compared with.

  bench/peers/resnet20_torch.py [--batch 128] [--precision f32|tf32|bf16] [--steps 200] [--graph] [--json FILE]

Random images on the GPU, SGD with momentum 0.9, in the layout (contiguous, channels last) that is faster. Needs torch with
CUDA; without it or a GPU it says so and ends with status 77.
"""
import eager

eager.main("resnet20", (3, 32, 32), 10, ["contiguous", "channels_last"], steps=200)
