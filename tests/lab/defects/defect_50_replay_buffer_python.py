"""A Q-learning update with transitions drawn from a replay buffer."""

import numpy as np
import torch
from torch import nn
from torch.nn import functional

DEFECT = "the replay buffer is a Python list of tuples, from which each batch is put together"
CAUSE = (
    "host work on the main thread before each update's launches: 2,048 tuples are picked from a "
    "list and their arrays joined with np.stack, while the GPU has nothing to do (the copies to "
    "the GPU that follow are short)"
)
FIX = "keep the transitions in GPU tensors and index these with the drawn numbers"

BUFFER = 20_000
BATCH = 2048
STATE = 64
ACTIONS = 16
WIDTH = 2048


def network():
    return nn.Sequential(
        nn.Linear(STATE, WIDTH),
        nn.ReLU(),
        nn.Linear(WIDTH, WIDTH),
        nn.ReLU(),
        nn.Linear(WIDTH, ACTIONS),
    ).to("cuda")


def build(variant):
    online, target = network(), network()
    optimizer = torch.optim.SGD(online.parameters(), lr=1e-3, foreach=True)
    random = np.random.default_rng(0)
    states = random.standard_normal((BUFFER, STATE), dtype=np.float32)
    followers = random.standard_normal((BUFFER, STATE), dtype=np.float32)
    actions = random.integers(ACTIONS, size=BUFFER)
    rewards = random.standard_normal(BUFFER, dtype=np.float32)
    if variant == "defect":
        buffer = [
            (states[i].copy(), int(actions[i]), float(rewards[i]), followers[i].copy())
            for i in range(BUFFER)
        ]
    else:
        buffer = [torch.from_numpy(a).to("cuda") for a in (states, actions, rewards, followers)]

    def draw():
        chosen = random.integers(BUFFER, size=BATCH)
        if variant == "defect":
            columns = zip(*[buffer[i] for i in chosen.tolist()], strict=True)
            state, action, reward, follower = columns
            batch = (
                torch.from_numpy(np.stack(state)),
                torch.tensor(action),
                torch.tensor(reward),
                torch.from_numpy(np.stack(follower)),
            )
            return [column.to("cuda") for column in batch]
        index = torch.from_numpy(chosen).to("cuda")
        return [column[index] for column in buffer]

    def step():
        state, action, reward, follower = draw()
        optimizer.zero_grad(set_to_none=True)
        value = online(state).gather(1, action.view(BATCH, 1)).view(BATCH)
        with torch.no_grad():
            wanted = reward + 0.99 * target(follower).amax(1)
        loss = functional.smooth_l1_loss(value, wanted)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step
