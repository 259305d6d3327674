"""A speech synthesiser's length regulator: phonemes are stretched to frames and decoded."""

import torch
from torch.nn import functional

DEFECT = "torch.repeat_interleave is not told how many frames come out"
CAUSE = (
    "repeat_interleave without output_size reads the sum of the repeats (and whether any is "
    "negative) on the host: aten::item and cudaStreamSynchronize twice for each utterance"
)
FIX = "output_size=, the number of frames, which the host knows"

UTTERANCES = 20
PHONEMES = 512
WIDTH = 1024
HIDDEN = 3072


def build(variant):
    make = {"device": "cuda", "dtype": torch.bfloat16}
    phonemes = torch.randn(UTTERANCES, PHONEMES, WIDTH, **make)
    on_host = torch.randint(2, 11, (UTTERANCES, PHONEMES))
    frames = on_host.sum(1).tolist()
    durations = on_host.to("cuda")
    up = torch.randn(WIDTH, HIDDEN, **make) * WIDTH**-0.5
    down = torch.randn(HIDDEN, WIDTH, **make) * HIDDEN**-0.5

    @torch.no_grad()
    def step():
        decoded = []
        for number in range(UTTERANCES):
            size = None if variant == "defect" else frames[number]
            x = torch.repeat_interleave(
                phonemes[number], durations[number], dim=0, output_size=size
            )
            decoded.append(functional.gelu(x @ up) @ down)
        return torch.cat(decoded)

    return step
