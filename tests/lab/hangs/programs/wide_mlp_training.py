"""Trains a wide MLP on random data; the loss is read once, after the last step."""

import time

import torch
import torch.nn as nn
import turn

turn.take()


def make_model(width):
    return (
        nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))
        .cuda()
        .bfloat16()
    )


def train(model, opt, x, y, steps):
    loss = None
    for _ in range(steps):
        opt.zero_grad(set_to_none=True)
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        opt.step()
    return loss


def main():
    torch.manual_seed(0)
    width, batch = 4096, 8192
    model = make_model(width)
    opt = torch.optim.SGD(model.parameters(), lr=1e-3)
    x = torch.randn(batch, width, device="cuda", dtype=torch.bfloat16)
    y = torch.randn(batch, width, device="cuda", dtype=torch.bfloat16)
    train(model, opt, x, y, 5)
    torch.cuda.synchronize()
    t = time.perf_counter()
    train(model, opt, x, y, 20)
    torch.cuda.synchronize()
    per_step = (time.perf_counter() - t) / 20
    steps = int(24.0 / per_step)
    print(f"{per_step * 1e3:.2f} ms a step, training {steps} steps", flush=True)
    loss = train(model, opt, x, y, steps)
    print("final loss", loss.item(), flush=True)


if __name__ == "__main__":
    main()
