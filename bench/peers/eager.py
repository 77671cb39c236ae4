"""Training steps of a model by PyTorch: what fast::cuda is to be compared with. main() is the program."""
import argparse
import json
import sys
import time

try:
    import torch
    import models
except ImportError as missing:
    print(f"skipped: {missing}; install python3-torch")
    sys.exit(77)


def as_graph(step):
    """The whole step as one CUDA graph, captured on a stream of its own after steps there."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    return graph.replay


def images_per_second(options, net, images, labels):
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)

    def step():
        optimizer.zero_grad(set_to_none=not options.graph)
        with torch.autocast(options.device, torch.bfloat16, enabled=options.precision == "bf16"):
            loss = torch.nn.functional.cross_entropy(net(images), labels)
        loss.backward()
        optimizer.step()

    def seconds(steps):
        if options.device == "cuda":
            torch.cuda.synchronize()
        begin = time.perf_counter()
        for _ in range(steps):
            step()
        if options.device == "cuda":
            torch.cuda.synchronize()
        return time.perf_counter() - begin

    seconds(min(10, options.steps))
    if options.graph:
        step = as_graph(step)
    return options.steps * options.batch / seconds(options.steps)


def main(name, shape, classes, layouts, steps=50, f32_layouts=None):
    """Of models.NAME on random images, in the memory layout in which it is faster. cuDNN is slow in some."""
    parser = argparse.ArgumentParser(description=sys.modules["__main__"].__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--precision", choices=["f32", "tf32", "bf16"], default="tf32")
    parser.add_argument("--steps", type=int, default=steps)
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda", help="cpu: only to see that it runs")
    parser.add_argument("--graph", action="store_true", help="the step as one CUDA graph")
    parser.add_argument("--json")
    options = parser.parse_args()
    if options.graph and options.device == "cpu":
        parser.error("--graph is for GPUs")
    if options.device == "cuda" and not torch.cuda.is_available():
        print("skipped: PyTorch finds no GPU")
        sys.exit(77)
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = options.precision != "f32"
    torch.backends.cudnn.benchmark = True
    try:
        net = getattr(models, name)().to(options.device)
    except ImportError as missing:
        print(f"skipped: {missing}; install it")
        sys.exit(77)
    images = torch.randn(options.batch, *shape, device=options.device)
    labels = torch.randint(0, classes, (options.batch,), device=options.device)
    rates = {}
    for layout in f32_layouts if f32_layouts and options.precision == "f32" else layouts:
        memory_format = getattr(torch, f"{layout}_format" if layout == "contiguous" else layout)
        rates[layout] = images_per_second(options, net.to(memory_format=memory_format),
                                          images.to(memory_format=memory_format), labels)
    layout = max(rates, key=rates.get)
    where = torch.cuda.get_device_name() if options.device == "cuda" else "the CPU"
    parameters = sum(p.numel() for p in net.parameters())
    print(f"{where}, PyTorch {torch.__version__}, {name} ({parameters:,} parameters), batch {options.batch}, "
          f"{options.precision}, {layout}{', graph' if options.graph else ''}: {rates[layout]:,.0f} images/s")
    if options.json:
        with open(options.json, "w") as file:
            json.dump({"model": name, "images_per_second": rates[layout], "batch": options.batch,
                       "precision": options.precision, "layout": layout, "graph": options.graph, "device": where}, file)
