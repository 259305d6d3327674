"""What ``timed.py`` runs: random programs, sets of kernels, and programs that settle a question."""

from __future__ import annotations

import random
from dataclasses import replace

from tbsched.hardware.spec import DeviceSpec
from tbsched.program.duration import Drawn
from tbsched.program.sequence import Event, Launch, RecordEvent, Sequence, Stream, WaitEvent

THREADS = (32, 64, 96, 128, 192, 256, 384, 512, 768, 1024)
REGISTERS = (16, 24, 32, 40, 64)
MOST_URGENT = -5
MS = 1e-3


def random_program(seed: int) -> Sequence:
    """2 to 40 launches in 1 to 12 streams; some programs with events, priorities, legacy work."""
    rng = random.Random(seed)
    streams = rng.randint(1, 12)
    urgent = rng.random() < 0.3
    priority = [rng.randint(MOST_URGENT, 0) if urgent else 0 for _ in range(streams)]
    events_share = rng.choice((0.0, 0.0, 0.2))
    legacy_share = rng.choice((0.0, 0.0, 0.0, 0.05))
    carveout = rng.choice((100, 100, None))
    program: list[Event] = []
    recorded = 0
    for number in range(rng.randint(2, 40)):
        stream = rng.randrange(streams)
        legacy = rng.random() < legacy_share
        kernel = random_kernel(rng, seed=1000 * seed + number, drawn=1 / 3)
        program.append(
            replace(
                kernel,
                carveout=carveout,
                stream="legacy" if legacy else stream,
                priority=0 if legacy else priority[stream],
            )
        )
        if rng.random() < events_share:
            program.append(RecordEvent(recorded, stream))
            recorded += 1
        if recorded and rng.random() < events_share:
            program.append(WaitEvent(rng.randrange(recorded), rng.randrange(streams)))
    return Sequence(program)


def random_kernel(rng: random.Random, seed: int = 0, drawn: float = 0.0) -> Launch:
    """A kernel of 1 to 600 blocks that run 0.2 to 5 ms, with a share of drawn durations."""
    mean = rng.uniform(0.2, 5.0) * MS
    return Launch(
        blocks=rng.choice((rng.randint(1, 40), rng.randint(1, 200), rng.randint(1, 600))),
        threads=rng.choice(THREADS),
        registers=rng.choice(REGISTERS),
        shared_memory=rng.choice((0, 0, 0, rng.randrange(0, 48 * 1024, 256))),
        duration=Drawn("uniform", mean, mean / 4, seed) if rng.random() < drawn else mean,
    )


def kernel_set(seed: int) -> tuple[Launch, ...]:
    """4 to 7 kernels, each in a stream of its own, of which about two fit the GPU at once."""
    rng = random.Random(seed)
    carveout = rng.choice((100, 100, None))
    kernels = []
    for _ in range(rng.randint(4, 7)):
        kernel = random_kernel(rng)
        kernels.append(
            replace(
                kernel,
                blocks=rng.randint(66, 264),
                threads=rng.choice((256, 512, 768, 1024)),
                carveout=carveout,
            )
        )
    return tuple(kernels)


def directed(spec: DeviceSpec) -> dict[str, Sequence]:
    """Programs by the question that they answer; names of launches are what tables show."""
    sms, queues = spec.sms, spec.hardware_queues
    others = range(1, min(2 * queues, 64) + 1)

    def one(name: str, stream: Stream, ms: float = 0.5, priority: int = 0) -> Launch:
        return Launch(
            1,
            32,
            16,
            stream=stream,
            priority=priority,
            duration=ms * MS,
            name=name,
        )

    def full(name: str, stream: int, ms: float = 1.0, priority: int = 0) -> Launch:
        """Takes every warp slot of the GPU."""
        return Launch(
            2 * sms, 1024, 32, stream=stream, priority=priority, duration=ms * MS, name=name
        )

    behind: list[Event] = [one("a", 0, 5.0), one("b", 0)]
    waits: list[Event] = [full("a", 0), RecordEvent(0, 0)]
    return {
        "do streams avoid the queue of stream 0, whose second launch waits": Sequence(
            [*behind, *(one(f"s{k}", k) for k in others)]
        ),
        "the same, the other streams being more urgent": Sequence(
            [*behind, *(one(f"s{k}", k, priority=-1) for k in others)]
        ),
        "the same with no queue empty: streams used in turn before, and unfinished": Sequence(
            [
                *(one(f"t{k}", k, 0.2) for k in (0, *others)),
                *behind,
                *(one(f"s{k}", k) for k in others),
            ]
        ),
        "do streams avoid the queue of stream 1, which waits for an event": Sequence(
            [
                one("a", 0, 5.0),
                RecordEvent(0, 0),
                WaitEvent(0, 1),
                one("b", 1),
                *(one(f"s{k}", k) for k in range(2, others[-1] + 1)),
            ]
        ),
        "does an event record hold up a queue": Sequence(
            [
                one("a", 0, 5.0),
                RecordEvent(0, 0),
                *(one(f"s{k}", k) for k in others),
            ]
        ),
        "how many priorities are told apart, least urgent issued first": Sequence(
            [full("a", 0), *(full(f"p{-k}", k + 1, priority=-k) for k in range(-MOST_URGENT + 1))]
        ),
        "a more urgent launch against what is left of a long one": Sequence(
            [
                Launch(6 * sms, 1024, 32, stream=0, duration=MS, name="a"),
                full("p1", 1, priority=-1),
            ]
        ),
        "order of launches that an event sets free, waits issued 3, 1, 2": Sequence(
            [*waits, *(WaitEvent(0, k) for k in (3, 1, 2)), *(full(f"s{k}", k) for k in (3, 1, 2))]
        ),
        "order of launches that an event sets free, launches issued 2, 3, 1": Sequence(
            [*waits, *(WaitEvent(0, k) for k in (1, 2, 3)), *(full(f"s{k}", k) for k in (2, 3, 1))]
        ),
        "order after a head-of-line wait: small ones behind one that does not fit": Sequence(
            [
                Launch(sms, 1024, 32, stream=0, duration=MS, name="a"),
                full("b", 1),
                one("c", 2),
                full("d", 3),
                one("e", 4),
            ]
        ),
        "a less urgent small launch behind a more urgent one that does not fit": Sequence(
            [
                Launch(sms, 1024, 32, stream=0, duration=MS, name="a"),
                full("b", 1, priority=-1),
                one("c", 2),
            ]
        ),
        "the legacy stream between two streams": Sequence(
            [one("a", 1, 2.0), one("l", "legacy", 2.0), one("b", 2, 2.0), one("c", 1, 2.0)]
        ),
        "does the legacy stream hold up a queue that it does not use": Sequence(
            [one("a", 1, 2.0), one("b", 2), one("l", "legacy"), one("c", 3), one("d", 1)]
        ),
        "how many grids are resident at once": Sequence(
            [one(f"s{k}", k, 5.0) for k in range(spec.resident_grids + 12)]
        ),
    }
