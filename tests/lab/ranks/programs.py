"""Twelve programs of two ranks, each without and with one known defect.

A program is a function of (rank, bad) that returns a function of one step. What the defect is, on
which rank, and words of which one must stand in the first cause, is in truth.py.
"""

import time

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn import functional

CUDA = torch.cuda.is_available()
DTYPE = torch.bfloat16 if CUDA else torch.float32
WIDTH = 4096 if CUDA else 64
ROWS = 8192 if CUDA else 32
LAYERS = 4


def device(rank):
    return torch.device("cuda", rank) if CUDA else torch.device("cpu")


def busy(seconds):
    """Python work of the host that calls nothing of CUDA."""
    until, total = time.perf_counter() + seconds, 0
    while time.perf_counter() < until:
        total += sum(range(50000))
    return total


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.up, self.down = nn.Linear(width, width), nn.Linear(width, width)

    def forward(self, x):
        return x + self.down(functional.gelu(self.up(x)))


def mlp(rank, width=None, layers=LAYERS):
    torch.manual_seed(0)
    return nn.Sequential(*(Block(width or WIDTH) for _ in range(layers))).to(device(rank), DTYPE)


def rows_of(rank, rows=None, width=None):
    torch.manual_seed(rank + 1)
    return torch.randn(rows or ROWS, width or WIDTH, device=device(rank), dtype=DTYPE)


# 1 -------------------------------------------------------------------------------------------
def decode_images(seconds):
    return busy(seconds)


def ddp_loader(rank, bad):
    """Data parallel with buckets; the data loader of rank 1 takes 30 ms."""
    from torch.nn.parallel import DistributedDataParallel

    model = DistributedDataParallel(
        mlp(rank), device_ids=[rank] if CUDA else None, bucket_cap_mb=25
    )
    optimizer = torch.optim.SGD(model.parameters(), 1e-3)
    x = rows_of(rank)

    def step(number):
        decode_images(30e-3 if bad and rank == 1 else 1e-4)
        loss = model(x).float().square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if number % 2:
            loss.item()

    return step


# 2 -------------------------------------------------------------------------------------------
def watch_activations(x):
    return [f"{value:.3f}" for value in x.flatten()[:3000].tolist()]


def fsdp2_item(rank, bad):
    """Fully sharded; rank 0 reads activations of each layer back to the host."""
    from torch.distributed.fsdp import fully_shard

    model = mlp(rank, layers=6)
    for block in model:
        fully_shard(block)
    fully_shard(model)
    optimizer = torch.optim.SGD(model.parameters(), 1e-3)
    x = rows_of(rank, 2 * ROWS)

    def step(number):
        value = x
        for block in model:
            value = block(value)
            if bad and rank == 0:
                watch_activations(value.detach())
        loss = value.float().square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()

    return step


def fsdp2_whole(rank, bad):
    """As fsdp2_item, but called through the root, so that prefetching works."""
    from torch.distributed.fsdp import fully_shard

    model = mlp(rank, layers=6)
    for block in model:
        fully_shard(block)
    fully_shard(model)
    if bad and rank == 0:
        for block in model:
            block.register_forward_hook(
                lambda _m, _i, out: watch_activations(out.detach()) and None
            )
    optimizer = torch.optim.SGD(model.parameters(), 1e-3)
    x = rows_of(rank, 2 * ROWS)

    def step(number):
        loss = model(x).float().square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()

    return step


# 3 -------------------------------------------------------------------------------------------
def compile_activation(number):
    """A kernel that nobody compiled before: a stall of its first use."""
    if not CUDA:
        busy(0.05)
        return functional.gelu
    code = f"template <typename T> T act_{number}(T x) {{ return x * T(1.0{number}) + T(0.5); }}"
    return torch.cuda.jiterator._create_jit_fn(code)


def tp_recompile(rank, bad):
    """Tensor parallel, an all-reduce per layer; rank 1 compiles a kernel in every step."""
    torch.manual_seed(rank)
    ups = [torch.randn(WIDTH, WIDTH // 2, device=device(rank), dtype=DTYPE) for _ in range(LAYERS)]
    downs = [
        torch.randn(WIDTH // 2, WIDTH, device=device(rank), dtype=DTYPE) for _ in range(LAYERS)
    ]
    x = rows_of(rank)
    count = [0]

    def step(number):
        value = x
        for layer in range(LAYERS):
            hidden = functional.gelu(value @ ups[layer])
            if bad and rank == 1 and layer == 1:
                count[0] += 1
                hidden = compile_activation(count[0])(hidden)
            value = hidden @ downs[layer]
            dist.all_reduce(value)
            value = functional.layer_norm(value, (WIDTH,))

    return step


# 4 -------------------------------------------------------------------------------------------
def pipeline_free(rank, bad):
    """Pipeline of two stages; rank 0 frees its cached memory after each micro-batch."""
    model = mlp(rank, layers=3)
    shape = (ROWS // 2, WIDTH)
    xs = [rows_of(rank, ROWS // 2) for _ in range(4)]

    def step(number):
        outs, grads = [], []
        for x in xs:
            if rank == 0:
                out = model(x)
                dist.send(out.detach(), 1)
                outs.append(out)
            else:
                got = torch.empty(shape, device=device(rank), dtype=DTYPE)
                dist.recv(got, 0)
                got.requires_grad_()
                out = model(got)
                out.float().square().mean().backward()
                grads.append(got.grad)
        for number, _ in enumerate(xs):
            if rank == 1:
                dist.send(grads[number], 0)
            else:
                grad = torch.empty(shape, device=device(rank), dtype=DTYPE)
                dist.recv(grad, 1)
                outs[number].backward(grad)
                outs[number] = None
                if bad and CUDA:
                    torch.cuda.empty_cache()
                elif bad:
                    busy(5e-3)
        for parameter in model.parameters():
            parameter.grad = None

    return step


# 5 -------------------------------------------------------------------------------------------
def moe_imbalance(rank, bad):
    """Mixture of experts, all-to-all; 85 % of the tokens go to the experts of rank 0."""
    torch.manual_seed(rank)
    w1 = torch.randn(WIDTH, 2 * WIDTH, device=device(rank), dtype=DTYPE) / 64
    w2 = torch.randn(2 * WIDTH, WIDTH, device=device(rank), dtype=DTYPE) / 64
    x = rows_of(rank)
    to_first = int(ROWS * (0.85 if bad else 0.5))
    sent = [to_first, ROWS - to_first]
    received = [sent[rank]] * 2

    def step(number):
        value = x
        for _ in range(3):
            got = torch.empty(sum(received), WIDTH, device=device(rank), dtype=DTYPE)
            dist.all_to_all_single(got, value, received, sent)
            out = functional.gelu(got @ w1) @ w2
            back = torch.empty_like(value)
            dist.all_to_all_single(back, out, sent, received)
            value = functional.layer_norm(back, (WIDTH,))

    return step


# 6 -------------------------------------------------------------------------------------------
def slow_check(x):
    """A kernel that one rank has beyond the others: double precision."""
    side = 4096 if CUDA else 32
    small = x.flatten()[: side * side].view(side, side).double()
    return small @ small.T


def ring_straggler(rank, bad):
    """Context parallel: keys and values go round; rank 1 has a kernel in double precision."""
    heads, length, size = (16, 8192, 128) if CUDA else (2, 64, 16)
    torch.manual_seed(rank)
    q, k, v = (
        torch.randn(1, heads, length, size, device=device(rank), dtype=DTYPE) for _ in range(3)
    )
    other = 1 - rank

    def step(number):
        for _ in range(2):
            kv = torch.stack([k, v])
            for turn in range(2):
                nxt = torch.empty_like(kv)
                works = []
                if turn == 0:
                    works = dist.batch_isend_irecv(
                        [dist.P2POp(dist.isend, kv, other), dist.P2POp(dist.irecv, nxt, other)]
                    )
                out = functional.scaled_dot_product_attention(q, kv[0], kv[1])
                for work in works:
                    work.wait()
                kv = nxt
            if bad and rank == 1:
                slow_check(out)

    return step


# 7 -------------------------------------------------------------------------------------------
def offload(kv):
    """Through pageable memory of the host and back."""
    return kv.cpu().to(kv.device)


def prefill_decode(rank, bad):
    """Rank 0 prefills and sends its cache to rank 1; it copies it through pageable memory."""
    model = mlp(rank, layers=2)
    x = rows_of(rank)
    token = rows_of(rank, 8)

    @torch.no_grad()
    def step(number):
        for _ in range(2):
            if rank == 0:
                kv = model(x)
                if bad:
                    kv = offload(kv)
                dist.send(kv, 1)
            else:
                kv = torch.empty(ROWS, WIDTH, device=device(rank), dtype=DTYPE)
                dist.recv(kv, 0)
                value = token
                for _ in range(4):
                    value = model(value)
                    value = functional.softmax(value @ kv.T, -1) @ kv

    return step


# 8 -------------------------------------------------------------------------------------------
def zero_after(rank, bad):
    """Gradients are reduce-scattered after the backward pass instead of beside it."""
    model = mlp(rank)
    x = rows_of(rank)
    parameters = [p for p in model.parameters() if p.dim() == 2]
    shards = [torch.empty(p.numel() // 2, device=device(rank), dtype=DTYPE) for p in parameters]
    works = []

    def reduce(number, p):
        flat = p.grad.flatten()
        works.append((dist.reduce_scatter_tensor(shards[number], flat, async_op=True), flat))

    if not bad:
        for number, p in enumerate(parameters):
            p.register_post_accumulate_grad_hook(lambda p, number=number: reduce(number, p))

    def step(_):
        model(x).float().square().mean().backward()
        if bad:
            for number, p in enumerate(parameters):
                reduce(number, p)
        for work, _flat in works:
            work.wait()
        works.clear()
        for number, p in enumerate(parameters):
            own = p.data.flatten()[rank * p.numel() // 2 : (rank + 1) * p.numel() // 2]
            own -= 1e-3 * shards[number]
            dist.all_gather_into_tensor(p.data.view(-1), own.clone())
        for p in model.parameters():
            p.grad = None

    return step


# 9 -------------------------------------------------------------------------------------------
def accumulate(rank, bad):
    """Four micro-batches; the gradients are reduced after each of them, without no_sync."""
    import contextlib

    from torch.nn.parallel import DistributedDataParallel

    model = DistributedDataParallel(
        mlp(rank), device_ids=[rank] if CUDA else None, bucket_cap_mb=25
    )
    optimizer = torch.optim.SGD(model.parameters(), 1e-3)
    xs = [rows_of(rank, ROWS // 4) for _ in range(4)]

    def step(_):
        for number, x in enumerate(xs):
            last = number == len(xs) - 1
            with contextlib.nullcontext() if bad or last else model.no_sync():
                model(x).float().square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()

    return step


# 10 ------------------------------------------------------------------------------------------
def reduce_metrics(metrics, bad):
    if not bad:
        dist.all_reduce(metrics)
        return
    for number in range(len(metrics)):
        dist.all_reduce(metrics[number])


def eval_flood(rank, bad):
    """Evaluation with a barrier; 300 metrics are all-reduced one by one."""
    model = mlp(rank)
    x = rows_of(rank)
    metrics = torch.zeros(300, device=device(rank))

    @torch.no_grad()
    def step(_):
        for _ in range(2):
            metrics.add_(model(x).float().mean())
        reduce_metrics(metrics, bad)
        dist.barrier(device_ids=[rank] if CUDA else None)

    return step


# 11 ------------------------------------------------------------------------------------------
def save_checkpoint():
    return busy(15e-3)


def eval_checkpoint(rank, bad):
    """Evaluation with a barrier; the host of rank 0 is late, as it writes something."""
    model = mlp(rank)
    x = rows_of(rank)

    @torch.no_grad()
    def step(_):
        metric = model(x).float().mean()
        if bad and rank == 0:
            save_checkpoint()
        dist.all_reduce(metric)
        dist.barrier(device_ids=[rank] if CUDA else None)

    return step


PROGRAMS = [
    ddp_loader, pipeline_free, moe_imbalance, zero_after, eval_flood,
    fsdp2_item, tp_recompile, ring_straggler, prefill_decode, accumulate,
    fsdp2_whole, eval_checkpoint,
]  # fmt: skip
