"""An Inception block: four branches of convolutions in four streams, joined by a concatenation."""

import torch
from torch import nn

CHANGES = {"serial": "all branches in one stream"}
CHANNELS = 96


def conv(inputs, outputs, size):
    return nn.Sequential(nn.Conv2d(inputs, outputs, size, padding=size // 2), nn.ReLU())


def branches():
    part = CHANNELS // 4
    return [
        conv(CHANNELS, part, 1),
        nn.Sequential(conv(CHANNELS, 64, 1), conv(64, part, 3)),
        nn.Sequential(conv(CHANNELS, 48, 1), conv(48, part, 5)),
        nn.Sequential(nn.MaxPool2d(3, 1, 1), conv(CHANNELS, part, 1)),
    ]


def build(change=None):
    main = torch.cuda.Stream()
    streams = [torch.cuda.Stream() for _ in range(4)]
    if change == "serial":
        streams = streams[:1] * 4
    blocks = [[branch.cuda() for branch in branches()] for _ in range(4)]
    image = torch.randn(128, CHANNELS, 56, 56, device="cuda")

    def body():
        with torch.no_grad(), torch.cuda.stream(main):
            x = image
            for block in blocks:
                outputs = []
                for stream, branch in zip(streams, block, strict=True):
                    stream.wait_stream(main)
                    with torch.cuda.stream(stream):
                        outputs.append(branch(x))
                for stream in streams:
                    main.wait_stream(stream)
                x = torch.cat(outputs, 1)

    return body
