#!/usr/bin/env python3
"""ResNet-50 training steps a second by PyTorch: what fast::cuda is to be compared with.

  bench/peers/resnet50_torch.py [--batch 128] [--precision f32|tf32|bf16] [--steps 50] [--graph] [--json FILE]

Random images on the GPU, SGD with momentum 0.9, channels last, but for f32. Needs torch and torchvision with CUDA; without
these or a GPU it says so and ends with status 77.
"""
import eager

eager.main("resnet50", (3, 224, 224), 1000, ["channels_last"], f32_layouts=["contiguous"])
