#!/usr/bin/env python3
"""The sum of a model's weights, and how many tensors they are; notes in the file (the version, the date) are left out.
  weights_sum.py FILE.safetensors"""
import hashlib
import json
import struct
import sys

data = open(sys.argv[1], "rb").read()
length, = struct.unpack("<Q", data[:8])
header = {name: each for name, each in json.loads(data[8:8 + length]).items() if name != "__metadata__"}
print(len(header), hashlib.sha256(json.dumps(header, sort_keys=True).encode() + data[8 + length:]).hexdigest())
