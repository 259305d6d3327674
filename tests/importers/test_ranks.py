"""Profiles of several ranks: joined, or refused in one line that says what to do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import tbsched as tb
from importers.written import PROCESS, nsys, row_of_call, row_of_kernel
from ranked import Gemm, Host, Meet, Step, documents, play, written


def steps(rank: int, count: int = 3, **changes: Any) -> list[Step]:
    found: list[Step] = []
    for number in range(count):
        found += [Host("load", 50 * (rank + 1)), Gemm(200), Meet(90, elements=1024 + number)]
    return [*found, Meet(10, **changes)]


def profiles(count: int = 2, **changes: Any) -> list[dict[str, Any]]:
    return documents(play([steps(rank, **changes) for rank in range(count)]))


def refused(folder: Path, documents: list[dict[str, Any]], *words: str) -> None:
    """Asserts that the profiles are refused in one line with these words."""
    files = written(folder, documents)
    with pytest.raises(ValueError, match=r"rank0\.json\.gz") as error:
        tb.load_program(files)
    text = str(error.value)
    assert "\n" not in text
    for word in words:
        assert word in text, text


def test_a_list_and_a_folder_are_one_program(tmp_path: Path) -> None:
    files = written(tmp_path, profiles(3))
    for given in (files, tmp_path, str(tmp_path), list(reversed(files))):
        program = tb.load_program(given)
        assert program.gpus == (0, 1, 2)
        assert [rank.rank for rank in program.ranks] == [0, 1, 2]
        assert [rank.file for rank in program.ranks] == [file.name for file in files]
        assert len(program.sequence) == 0


def test_one_file_is_read_as_before(tmp_path: Path) -> None:
    files = written(tmp_path, profiles())
    one, listed = tb.load_program(files[0], fit=False), tb.load_program(files[:1], fit=False)
    assert len(one.sequence.launches) == len(listed.sequence.launches) > 0
    assert one.ranks == ()
    assert one.gpus == (0,)


def test_files_of_a_folder_that_are_no_profiles_are_named(tmp_path: Path) -> None:
    written(tmp_path, profiles())
    (tmp_path / "notes.txt").write_text("nothing")
    (tmp_path / ".hidden").write_text("nothing")
    program = tb.load_program(tmp_path)
    assert len(program.ranks) == 2
    assert "left out: notes.txt." in " ".join(program.assumed)


def test_a_folder_without_profiles_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("nothing")
    with pytest.raises(ValueError, match="a folder, of which no file is known"):
        tb.load_program(tmp_path)


def test_an_empty_list_is_refused() -> None:
    with pytest.raises(ValueError, match=r"load_program\.path: at least one file"):
        tb.load_program([])


def test_clocks_hours_apart_are_brought_together_and_told(tmp_path: Path) -> None:
    played = play([steps(rank) for rank in range(2)])
    files = written(tmp_path, documents(played, later={1: 7200e6}))
    program = tb.load_program(files)
    assert program.ranks[1].added == pytest.approx(-7200, abs=1e-4)
    assert "-7,200.0" in " ".join(program.assumed)


def test_a_rank_twice_is_refused(tmp_path: Path) -> None:
    first, _ = profiles()
    refused(tmp_path, [first, first], "rank1.json.gz: of rank 0, and so is")


def test_worlds_that_contradict_are_refused(tmp_path: Path) -> None:
    given = profiles()
    given[1]["distributedInfo"]["world_size"] = 4
    refused(tmp_path, given, "of a run of 2 ranks and of one of 4")


def test_a_rank_beyond_its_world_is_refused(tmp_path: Path) -> None:
    given = profiles()
    given[1]["distributedInfo"]["rank"] = 7
    files = written(tmp_path, given)
    with pytest.raises(ValueError, match=r"rank1.json.gz: rank 7 of a run of 2 ranks"):
        tb.load_program(files)


def test_large_numbers_of_ranks_take_no_memory(tmp_path: Path) -> None:
    given = profiles()
    for each, rank in zip(given, (3, 2**61), strict=True):
        each["distributedInfo"] = {"rank": rank, "world_size": 2**62}
        for event in each["traceEvents"]:
            if "Process Group Ranks" in event["args"]:
                event["args"]["Process Group Ranks"] = f"[3, {2**61}, {'9' * 5000}]"
    program = tb.load_program(written(tmp_path, given))
    assert program.gpus == (3, 2**61)
    assert "(rank 0, 1, 2 and " in " ".join(program.assumed)
    assert tb.explain(program).accounted.gpus == (3, 2**61)


def test_other_sizes_are_refused(tmp_path: Path) -> None:
    one, _ = profiles()
    _, other = profiles(elements=77)
    refused(
        tmp_path, [one, other],
        "collective 3 of group 0 is all_reduce of 1,048,576 to 1,048,576 Float on rank 0 and "
        "all_reduce of 77 to 77 Float on rank 1",
    )  # fmt: skip


def test_other_types_are_refused(tmp_path: Path) -> None:
    one, _ = profiles()
    _, other = profiles(type="Half")
    refused(tmp_path, [one, other], "Float on rank 0", "Half on rank 1")


def test_another_number_of_collectives_is_refused(tmp_path: Path) -> None:
    one = documents(play([steps(rank) for rank in range(2)]))[0]
    other = documents(play([[Meet(5, elements=k) for k in range(50)] for _ in range(2)]))[1]
    refused(tmp_path, [one, other], "rank 0", "rank 1", "are the profiles of one run")


def test_a_rank_without_collectives_is_refused(tmp_path: Path) -> None:
    one, _ = profiles()
    other = documents(play([[Gemm(5)], [Gemm(5)]]))[1]
    refused(tmp_path, [one, other], "rank 1 has no collective", "explain each file alone")


def test_ranks_of_other_groups_are_refused(tmp_path: Path) -> None:
    pairs = [[Gemm(5), Meet(5, group=(0, 1))]] * 2 + [[Gemm(5), Meet(5, group=(2, 3))]] * 2
    given = documents(play(pairs))
    files = written(tmp_path, given)
    with pytest.raises(ValueError, match="share no collective"):
        tb.load_program([files[0], files[2]])


def test_two_runs_mixed_are_refused(tmp_path: Path) -> None:
    """The same collectives, but the times between them are others."""
    one = documents(play([[Gemm(100), Meet(20)] * 8 for _ in range(2)]))[0]
    other = documents(
        play([[step for k in range(8) for step in (Gemm(100 + 400 * (k % 3)), Meet(20))]] * 2)
    )[1]
    refused(tmp_path, [one, other], "contradict each other", "are the profiles of one run")


def test_runs_of_another_pace_are_refused_where_their_kernels_overlap(tmp_path: Path) -> None:
    """Each collective of one run overlaps that of the other, so no bounds contradict."""
    one = documents(play([[Gemm(us), Meet(600)] * 3 for us in (2000, 5000)]))[0]
    other = documents(play([[Gemm(us), Meet(600)] * 3 for us in (11_000, 2000)]))[1]
    refused(
        tmp_path, [one, other], "most collectives of rank 0 and rank 1 end far apart, number 2 (",
        " ms, whatever their clocks are: are the profiles of one run?",
    )  # fmt: skip


def test_a_clock_is_as_uncertain_as_ends_are_apart(tmp_path: Path) -> None:
    """Though a short collective bounds it more narrowly."""
    steps = [*[Gemm(600), Meet(400)] * 9, Gemm(600), Meet(10)]
    given = documents(play([steps, steps]))
    meets = [event for event in given[1]["traceEvents"] if event["name"].startswith("nccl")]
    for number, event in enumerate(meets[:-1]):
        event["dur"] += 100 * (number % 3)
    (_, rank) = tb.load_program(written(tmp_path, given)).ranks
    assert rank.uncertain is not None
    assert rank.uncertain > 150e-6


def test_a_rank_that_lacks_collectives_is_named(tmp_path: Path) -> None:
    given = documents(play([[Gemm(100), Meet(20)] * 3 for _ in range(2)]))
    events = given[1]["traceEvents"]
    last = max(event["ts"] for event in events if event["name"].startswith("nccl"))
    given[1]["traceEvents"] = [event for event in events if event["ts"] < last]
    found = tb.explain(tb.load_program(written(tmp_path, given)))
    assert "(rank 1 has 2, rank 0 has 3)" in str(found)


def test_collectives_at_the_edges_of_one_profile_have_no_counterpart(tmp_path: Path) -> None:
    """Rank 0 began to record two collectives earlier."""
    given = documents(play([[Gemm(100), Meet(20), Host("f", 30 * (k % 3))] * 9 for k in range(2)]))
    events = given[1]["traceEvents"]
    begins = sorted(e["ts"] for e in events if e["name"].startswith("nccl"))
    given[1]["traceEvents"] = [event for event in events if event["ts"] > begins[1]]
    files = written(tmp_path, given)
    program = tb.load_program(files)
    found = tb.explain(program)
    assert len(found.accounted.collectives.collectives.unmatched) == 2
    assert abs(program.ranks[1].added) < 1e-5


def test_ranks_without_numbers_are_those_of_their_names(tmp_path: Path) -> None:
    given = profiles()
    for each in given:
        del each["distributedInfo"]
    files = written(tmp_path, given)
    program = tb.load_program(files[::-1])
    assert [rank.file for rank in program.ranks] == ["rank0.json.gz", "rank1.json.gz"]
    assert "as their names number them" in " ".join(program.assumed)


def test_profiles_that_say_nothing_of_groups_are_matched_in_order(tmp_path: Path) -> None:
    given = profiles()
    for each in given:
        for event in each["traceEvents"]:
            args = event.get("args", {})
            for name in ("Collective name", "Process Group Name", "Process Group Ranks"):
                args.pop(name, None)
    found = tb.explain(tb.load_program(written(tmp_path, given)))
    assert len(found.accounted.collectives.collectives.kinds) == 4
    assert {kind.op for kind in found.accounted.collectives.collectives.kinds} == {"all_reduce"}


def test_processes_of_one_nsight_file_meet_by_the_names_of_kernels(tmp_path: Path) -> None:
    """Two processes with a GPU each; the second one's host is 300 us late in each of four steps."""
    names = {1: "cudaLaunchKernel_v7000", 5: "cudaDeviceSynchronize_v3020", 7: "gemm",
             8: "ncclDevKernel_AllReduce_Sum_f32_RING_LL"}  # fmt: skip
    kernels, calls, number = [], [], 0
    for process in (0, 1):
        pid = {"globalPid": (PROCESS + process) << 24, "deviceId": process}
        tid = {"globalTid": ((PROCESS + process) << 24) + 1}
        for step in range(4):
            begin = step * 1_000_000 + 300_000 * process
            end = step * 1_000_000 + 450_000
            for name, start, stop in (
                (7, begin + 10_000, begin + 110_000),
                (8, begin + 111_000, end),
            ):
                number += 1
                kernels.append(row_of_kernel(
                    number, start, stop, 7, demangledName=name, shortName=name, **pid
                ))  # fmt: skip
                calls.append({**row_of_call(number, start - 9_000, start - 5_000), **tid})
            number += 1
            calls.append({**row_of_call(number, begin + 108_000, end, 5), **tid})
    place = nsys(tmp_path / "both.sqlite", {
        "CUPTI_ACTIVITY_KIND_KERNEL": kernels, "CUPTI_ACTIVITY_KIND_RUNTIME": calls,
        "StringIds": [{"id": key, "value": value} for key, value in names.items()],
        "TARGET_INFO_GPU": [
            {"id": gpu, "cuDevice": gpu, "name": "NVIDIA H100 80GB HBM3", "smCount": 132}
            for gpu in (0, 1)
        ],
    })  # fmt: skip
    found = tb.explain(tb.load_program(place, fit=False), predicted=False)
    assert found.accounted.gpus == (0, 1)
    waited = sum(row.seconds for row in found.account if (row.gpu, row.cause) == (0, "peer"))
    assert waited == pytest.approx(4 * 300e-6)
    first = found.roots[0]
    assert (first.gpu, first.cause) == (1, "host")
    assert not any(row.cause == "synchronize" for row in found.account)


def test_annotations_tell_what_a_kernel_without_metadata_does(tmp_path: Path) -> None:
    """NCCL's kernel of an all-to-all is called as that of sends; PyTorch marks who launched it."""
    given = documents(
        play([[Gemm(100), Meet(20, "all_to_all"), Host("f", 9 * k)] * 3 for k in (0, 1)])
    )
    for each in given:
        calls = {
            e["args"]["correlation"]: e for e in each["traceEvents"] if e["cat"] == "cuda_runtime"
        }
        for event in [e for e in each["traceEvents"] if e["name"].startswith("nccl")]:
            kept = ("device", "context", "stream", "correlation", "grid", "block")
            event["args"] = {key: event["args"][key] for key in kept}
            call = calls[event["args"]["correlation"]]
            each["traceEvents"].append({
                "ph": "X", "cat": "user_annotation", "name": "nccl:all_to_all", "pid": 5, "tid": 1,
                "ts": call["ts"] - 1, "dur": call["dur"] + 2, "args": {},
            })  # fmt: skip
    found = tb.explain(tb.load_program(written(tmp_path, given)))
    assert {kind.op for kind in found.accounted.collectives.collectives.kinds} == {"all_to_all"}


def test_a_missing_rank_of_an_unknown_group_leaves_its_time_unknown(tmp_path: Path) -> None:
    given = profiles(3)[:2]
    for each in given:
        for event in each["traceEvents"]:
            for name in (
                "Collective name",
                "Process Group Name",
                "Process Group Ranks",
                "Group size",
            ):
                event["args"].pop(name, None)
    found = tb.explain(tb.load_program(written(tmp_path, given)))
    assert not any(row.cause == "transfer" for row in found.account)
    assert any(row.cause == "collective" for row in found.account)


def test_a_part_of_several_ranks_cannot_be_selected(tmp_path: Path) -> None:
    files = written(tmp_path, profiles())
    with pytest.raises(ValueError, match="no part can be selected"):
        tb.load_program(files, start=0.1)
    with pytest.raises(ValueError, match=r"load_program\.device"):
        tb.load_program(files, "h100")


def test_a_damaged_profile_is_named(tmp_path: Path) -> None:
    files = written(tmp_path, profiles())
    (tmp_path / "rank1.json.gz").write_text(json.dumps(profiles()[1])[:-200])
    with pytest.raises(ValueError, match=r"rank1\.json\.gz"):
        tb.load_program(files)
