"""Two transformers in two streams, forked from and joined with the main stream in each step."""

import torch

CHANGES = {"serial": "both in one stream"}


def build(change=None):
    main = torch.cuda.Stream()
    streams = [torch.cuda.Stream() for _ in range(2)]
    if change == "serial":
        streams[1] = streams[0]
    layers = [
        torch.nn.TransformerEncoderLayer(1024, 16, 4096, dropout=0.0, batch_first=True)
        .cuda()
        .half()
        .train()  # in eval mode a layer is one fused call
        for _ in streams
    ]
    inputs = [torch.randn(64, 512, 1024, device="cuda", dtype=torch.float16) for _ in streams]
    total = torch.empty_like(inputs[0])

    def body():
        with torch.no_grad(), torch.cuda.stream(main):
            for _ in range(3):
                outputs = []
                for stream, layer, x in zip(streams, layers, inputs, strict=True):
                    stream.wait_stream(main)
                    with torch.cuda.stream(stream):
                        outputs.append(layer(x))
                for stream in streams:
                    main.wait_stream(stream)
                torch.add(outputs[0], outputs[1], out=total)

    return body
