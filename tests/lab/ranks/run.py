"""Runs all programs of programs.py on two ranks, and records each with torch.profiler.

    python run.py OUT [SECONDS]

The parent starts two processes, which run all variants in order. If one fails or takes too long,
both are killed and started again behind it.
"""

import json
import os
import socket
import sys
import time
import traceback
from pathlib import Path

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

STEPS, WARMUP, MOST = 4, 3, 25.0  # MOST: seconds of a variant


def variants():
    import programs

    return [(program.__name__, bad) for program in programs.PROGRAMS for bad in (False, True)]


def child(rank, port, first, out, state):
    import programs

    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    cuda = torch.cuda.is_available()
    if cuda:
        torch.cuda.set_device(rank)
        dist.init_process_group(
            "nccl", rank=rank, world_size=2, device_id=torch.device("cuda", rank)
        )
    else:
        torch.set_num_threads(1)
        dist.init_process_group("gloo", rank=rank, world_size=2)
    activities = [torch.profiler.ProfilerActivity.CPU]
    if cuda:
        activities.append(torch.profiler.ProfilerActivity.CUDA)

    def sync():
        if cuda:
            torch.cuda.synchronize()
        dist.barrier()
        if cuda:
            torch.cuda.synchronize()

    sync()
    with torch.profiler.profile(activities=activities, with_stack=True):
        torch.ones(8, device=programs.device(rank)).sum().item()
        sync()
    every = variants()
    for number in range(first, len(every)):
        name, bad = every[number]
        state[rank] = number
        log = {"program": name, "bad": bad, "rank": rank}
        label = f"{name}-{'bad' if bad else 'good'}-rank{rank}"
        try:
            step = getattr(programs, name)(rank, bad)
            for each in range(WARMUP):
                step(each)
            sync()
            began = time.perf_counter()
            for each in range(STEPS):
                step(each)
            sync()
            log["step_ms"] = 1e3 * (time.perf_counter() - began) / STEPS
            with torch.profiler.profile(
                activities=activities,
                record_shapes=True,
                with_stack=True,
                schedule=torch.profiler.schedule(wait=0, warmup=1, active=STEPS, repeat=1),
            ) as profiler:
                for each in range(STEPS + 1):
                    step(each)
                    if each == STEPS and cuda:
                        torch.cuda.synchronize()
                    profiler.step()
            profiler.export_chrome_trace(str(out / f"{label}.json.gz"))
            del step, profiler
            sync()
            if cuda:
                torch.cuda.empty_cache()
            log["ok"] = True
        except BaseException:
            log["error"] = traceback.format_exc()
            (out / f"{label}.log.json").write_text(json.dumps(log))
            os._exit(1)
        (out / f"{label}.log.json").write_text(json.dumps(log))
    state[rank] = len(every)
    os._exit(0)


def main():
    out = Path(sys.argv[1])
    out.mkdir(parents=True, exist_ok=True)
    until = time.monotonic() + float(sys.argv[2] if len(sys.argv) > 2 else 150)
    sys.path.insert(0, str(Path(__file__).parent))
    os.chdir(Path(__file__).parent)
    context = mp.get_context("spawn")
    count, first = len(variants()), 0
    while first < count and time.monotonic() < until:
        state = context.Array("i", [first, first])
        with socket.socket() as sock:
            sock.bind(("127.0.0.1", 0))
            port = sock.getsockname()[1]
        children = [
            context.Process(target=child, args=(rank, port, first, out, state)) for rank in (0, 1)
        ]
        for each in children:
            each.start()
        seen, since = -1, time.monotonic() + 40  # starting takes longer
        while any(each.is_alive() for each in children):
            time.sleep(0.05)
            now = time.monotonic()
            if min(state) != seen:
                seen, since = min(state), max(since, now)
            dead = any(each.exitcode not in (None, 0) for each in children)
            if dead:
                time.sleep(0.5)  # the other may write its log
            if dead or now - since > MOST or now > until:
                print("killed at", every_name(min(state)), "dead" if dead else "time", flush=True)
                for each in children:
                    each.kill()
                    each.join()
                break
        for each in children:
            each.join()
        first = min(state) + 1
    print("done", first, "of", count, flush=True)


def every_name(number):
    every = variants()
    return every[number] if number < len(every) else "end"


if __name__ == "__main__":
    main()
