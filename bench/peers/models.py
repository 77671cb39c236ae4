"""The library's models in PyTorch, layer by layer."""
import math

import torch

nn = torch.nn


def lenet():
    return nn.Sequential(nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 16, 5), nn.ReLU(),
                         nn.MaxPool2d(2), nn.Flatten(), nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(),
                         nn.Linear(84, 10))


class Lstm(nn.Module):
    """The output of the last step. The library's layer has one bias: PyTorch's second one stays 0."""

    def __init__(self, inputs, hidden):
        super().__init__()
        self.layer = nn.LSTM(inputs, hidden, batch_first=True)
        nn.init.zeros_(self.layer.bias_hh_l0)
        self.layer.bias_hh_l0.requires_grad_(False)

    def forward(self, x):
        return self.layer(x)[0][:, -1]


def lstm(hidden=64):
    """For images of one channel and 28 rows, which are the steps."""
    return nn.Sequential(nn.Flatten(1, 2), Lstm(28, hidden), nn.Linear(hidden, 10))


def convolution(before, after, kernel, stride=1):
    return nn.Sequential(nn.Conv2d(before, after, kernel, stride, kernel // 2, bias=False), nn.BatchNorm2d(after))


class Block(nn.Module):
    def __init__(self, before, after):
        super().__init__()
        stride = 1 if before == after else 2
        self.body = nn.Sequential(convolution(before, after, 3, stride), nn.ReLU(), convolution(after, after, 3))
        self.shortcut = nn.Identity() if before == after else convolution(before, after, 1, stride)

    def forward(self, x):
        return torch.relu(self.body(x) + self.shortcut(x))


def resnet20(channels=3):
    blocks = [Block(before, after) for before, after in
              [(16, 16)] * 3 + [(16, 32)] + [(32, 32)] * 2 + [(32, 64)] + [(64, 64)] * 2]
    return nn.Sequential(convolution(channels, 16, 3), nn.ReLU(), *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10))


def resnet50():
    import torchvision
    return torchvision.models.resnet50()


def initialize(net):
    """The library's random initial weights: normal with variance 2 / fan-in, 1 / fan-in in the last layer. Biases are 0."""
    layers = [layer for layer in net.modules() if isinstance(layer, (nn.Conv2d, nn.Linear, nn.LSTM))]
    for layer in layers:
        lstm_inputs = layer.input_size + layer.hidden_size if isinstance(layer, nn.LSTM) else None
        for name, parameter in layer.named_parameters():
            if "bias" in name:
                nn.init.zeros_(parameter)
            else:
                fan_in = lstm_inputs or parameter[0].numel()
                nn.init.normal_(parameter, 0, math.sqrt((1 if layer is layers[-1] else 2) / fan_in))
    return net
