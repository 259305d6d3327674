"""Groups that are decided by outcomes of SMs: by no other proof, and by no set of leaving blocks
drawn without it."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import replace

import pytest

import tbsched as tb
from advice.together.reference import Case, History, random_history, shortest
from helpers import examples, gpu

pytest.importorskip("ortools")

FOREVER_NS = 1e9  # how long the blocks of a witness stay
HISTORIES = examples(48)  # random ones of each safe group

PART, REST = tb.split_sms("h200", min_sms=32)[0][0], tb.Partition((120, 121, 122, 123))
LAST_PART = tb.split_sms("h200", min_sms=16)[0][-1]
HALF_PART, HALF_REST = tb.split_sms("h200", min_sms=16)[0][0], tb.split_sms("h200", min_sms=16)[1]

# The outsider is the first launch. What comes between it and the last one:
SAFE = {
    "gaps in shared memory rule out what their number does not": (
        tb.Launch(734, 384, 16),
        tb.Launch(8, 128, 64, 19_517, carveout=0, cluster=8, priority=-1, cooperative=True),
    ),
    "no more clusters enter than wait": (
        tb.Launch(944, 96, 16, carveout=100, cluster=16),
        tb.Launch(250, 256, 16, carveout=100, priority=-2),
        tb.Launch(55, 64, 40, 216_525, carveout=100, priority=-2),
    ),
    "single blocks, before single blocks": (
        tb.Launch(116, 512, 40, carveout=100),
        tb.Launch(550, 96, 80, carveout=100),
        tb.Launch(526, 192, 16, carveout=100),
    ),
    "clusters of a TPC": (
        tb.Launch(128, 512, 48, cluster=8),
        tb.Launch(48, 384, 64, cluster=2),
        tb.Launch(112, 64, 40),
    ),
    "clusters of two TPCs, before larger ones": (
        tb.Launch(380, 64, 16, carveout=100, cluster=2),
        tb.Launch(200, 192, 96, 18_212, carveout=100, cluster=4),
        tb.Launch(144, 384, 40, carveout=100, cluster=8),
    ),
    "clusters, where gaps in shared memory matter": (
        tb.Launch(160, 384, 64, 40_540, carveout=100, cluster=4),
        tb.Launch(108, 320, 40, carveout=100, cluster=4),
        tb.Launch(100, 32, 128, 39_231, carveout=100, cluster=4, cooperative=True),
    ),
    "clusters of eight TPCs": (
        tb.Launch(64, 1024, 24, carveout=50, cluster=8),
        tb.Launch(96, 384, 64, cluster=8),
        tb.Launch(80, 320, 64, carveout=50, cluster=16),
    ),
    "clusters take TPCs in order": (
        tb.Launch(22, 32, 24, 219_735, cluster=2),
        tb.Launch(104, 640, 24, cluster=8),
        tb.Launch(20, 64, 168, carveout=50, cluster=2, partition=REST),
    ),
    "some wait on SMs that the last one does not take": (
        tb.Launch(65, 32, 128, partition=REST),
        tb.Launch(140, 768, 24, carveout=25, cluster=4, cooperative=True),
        tb.Launch(21, 320, 80, partition=PART),
    ),
    "for how many blocks gaps in shared memory have room is not known": (
        tb.Launch(653, 64, 16, partition=PART),
        tb.Launch(36, 320, 168, 16_535, cluster=4),
        tb.Launch(2, 192, 32, 188_928, cluster=2, partition=REST),
    ),
}
# Some blocks of the outsider, the first launch, wait, and take the places of others that leave.
WAITING_SAFE = {
    "clusters fit no GPC of few SMs": (
        tb.Launch(128, 64, 24, 198_932, carveout=0, cluster=16, priority=-1),
        tb.Launch(4, 192, 48, 30_257, carveout=25, cluster=4, priority=-2),
    ),
    "clusters, before a cooperative launch": (
        tb.Launch(128, 128, 48, 226_380, carveout=100, cluster=16),
        tb.Launch(600, 128, 48, carveout=100, cluster=4, cooperative=True),
    ),
    "single blocks, where gaps in shared memory matter": (
        tb.Launch(1504, 192, 32, 18_957, carveout=100),
        tb.Launch(1, 32, 24, carveout=100, priority=-2),
    ),
    "it holds the SMs of its partition": (
        tb.Launch(17, 320, 48, partition=REST),
        tb.Launch(44, 768, 48, carveout=0, cluster=4),
    ),
    "most shared memory is in one gap": (
        tb.Launch(688, 192, 48, carveout=100, cluster=16),
        tb.Launch(104, 256, 16, 145_195, carveout=100, cluster=8, priority=-1, cooperative=True),
    ),
    "gaps in shared memory are whole blocks": (
        tb.Launch(1418, 96, 24, 21_954),
        tb.Launch(2, 640, 16, priority=-1, partition=tb.split_sms("h200", min_sms=16)[0][0]),
    ),
    "clusters enter whole": (
        tb.Launch(944, 32, 64, cluster=16),
        tb.Launch(130, 768, 48, carveout=100, priority=-2),
    ),
}
WAITING_UNSAFE = {
    "clusters take what was left of a GPC": (
        tb.Launch(280, 768, 24, 39_489, carveout=100, cluster=8, priority=-1),
        tb.Launch(17, 768, 40, cooperative=True),
    ),
    "clusters of which several blocks are on an SM": (
        tb.Launch(376, 640, 32, 29_031, carveout=100, cluster=4),
        tb.Launch(50, 64, 168, 7_527, carveout=100, priority=-1),
    ),
    "those that entered leave in turn": (
        tb.Launch(1208, 192, 24, 14_101, cluster=2),
        tb.Launch(1, 192, 32, partition=REST, cooperative=True),
    ),
    "clusters enter on both SMs of a TPC": (
        tb.Launch(1052, 96, 64, 32_125, carveout=100, cluster=2),
        tb.Launch(32, 512, 32, cluster=16, cooperative=True),
    ),
    "one cluster, where too few blocks leave on a TPC": (
        tb.Launch(252, 192, 128, cluster=4),
        tb.Launch(472, 256, 16, cluster=8, cooperative=True),
    ),
}
UNSAFE = {
    "clusters of a TPC": (
        tb.Launch(490, 64, 64, carveout=100, cluster=2),
        tb.Launch(560, 32, 80, carveout=100, cluster=2),
        tb.Launch(4, 1024, 24, carveout=100, cluster=2),
    ),
    "clusters, where gaps in shared memory matter": (
        tb.Launch(272, 128, 32, carveout=100, cluster=8),
        tb.Launch(40, 384, 40, 80_807, carveout=100, cluster=8),
        tb.Launch(224, 640, 32, carveout=100, cluster=8),
    ),
    "clusters of which several blocks are on an SM": (
        tb.Launch(28, 256, 168, 16_645),
        tb.Launch(48, 768, 48, 11_730, cluster=4),
        tb.Launch(336, 192, 32, carveout=100, cluster=16, cooperative=True),
    ),
    "clusters take TPCs in order": (
        tb.Launch(107, 640, 40, carveout=100, priority=-1),
        tb.Launch(464, 96, 64, cluster=8),
        tb.Launch(32, 192, 128, priority=-2),
    ),
}


@pytest.mark.parametrize("launches", (SAFE | WAITING_SAFE).values(), ids=SAFE | WAITING_SAFE)
def test_group_that_is_safe_whatever_leaves(launches: tuple[tb.Launch, ...]) -> None:
    group = range(1, len(launches))
    check_is_safe(launches, group, tb.device("h200"))


def check_is_safe(
    launches: tuple[tb.Launch, ...], group: Iterable[int], spec: tb.DeviceSpec
) -> None:
    assert tb.coresident(launches, spec, groups=[group], fixes=False).safe is True
    rng = random.Random(0)
    for _ in range(HISTORIES):
        history, strands = random_history(Case(spec, spec.policy, launches, frozenset(group)), rng)
        assert not strands, history.steps


# The outsiders are the first two launches.
TWO_OUTSIDERS = {
    "one comes first": (
        tb.Launch(12, 384, 64, 26_968, carveout=25, partition=HALF_PART),
        tb.Launch(124, 1024, 40, carveout=25, cluster=4, priority=-1),
        tb.Launch(14, 96, 80, carveout=0, priority=-2, partition=HALF_REST),
    ),
    "who is held up might as well come later": (
        tb.Launch(64, 384, 48, carveout=100, cluster=8),
        tb.Launch(134, 320, 32, 120_158, carveout=100, cluster=2),
        tb.Launch(48, 512, 64, carveout=100, cluster=16, cooperative=True),
    ),
    "gaps in shared memory are looked at while clusters wait": (
        tb.Launch(68, 64, 48, 71_451, carveout=0, cluster=4),
        tb.Launch(48, 128, 16, carveout=25, cluster=16),
        tb.Launch(3, 768, 48, 49_773, carveout=25, cooperative=True, partition=LAST_PART),
    ),
    "a cluster that waits enters whole, and once": (
        tb.Launch(16, 1024, 32, 8_726, carveout=50, cluster=16),
        tb.Launch(63, 384, 64, 220_929, carveout=50, priority=-1),
        tb.Launch(69, 384, 24, 117_238, carveout=25, priority=-1),
    ),
    "clusters that wait enter no GPC in which too few TPCs have room": (
        tb.Launch(192, 192, 48, 16_961, carveout=25, cluster=16),
        tb.Launch(376, 384, 32, 21_603),
        tb.Launch(1, 512, 64, 13_244, cooperative=True),
    ),
    "of clusters that come and wait one block each enters an SM": (
        tb.Launch(480, 32, 96, cluster=16),
        tb.Launch(33, 512, 16, priority=-2),
        tb.Launch(68, 768, 48, cluster=4, priority=-1),
    ),
}
# On a GPU on which the solver has less to do.
FEW_SMS = gpu(24, "h200", gpcs=(tuple(range(6)), tuple(range(6, 12))))
TWO_OUTSIDERS_ON_FEW_SMS = {
    "blocks of one warp wait, and an SM has many states": (
        tb.Launch(74, 32, 128, carveout=100),
        tb.Launch(26, 32, 80, 138_043, carveout=100, cluster=2),
        tb.Launch(5, 640, 16, 41_290, carveout=100, priority=-1),
    ),
    "clusters of one warp wait": (
        tb.Launch(116, 32, 64, carveout=100, cluster=4),
        tb.Launch(80, 32, 96, carveout=100, cluster=4),
        tb.Launch(72, 64, 128, carveout=100, cooperative=True),
    ),
}
TWO_OUTSIDERS_UNSAFE = {
    "both leave in part": (
        tb.Launch(180, 640, 24, carveout=100),
        tb.Launch(416, 128, 32, carveout=100, cluster=8),
        tb.Launch(568, 64, 16, carveout=100, cluster=4),
    ),
    "one waits and enters where the other one leaves": (
        tb.Launch(1275, 96, 32, carveout=50, priority=-2),
        tb.Launch(530, 192, 16, carveout=25),
        tb.Launch(32, 96, 24, carveout=50, cluster=16, priority=-1),
    ),
}


@pytest.mark.parametrize("launches", TWO_OUTSIDERS.values(), ids=TWO_OUTSIDERS)
def test_group_that_is_safe_whatever_leaves_of_two(launches: tuple[tb.Launch, ...]) -> None:
    check_is_safe(launches, [2], tb.device("h200"))


@pytest.mark.parametrize(
    "launches", TWO_OUTSIDERS_ON_FEW_SMS.values(), ids=TWO_OUTSIDERS_ON_FEW_SMS
)
def test_group_that_is_safe_on_few_sms_whatever_leaves_of_two(
    launches: tuple[tb.Launch, ...],
) -> None:
    check_is_safe(launches, [2], FEW_SMS)


# What a proof that knew more once decided; with how many outsiders, and whether they are safe.
NOT_KNOWN = {
    "TPCs like idle ones, before single blocks": (1, True),
    "a cluster enters also where there is room already": (1, False),
    "for how many blocks gaps in shared memory have room is not known": (2, True),
}
NOT_KNOWN_LAUNCHES = {
    "for how many blocks gaps in shared memory have room is not known": (
        tb.Launch(84, 384, 80, 37_328, carveout=100, cluster=4),
        tb.Launch(1554, 64, 48, carveout=100),
        tb.Launch(288, 64, 40, cluster=4, cooperative=True),
    ),
    "TPCs like idle ones, before single blocks": (
        tb.Launch(237, 96, 80, carveout=100),
        tb.Launch(256, 192, 24, 48_460, carveout=100, cluster=8, priority=-1),
        tb.Launch(171, 768, 24, 17_583, carveout=100, priority=-1),
    ),
    "a cluster enters also where there is room already": (
        tb.Launch(128, 256, 168, carveout=100, cluster=16, priority=-1),
        tb.Launch(75, 384, 16, carveout=100, priority=-2),
        tb.Launch(192, 512, 16, carveout=100, cluster=16, priority=-2),
    ),
}


@pytest.mark.parametrize("name", NOT_KNOWN)
def test_group_that_is_not_known_has_no_wrong_answer(name: str) -> None:
    outsiders, safe = NOT_KNOWN[name]
    launches = NOT_KNOWN_LAUNCHES[name]
    group = range(outsiders, len(launches))
    found = tb.coresident(launches, "h200", groups=[group], fixes=False, seconds=10)
    assert found.safe in (safe, None)


@pytest.mark.parametrize("launches", TWO_OUTSIDERS_UNSAFE.values(), ids=TWO_OUTSIDERS_UNSAFE)
def test_two_outsiders_strand_others(launches: tuple[tb.Launch, ...]) -> None:
    found = tb.coresident(launches, "h200", groups=[[2]], fixes=False)
    assert (found.safe, found.stranded) == (False, 2)
    assert found.waiting == never_starting(found, "h200") > 0


def never_starting(found: tb.Coresidency, device: str) -> int:
    """How many blocks of the stranded launch, as its witness plays."""
    assert found.witness is not None
    trace = tb.predict(
        found.witness, device, initial_state=found.state, issue_times=found.issue_times
    )
    stranded = trace[found.order.index(found.stranded)]
    assert stranded.start_ns is not None
    return int((stranded.start_ns >= FOREVER_NS).sum())


@pytest.mark.parametrize("launches", WAITING_UNSAFE.values(), ids=WAITING_UNSAFE)
def test_blocks_that_wait_and_enter_strand_others(launches: tuple[tb.Launch, ...]) -> None:
    found = tb.coresident(launches, "h200", groups=[[1]], fixes=False)
    assert (found.safe, found.stranded) == (False, 1)
    assert found.waiting == never_starting(found, "h200") > 0


@pytest.mark.parametrize("launches", UNSAFE.values(), ids=UNSAFE)
def test_sets_of_blocks_whose_leaving_strands_others_are_found(
    launches: tuple[tb.Launch, ...],
) -> None:
    found = tb.coresident(launches, "h200", groups=[[1, 2]], fixes=False)
    assert found.safe is False
    assert found.issue_times is not None  # the outsider leaves in part
    assert found.witness is not None
    trace = tb.predict(
        found.witness, "h200", initial_state=found.state, issue_times=found.issue_times
    )
    last = trace[len(trace) - 1]
    assert last.start_ns is not None
    assert ((last.smid < 0) | (last.start_ns > 1e9)).any()


def test_clusters_that_wait_leave_gaps_on_an_sm_that_was_idle() -> None:
    """SM 0 is idle when the clusters come. They enter, some leave, and no gap is large enough."""
    launches = [
        tb.Launch(66, 1024, 64, carveout=100, partition=tb.Partition(tuple(range(1, 132, 2)))),
        tb.Launch(12, 480, 16, 37 * 1024, carveout=100, cluster=2),
        tb.Launch(1, 32, 16, 61 * 1024, carveout=100, priority=-1, partition=tb.Partition((0,))),
    ]
    assert tb.coresident(launches, "h200", groups=[[2]], fixes=False).safe is not True


def test_looking_at_places_that_are_known_takes_effort_too() -> None:
    """Ten thousand million places, most of which look the same. It once took minutes."""
    launches = [
        tb.Launch(38, 128, 168, carveout=100, cluster=2),
        tb.Launch(168, 64, 24, 13_050, carveout=100, cluster=8, cooperative=True),
        tb.Launch(24, 768, 48, 45_982, carveout=100, cluster=8),
        tb.Launch(32, 768, 32, 30_849, carveout=100, cluster=8),
        tb.Launch(28, 192, 128, 23_276, carveout=100, cluster=4),
        tb.Launch(432, 32, 128, carveout=100, cluster=16),
    ]
    found = tb.coresident(launches, "h200", groups=[[0, 1, 3, 4, 5]], fixes=False)
    assert found.safe is False
    assert found.waiting > 0


ONE_GPC = gpu(8, "h200", gpcs=((0, 1, 2),))


def test_order_that_the_program_rules_out_is_no_witness() -> None:
    """Launch 2 would wait behind the outsider; but launch 1 comes before it."""
    launches = [
        tb.Launch(2, 512, 32, 13_640, carveout=100),
        tb.Launch(4, 32, 64, 22_597, carveout=10, cluster=2),
        tb.Launch(14, 64, 32, 17_541, carveout=100, cluster=2),
    ]
    after = [(0, 1), (0, 2), (1, 2)]
    found = tb.coresident(launches, ONE_GPC, groups=[[1, 2]], after=after, fixes=False)
    assert found.safe is True


SMALL = gpu(4, "h200", gpcs=((0, 1),))
BOTH = tb.Partition((0, 1))
ORDER = [(0, 2), (1, 2), (2, 3)]
OTHER_HARDWARE = {
    "an SM in use may have more room than an idle one": (
        {"explicit_carveout_is_upper_bound": False},
        [
            tb.Launch(3, 128, 16, 1000, carveout=100),
            tb.Launch(1, 128, 16, 1000, carveout=100),
            tb.Launch(2, 64, 16, 3000, cluster=2, carveout=0),
            tb.Launch(4, 1024, 16, 60_000, carveout=100),
        ],
    ),
    "clusters do not seek idle SMs": (
        {"clusters_seek_idle_sms": False},
        [
            tb.Launch(2, 32, 16, 60_000, carveout=100, partition=BOTH),
            tb.Launch(2, 960, 16, 0, carveout=100, partition=BOTH),
            tb.Launch(2, 160, 16, 12_000, cluster=2, carveout=100),
            tb.Launch(4, 256, 16, 160_000, carveout=100),
        ],
    ),
}


@pytest.mark.parametrize(("mechanisms", "launches"), OTHER_HARDWARE.values(), ids=OTHER_HARDWARE)
def test_clusters_whose_places_have_another_order(
    mechanisms: dict[str, bool], launches: list[tb.Launch]
) -> None:
    """Launch 1 leaves before launch 2 comes, and launch 3 is stranded."""
    spec = replace(SMALL, mechanisms=replace(SMALL.mechanisms, **mechanisms), provenance={})
    found = tb.coresident(launches, spec, groups=[[0, 2, 3]], after=ORDER, fixes=False)
    assert (found.safe, found.stranded) == (False, 3)


def test_launch_of_more_blocks_than_are_counted() -> None:
    sms = 1100
    gpcs = tuple(tuple(range(k, k + 10)) for k in range(0, sms // 2, 10))
    launches = [
        tb.Launch(1, 32, 16, 1000, carveout=100),
        tb.Launch(33_000, 32, 16),
        tb.Launch(1, 32, 16, 180_000, carveout=100, partition=tb.Partition((0,))),
    ]
    found = tb.coresident(
        launches, gpu(sms, "h200", gpcs=gpcs), groups=[[1, 2]], after=[(0, 1), (1, 2)], fixes=False
    )
    assert found.safe is False


ONE_SM, TWO_SMS = tb.Partition((0,)), tb.Partition((0, 1))
LEAVING_WHILE_OTHERS_WAIT = {
    "one after the other, and others enter in between": (
        "h200",
        tb.Launch(7, 64, 128, 75_000, partition=TWO_SMS),
        tb.Launch(3, 96, 128, priority=-1, partition=tb.Partition((1,))),
    ),
    "some of those that had waited": (
        "rtx3090",
        tb.Launch(2, 64, 255, 60_000, carveout=50, partition=ONE_SM),
        tb.Launch(6, 64, 32, 20_000, partition=ONE_SM),
        tb.Launch(3, 192, 64, carveout=0, priority=-1, partition=ONE_SM),
    ),
}


@pytest.mark.parametrize(
    ("device", "launches"),
    [(device, launches) for device, *launches in LEAVING_WHILE_OTHERS_WAIT.values()],
    ids=LEAVING_WHILE_OTHERS_WAIT,
)
def test_witness_plays_as_the_search_had_it(device: str, launches: list[tb.Launch]) -> None:
    last = len(launches) - 1
    found = tb.coresident(launches, device, groups=[[last]], fixes=False)
    assert (found.safe, found.stranded) == (False, last)
    assert found.waiting == never_starting(found, device) > 0


def test_sm_that_is_taken_as_it_is_left_stays_configured() -> None:
    """A block of the second launch may wait, and enter where one of the first left."""
    part = tb.split_sms("h200", min_sms=8)[0][0]
    first = tb.Launch(8, 1024, 40, carveout=60, partition=part)
    waits = tb.Launch(1, 1024, 40, 51_200, carveout=90, partition=part)
    last = tb.Launch(8, 32, 32, 118_784, priority=-1, partition=part)
    race = tb.Sequence([first, waits, tb.Release(0), last])
    assert all((seen.trace[2].final_smid < 0).any() for seen in tb.outcomes(race, "h200", races=5))
    found = tb.coresident([first, waits, last], "h200", groups=[[2]], fixes=False)
    assert found.safe is not True


def test_clusters_enter_on_both_sms_of_a_tpc_though_the_next_launch_uses_one() -> None:
    """Two blocks of the outsider on SM 0 leave, and launch 2 sets a small configuration there."""
    spec = gpu(2, "h200", gpcs=((0,),))
    launches = (
        tb.Launch(1, 160, 160, carveout=100, partition=tb.Partition((1,))),
        tb.Launch(6, 96, 16, 100 * 1024, carveout=100, cluster=2),  # one cluster waits
        tb.Launch(1, 384, 88, priority=-1, partition=ONE_SM),
        tb.Launch(2, 704, 16, carveout=100, cluster=2, priority=-1),
        tb.Launch(1, 32, 120, carveout=100, priority=-1),
    )
    after = ((0, 1), (0, 2), (0, 3), (0, 4), (2, 3))
    case = Case(spec, spec.policy, launches, frozenset({0, 4}), after)
    history = History(case, spec.initial_states(spec.policy)[0])
    history = history.with_arrival(0).with_arrival(1)
    history = history.with_leaving(1, (0, 1), history.started()[1])
    history = history.with_leaving(1, (2, 4), history.started()[1])
    history = history.with_arrival(2).with_arrival(3).with_arrival(4)
    assert history.strands(history.started())
    found = tb.coresident(launches, spec, groups=[[0, 4]], after=after, fixes=False)
    assert found.safe is not True


def test_clusters_came_to_an_sm_on_which_they_find_no_room_any_more() -> None:
    """They leave SMs 2 and 3, and the processing block whose turn it is then is full."""
    spec = gpu(6, "h200", gpcs=((0, 1),), sm_preference=(0, 1, 4, 5, 2, 3))
    gpc = tb.Partition((0, 1, 2, 3))
    launches = (
        tb.Launch(28, 32, 240, carveout=100, partition=gpc),
        tb.Launch(1, 32, 16, carveout=100, partition=tb.Partition((4,))),
        tb.Launch(8, 32, 240, 50 * 1024, carveout=100, cluster=4),  # one cluster waits
        tb.Launch(1, 32, 16, 100 * 1024, carveout=100, priority=-1, partition=gpc),
        tb.Launch(2, 32, 16, 150 * 1024, carveout=100, priority=-1, partition=tb.Partition((2, 3))),
    )
    after = ((0, 1), (1, 2), (0, 2), (0, 3), (3, 4))
    case = Case(spec, spec.policy, launches, frozenset({0, 3, 4}), after)
    history = History(case, spec.initial_states(spec.policy)[0])
    history = history.with_arrival(0).with_arrival(1).with_arrival(2)
    history = history.with_leaving(2, (2, 3), history.started()[2])
    history = history.with_arrival(3).with_arrival(4)
    assert history.strands(history.started())
    found = tb.coresident(launches, spec, groups=[[0, 3, 4]], after=after, fixes=False)
    assert found.safe is not True


def test_sm_without_shared_memory_is_configured_too() -> None:
    volta = tb.device("v100")
    mechanisms = replace(volta.mechanisms, shared_memory="circular", configuration_per_tpc=False)
    spec = replace(
        volta, sms=2, sm_preference=(0, 1), gpcs=(), mechanisms=mechanisms, provenance={}
    )
    launches = [
        tb.Launch(2, 96, 32),
        tb.Launch(18, 96, 16, carveout=100),
        tb.Launch(4, 320, 64, carveout=100),
    ]
    assert tb.coresident(launches, spec, groups=[[1, 2]], fixes=False).safe is False


def random_case(rng: random.Random) -> Case | None:
    """An outsider of few blocks, and two launches that fill a small GPU beside it."""
    spec = gpu(8, "h200", gpcs=rng.choice([((0, 1, 2),), ((0, 1), (2,)), ((0, 1, 2, 3),)]))
    launches = []
    for number in range(3):
        cluster = rng.choice([1, 1, 2, 4])
        one = tb.Launch(
            cluster, rng.choice([96, 192, 320, 512]), rng.choice([32, 48, 64, 96]),
            rng.choice([0, 0, 20_000, 60_000]), carveout=100, cluster=cluster,
        )  # fmt: skip
        capacity = tb.capacity(one, spec).blocks // cluster
        if capacity == 0:
            return None
        most = max(1, 4 // cluster) if number == 0 else capacity
        blocks = cluster * max(1, min(most, round(capacity * rng.uniform(0.2, 0.6))))
        launches.append(tb.Launch(
            blocks, one.threads, one.registers, one.shared_memory, carveout=100, cluster=cluster
        ))  # fmt: skip
    return Case(spec, spec.policy, tuple(launches), frozenset({1, 2}))


@pytest.mark.parametrize("seed", range(examples(24)))
def test_small_gpus_agree_with_the_literal_reference(seed: int) -> None:
    case = random_case(random.Random(seed))
    if case is None:
        pytest.skip("a cluster fits no GPC")
    found = tb.coresident(case.launches, case.spec, groups=[[1, 2]], fixes=False)
    expected = shortest(case)
    assert found.safe is (expected is None)
