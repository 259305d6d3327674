"""A relay of stages across three PyTorch streams: each stage waits for the event of the stage before
it. The stages stand in for an instrument that integrates for a fixed time."""

import time

import torch
import turn

turn.take()


class Relay:
    def __init__(self, lanes=3):
        self.streams = [torch.cuda.Stream() for _ in range(lanes)]
        self.data = torch.zeros(1 << 20, device="cuda")
        torch.cuda.synchronize()

    def integrate(self, lane, cycles, after):
        s = self.streams[lane]
        done = torch.cuda.Event()
        with torch.cuda.stream(s):
            if after is not None:
                s.wait_event(after)
            torch.cuda._sleep(cycles)
            self.data.add_(1.0)
            done.record(s)
        return done

    def run(self, stages, cycles):
        ev = None
        for k in range(stages):
            ev = self.integrate(k % len(self.streams), cycles, ev)
        return ev


def main():
    relay = Relay()
    relay.run(3, 1000).synchronize()
    probe = 100_000_000
    t = time.perf_counter()
    relay.run(3, probe).synchronize()
    per = (time.perf_counter() - t) / 3
    stages = 48
    cycles = int(probe * 0.46 / per)
    print(f"{per * 1e3:.1f} ms for the probe stage, {stages} stages of {cycles} cycles", flush=True)
    last = relay.run(stages, cycles)
    last.synchronize()
    print("data[0] =", float(relay.data[0]), flush=True)


if __name__ == "__main__":
    main()
