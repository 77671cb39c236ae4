#!/usr/bin/env python3
"""Values and gradients of layers and losses in PyTorch, float64: golden_layers.json.

Run:  tests/data/layers_oracle.py     (needs python3-torch)

Each case has the layer's name and sizes, its parameters in the order of the library, the inputs
[samples][...], the gradients of the outputs, and what PyTorch finds: outputs, gradients of the
parameters and gradients of the inputs (null: tokens). Sequences are [step][feature]; PyTorch's
Conv1d has [feature][step].
"""
import json
import pathlib

import torch

torch.manual_seed(20)
torch.set_default_dtype(torch.float64)
F = torch.nn.functional


def flat(tensors):
    return [round(v, 12) for t in tensors for v in t.detach().reshape(-1).tolist()]


def case(name, sizes, module, x, forward, parameters):
    """`forward` maps inputs to outputs; `parameters` are in the library's order."""
    for parameter in parameters:
        torch.nn.init.normal_(parameter, std=0.7)
    tokens = not x.dtype.is_floating_point
    if not tokens:
        x.requires_grad_(True)
    y = forward(x)
    grads = torch.randn_like(y)
    (y * grads).sum().backward()
    return {"layer": name, "sizes": sizes, "count": x.shape[0], "parameters": flat(parameters),
            "inputs": flat([x.double()]), "grads": flat([grads]), "outputs": flat([y]),
            "parameter_grads": flat([p.grad for p in parameters]),
            "input_grads": None if tokens else flat([x.grad])}


def last(module):
    return lambda x: module(x)[0][:, -1]


def every(module):
    return lambda x: module(x)[0]


def gru_parameters(gru):
    return [gru.weight_ih_l0, gru.weight_hh_l0, gru.bias_ih_l0, gru.bias_hh_l0]


def cases():
    norm = torch.nn.LayerNorm(5, eps=1e-3)
    yield case("layer_norm", [5], norm, torch.randn(3, 4, 5), norm, [norm.weight, norm.bias])
    table = torch.nn.Embedding(6, 3)
    yield case("embedding", [6, 3], table, torch.randint(0, 6, (3, 5)), table, [table.weight])
    yield case("gelu", [], None, 2 * torch.randn(3, 7), F.gelu, [])
    yield case("average_pool", [3, 2, 1], None, torch.randn(3, 2, 5, 6),
               lambda x: F.avg_pool2d(x, 3, 2, 1), [])
    for form, name in ((last, "gru"), (every, "gru_every_step")):
        gru = torch.nn.GRU(3, 4, batch_first=True)
        yield case(name, [4], gru, torch.randn(2, 5, 3), form(gru), gru_parameters(gru))
    for stride, padding, bias in ((1, 0, True), (2, 2, False)):
        conv = torch.nn.Conv1d(2, 4, 3, stride, padding, bias=bias)
        parameters = [conv.weight, conv.bias] if bias else [conv.weight]
        yield case("conv1d", [4, 3, stride, padding, int(bias)], conv, torch.randn(3, 7, 2),
                   lambda x, c=conv: c(x.transpose(1, 2)).transpose(1, 2), parameters)
    dense = torch.nn.Linear(3, 4)
    yield case("dense", [4], dense, torch.randn(2, 5, 3), dense, [dense.weight, dense.bias])


def activations_and_attention():
    yield case("tanh", [], None, 2 * torch.randn(3, 7), torch.tanh, [])
    yield case("sigmoid", [], None, 2 * torch.randn(3, 7), torch.sigmoid, [])
    yield case("leaky_relu", [], None, 2 * torch.randn(3, 7), lambda x: F.leaky_relu(x, 0.2), [])
    yield case("softmax", [], None, 2 * torch.randn(3, 4, 5), lambda x: x.softmax(-1), [])
    for heads, causal in ((1, False), (2, False), (3, True)):
        layer = torch.nn.MultiheadAttention(6, heads, batch_first=True)
        mask = torch.ones(5, 5, dtype=torch.bool).triu(1) if causal else None
        yield case("attention", [heads, int(causal)], layer, torch.randn(2, 5, 6),
                   lambda x, a=layer, m=mask: a(x, x, x, attn_mask=m, need_weights=False)[0],
                   [layer.in_proj_weight, layer.in_proj_bias, layer.out_proj.weight, layer.out_proj.bias])


def losses():
    """The mean loss and its gradient, of outputs [4][3]."""
    targets = torch.randn(4, 3)
    shares = torch.rand(4, 3)
    for name, delta, target, function in (
            ("mse", 1.0, targets, F.mse_loss),
            ("huber", 0.5, targets, lambda y, t: F.huber_loss(y, t, delta=0.5)),
            ("binary_cross_entropy", 1.0, shares, F.binary_cross_entropy_with_logits)):
        outputs = (2 * torch.randn(4, 3)).requires_grad_(True)
        loss = function(outputs, target.float().double())
        loss.backward()
        yield {"loss": name, "delta": delta, "outputs": flat([outputs]),
               "targets": flat([target.float().double()]), "mean": loss.item(),
               "grads": flat([outputs.grad])}


result = {"layers": list(cases()), "losses": list(losses())}
result["layers"] += activations_and_attention()
path = pathlib.Path(__file__).parent / "golden_layers.json"
path.write_text(json.dumps(result) + "\n")
print(f"{path}: {len(result['layers'])} layers, {len(result['losses'])} losses")
