"""Products of a backward pass, and buckets of gradients that are added up beside them."""

import torch

CHANGES = {"at_the_end": "all buckets after the last product"}
LAYERS, WIDTH, BATCH = 8, 1536, 1024


def build(change=None):
    main, adds = torch.cuda.Stream(), torch.cuda.Stream()
    x = torch.randn(BATCH, WIDTH, device="cuda")
    weights = [torch.randn(WIDTH, WIDTH, device="cuda") for _ in range(LAYERS)]
    gradients = [torch.empty(WIDTH, WIDTH, device="cuda") for _ in range(LAYERS)]
    sums = [torch.zeros(WIDTH, WIDTH, device="cuda") for _ in range(LAYERS)]
    flow = [torch.empty(BATCH, WIDTH, device="cuda") for _ in range(2)]

    def add(layer, ready):
        adds.wait_event(ready)
        with torch.cuda.stream(adds):
            for _ in range(2):  # as many as a ring of two has steps
                sums[layer].add_(gradients[layer], alpha=0.5)

    def body():
        for _ in range(2):
            ready = []
            for layer in range(LAYERS):
                with torch.cuda.stream(main):
                    torch.mm(x if layer == 0 else flow[layer % 2], weights[layer],
                             out=flow[1 - layer % 2])  # fmt: skip
                    torch.mm(flow[1 - layer % 2].T, x, out=gradients[layer])
                    ready.append(main.record_event())
                if change != "at_the_end":
                    add(layer, ready[layer])
            if change == "at_the_end":
                for layer in range(LAYERS):
                    add(layer, ready[layer])
            main.wait_stream(adds)

    return body
