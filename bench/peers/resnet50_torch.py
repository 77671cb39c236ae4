#!/usr/bin/env python3
"""ResNet-50 training steps a second by PyTorch in eager mode, channels last: what fast::cuda is to be compared with.

  bench/peers/resnet50_torch.py [--batch 128] [--precision f32|tf32|bf16] [--steps 50] [--json FILE]

Random images on the GPU, SGD with momentum 0.9. Needs torch and torchvision with CUDA; without a GPU it says so and ends
with status 77.
"""
import argparse
import json
import sys
import time

try:
    import torch
    import torchvision
except ImportError as missing:
    sys.exit(f"resnet50_torch: {missing}; install torch and torchvision")

parser = argparse.ArgumentParser()
parser.add_argument("--batch", type=int, default=128)
parser.add_argument("--precision", choices=["f32", "tf32", "bf16"], default="tf32")
parser.add_argument("--steps", type=int, default=50)
parser.add_argument("--json")
options = parser.parse_args()
if not torch.cuda.is_available():
    print("skipped: PyTorch finds no GPU")
    sys.exit(77)

torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = options.precision != "f32"
torch.backends.cudnn.benchmark = True
model = torchvision.models.resnet50().cuda().to(memory_format=torch.channels_last)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
images = torch.randn(options.batch, 3, 224, 224, device="cuda").to(memory_format=torch.channels_last)
labels = torch.randint(0, 1000, (options.batch,), device="cuda")


def step():
    optimizer.zero_grad(set_to_none=True)
    with torch.autocast("cuda", torch.bfloat16, enabled=options.precision == "bf16"):
        loss = torch.nn.functional.cross_entropy(model(images), labels)
    loss.backward()
    optimizer.step()


for _ in range(10):
    step()
torch.cuda.synchronize()
begin = time.perf_counter()
for _ in range(options.steps):
    step()
torch.cuda.synchronize()
rate = options.steps * options.batch / (time.perf_counter() - begin)
print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}, ResNet-50, batch {options.batch}, "
      f"{options.precision}: {rate:,.0f} images/s")
if options.json:
    with open(options.json, "w") as file:
        json.dump({"images_per_second": rate, "batch": options.batch, "precision": options.precision}, file)
