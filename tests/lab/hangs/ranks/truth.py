"""What the programs of programs.py do, without PyTorch: known by how they are built.

The groups ``first`` and ``second`` both have the two ranks, so each is a communicator of its own.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Truth:
    """What a program does.

    Attributes:
        kind: as `tbsched hang` names it.
        words: which rank waits in what, and for what.
        environment: of the program.
        look_after: seconds between the mark "steady" of a slow program and the look at it.
        hang_after: seconds of `tbsched capture --hang-after`. Longer where one rank of a slow
            program waits long: its capture alone cannot tell that from a hang.
        own_process: whether the fixed variant needs processes of its own.
    """

    kind: str
    words: str
    environment: dict[str, str] = field(default_factory=dict)
    look_after: float = 0.0
    hang_after: float = 2.5
    own_process: bool = False


TRUTH = {
    "two_groups": Truth(
        "order_of_ranks",
        "One stream, two all-reduces of float32: rank 0 issues that of first and then that of "
        "second, rank 1 the other way round. Rank 0 is in that of first, rank 1 in that of second.",
    ),
    "file": Truth(
        "host",
        "Rank 0 is in an all-reduce, and would write a file after it. Rank 1 looks in Python for "
        "that file before it issues its all-reduce; nothing of rank 1 is on its GPU.",
    ),
    "late_once": Truth(
        "not_hanging",
        "Rank 1 comes 8 s late to one all-reduce. Then both go on: looked at 1.5 s after that.",
        look_after=1.5,
        hang_after=12.0,
    ),
    "persistent_smem": Truth(
        "room",
        "Rank 0: consume has one block of 200 KiB of shared memory on each SM and waits for a flag "
        "that is set behind the all-reduce. That all-reduce finds no room (shared memory). "
        "Rank 1 is in its all-reduce.",
    ),
    "two_types": Truth(
        "order_of_ranks",
        "As two_groups, but that of second is of bfloat16: other kernels. Rank 0 is in that of "
        "float32, rank 1 in that of bfloat16.",
    ),
    "late_each": Truth(
        "not_hanging",
        "Rank 1 works 1.2 s in Python before each all-reduce, and rank 0 waits in it.",
        look_after=4.0,
    ),
    "both_send": Truth(
        "order_of_ranks",
        "Both ranks send 256 MB to each other before they receive. Both are in their send.",
    ),
    "legacy_between": Truth(
        "legacy_stream",
        "Rank 0: consume of 8 blocks is in a blocking stream and waits for a flag that is set "
        "behind the all-reduce in another blocking stream. Between the two is an addition in the "
        "legacy stream, so neither starts. Rank 1 is in its all-reduce.",
    ),
    "other_kind": Truth(
        "order_of_ranks",
        "Rank 0 issues an all-reduce of 256 MB where rank 1 issues a broadcast from rank 0. "
        "Both are in theirs.",
    ),
    "long_kernel": Truth(
        "not_hanging",
        "Rank 0 computes in kernels of about 2.5 s each, two before each all-reduce. Rank 1 waits "
        "in the all-reduce.",
        look_after=4.0,
        hang_after=12.0,
    ),
    "skipped": Truth(
        "order_of_ranks",
        "Rank 0 issues an all-reduce of 256 MB, an all-gather of 8 KB and a send. Rank 1 skips the "
        "all-reduce. Rank 0 is in the all-reduce, rank 1 in the all-gather or in its receive.",
    ),
    "lock": Truth(
        "host",
        "Rank 0 is in an all-reduce. On rank 1 a thread holds a lock for ever that the main "
        "thread takes before the all-reduce; nothing of rank 1 is on its GPU.",
    ),
    "small_large": Truth(
        "order_of_ranks",
        "Two buckets, of 8 KB and of 256 MB, of one communicator. Rank 0 reduces the small one "
        "first, rank 1 the large one. Both are in their first all-reduce: they wait in other "
        "buffers (NCCL's protocols LL and Simple).",
    ),
    "one_queue": Truth(
        "queue",
        "Rank 0 has one hardware queue: consume of 8 blocks waits for a flag that is set behind "
        "the all-reduce; a second kernel stands behind consume in its stream, and the all-reduce, "
        "of another stream, behind that kernel in the queue. Rank 1 is in its all-reduce.",
        environment={"CUDA_DEVICE_MAX_CONNECTIONS": "1"},
        own_process=True,
    ),
    "micro_batches": Truth(
        "order_of_ranks",
        "Rank 0 sends four micro-batches of 256 MB and reduces. Rank 1 receives three and reduces. "
        "Rank 0 is in its fourth send, rank 1 in the all-reduce.",
    ),
    "large_reduces": Truth(
        "not_hanging",
        "Both ranks all-reduce 8 GiB again and again.",
        look_after=3.5,
    ),
    "a2a_vs_reduce": Truth(
        "order_of_ranks",
        "Rank 0 issues an all-to-all of first and then an all-reduce of second, rank 1 the other "
        "way round. Rank 0 is in the all-to-all, rank 1 in the all-reduce.",
    ),
    "first_use": Truth(
        "loading",
        "Rank 0 is in an all-reduce, and its host loads hypot at its first use, which waits for "
        "the all-reduce. Rank 1 issues its all-reduce when a file of rank 0 is there, which is "
        "written after hypot was launched.",
        own_process=True,
    ),
    "two_threads": Truth(
        "order_of_ranks",
        "Two threads of each rank reduce in a group each, in one stream. On rank 0 that of first "
        "comes first, on rank 1 that of second.",
    ),
    "queue_empty": Truth(
        "host",
        "Rank 0 is in the third all-reduce. On rank 1 the loader ended after two batches, and the "
        "main thread waits for the next one in queue.Queue.get.",
    ),
    "graphs": Truth(
        "order_of_ranks",
        "Two CUDA graphs with an all-reduce each, of first and of second. Rank 0 replays that of "
        "first before that of second, rank 1 the other way round, in one stream.",
    ),
    "persistent_threads": Truth(
        "room",
        "Both ranks: consume has two blocks of 1024 threads on each SM and waits for a flag that "
        "is set behind the all-reduce, which finds no room (threads).",
    ),
    "item_between": Truth(
        "order_of_ranks",
        "Rank 0 reads the sum of an all-reduce of float32 of first on the host before it issues "
        "one of bfloat16 of second. Rank 1 does that of second first. Each has issued one only.",
    ),
    "side_by_side": Truth(
        "not_hanging",
        "Two all-reduces of first and of second in two streams of their own, issued in other "
        "orders on the two ranks: there is room for both, so they end. Again and again.",
        look_after=3.0,
    ),
}
