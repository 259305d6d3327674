"""PyTorch: a decoder without an end: twelve layers for each token, and the host takes every token
to look up the next."""

import torch
from begin import begin

begin()
torch.manual_seed(0)
width, words = 8192, 32768
embeddings = torch.randn(words, width, device="cuda", dtype=torch.float16)
layers = [torch.randn(width, width, device="cuda", dtype=torch.float16) / 90 for _ in range(12)]
state = torch.zeros(width, device="cuda", dtype=torch.float16)
token, text, longest_run, run = 1, [], 0, 0
while len(text) < 10**9:
    state = embeddings[token] + 0.5 * state
    for layer in layers:
        state = torch.tanh(layer @ state)
    token = int((embeddings @ state).argmax().item())
    run = run + 1 if text and text[-1] == token else 1
    longest_run = max(longest_run, run)
    text.append(token)
    if len(text) == 1:
        print("first token", flush=True)
print("ended")
