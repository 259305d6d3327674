"""Three host threads, each with a stream of its own."""

import threading

import torch

CHANGES = {"one_thread": "one host thread issues to all three streams, in turn"}
STEPS = 12


def build(change=None):
    streams = [torch.cuda.Stream() for _ in range(3)]
    inputs = [torch.randn(n, 4096, device="cuda") for n in (512, 640, 768)]
    outputs = [torch.empty(len(a), len(a), device="cuda") for a in inputs]

    def step(k):
        with torch.cuda.stream(streams[k]):
            torch.mm(inputs[k], inputs[k].T, out=outputs[k])
            outputs[k].sigmoid_()

    def work(k):
        for _ in range(STEPS):
            step(k)

    def threads():
        started = [threading.Thread(target=work, args=(k,)) for k in range(3)]
        for thread in started:
            thread.start()
        for thread in started:
            thread.join()

    def one_thread():
        for _ in range(STEPS):
            for k in range(3):
                step(k)

    return one_thread if change == "one_thread" else threads
