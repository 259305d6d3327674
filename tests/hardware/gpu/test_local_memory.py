"""Local memory: the whole GPU is set up for so many bytes per thread; it grows only when idle."""

from __future__ import annotations

from helpers import fits, gpu, last, launch, released

GPU = gpu(2)  # set up for 1024 bytes at first


def test_first_setup_takes_1024_bytes_beside_others_and_one_more_waits() -> None:
    assert fits(GPU, launch(), launch(local_memory=1024))
    waits = last(GPU, launch(), launch(local_memory=1025))
    assert (waits.placed, waits.limiter) == (0, "local_memory")


def test_idle_gpu_takes_any_local_memory() -> None:
    assert fits(GPU, launch(local_memory=512 * 1024))
    assert fits(GPU, launch(), *released(0), launch(local_memory=512 * 1024))


def test_one_block_anywhere_keeps_the_gpu_from_being_idle() -> None:
    assert not fits(gpu(82), launch(), launch(local_memory=1025))


def test_setup_stays_as_large_as_it_has_grown() -> None:
    grown = [launch(local_memory=4096), *released(0), launch()]
    assert fits(GPU, *grown, launch(local_memory=4096))
    assert not fits(GPU, *grown, launch(local_memory=4097))


def test_larger_first_kernel_lets_the_others_run_beside_it() -> None:
    assert fits(GPU, launch(local_memory=4096), launch(local_memory=2048))
    assert not fits(GPU, launch(local_memory=2048), launch(local_memory=4096))


def test_waiting_launch_holds_up_the_next_and_runs_when_the_gpu_is_idle() -> None:
    before = [launch(), launch(local_memory=1025), launch()]
    assert last(GPU, *before).limiter == "queue"
    after = last(GPU, *before, *released(0))
    assert after.final_smid is not None
    assert after.final_smid.tolist() == [1]


def test_setup_grows_in_units() -> None:
    grown = [launch(local_memory=1028), *released(0), launch()]
    assert fits(GPU, *grown, launch(local_memory=1040))
    assert not fits(GPU, *grown, launch(local_memory=1041))
    coarse = gpu(2, local_memory_unit=512)
    assert fits(coarse, *grown, launch(local_memory=1536))
    assert not fits(coarse, *grown, launch(local_memory=1537))


def test_initial_setup_is_the_device_s_own() -> None:
    assert fits(gpu(local_memory_initial=0), launch(), launch(local_memory=0))
    assert not fits(gpu(local_memory_initial=0), launch(), launch(local_memory=1))


def test_without_the_mechanism_local_memory_never_waits() -> None:
    assert fits(gpu(local_memory_configuration=False), launch(), launch(local_memory=2**19))
