"""Beam search with a recurrent language model."""

import torch
from torch.nn import functional

DEFECT = "the beams are chosen on the host, with Python lists"
CAUSE = (
    "host work for each token: the candidates are read with .tolist(), sorted in Python and sent "
    "back with torch.tensor; the GPU has nothing to do while Python sorts"
)
FIX = "choose the beams on the GPU, with topk over each sentence's candidates, and gather"

SENTENCES = 64
BEAMS = 4
CANDIDATES = 8
TOKENS = 8
WIDTH = 4096
VOCABULARY = 16384


def choose_on_host(scores, best, index):
    """Return the chosen tokens, the hypotheses that they go on from, and their scores."""
    tokens, parents, new_scores = [], [], []
    for sentence in range(SENTENCES):
        candidates = []
        for beam in range(sentence * BEAMS, (sentence + 1) * BEAMS):
            for gain, token in zip(best[beam], index[beam], strict=True):
                candidates.append((scores[beam] + gain, beam, token))
        candidates.sort(key=lambda candidate: candidate[0], reverse=True)
        for score, beam, token in candidates[:BEAMS]:
            new_scores.append(score)
            parents.append(beam)
            tokens.append(token)
    return tokens, parents, new_scores


def build(variant):
    make = {"device": "cuda", "dtype": torch.bfloat16}
    hypotheses = SENTENCES * BEAMS
    embedding = torch.randn(VOCABULARY, WIDTH, **make)
    recurrent = torch.randn(WIDTH, WIDTH, **make) * WIDTH**-0.5
    head = torch.randn(WIDTH, VOCABULARY, **make) * WIDTH**-0.5
    first = torch.randint(0, VOCABULARY, (hypotheses,), device="cuda")
    start = torch.randn(hypotheses, WIDTH, **make).tanh()
    offsets = torch.arange(SENTENCES, device="cuda").view(SENTENCES, 1) * BEAMS

    @torch.no_grad()
    def step():
        tokens, hidden = first, start
        if variant == "defect":
            scores = [0.0] * hypotheses
        else:
            scores = torch.zeros(SENTENCES, BEAMS, device="cuda")
        for _ in range(TOKENS):
            x = functional.embedding(tokens, embedding)
            hidden = torch.tanh(x + hidden @ recurrent)
            chances = functional.log_softmax((hidden @ head).float(), -1)
            best, index = chances.topk(CANDIDATES, -1)
            if variant == "defect":
                chosen, parents, scores = choose_on_host(scores, best.tolist(), index.tolist())
                tokens = torch.tensor(chosen, device="cuda")
                parents = torch.tensor(parents, device="cuda")
            else:
                total = (scores.view(hypotheses, 1) + best).view(SENTENCES, BEAMS * CANDIDATES)
                scores, place = total.topk(BEAMS, -1)
                tokens = index.view(SENTENCES, BEAMS * CANDIDATES).gather(1, place).view(-1)
                parents = (offsets + place // CANDIDATES).view(-1)
            hidden = hidden.index_select(0, parents)
        return hidden

    return step
