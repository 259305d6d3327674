"""Is a device's description one of the GPU at hand? What the GPU says decides, not its name."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import tbsched as tb
from tbsched.launcher.observe import Gpu

# Kernels whose blocks threads, registers and shared memory bind, and clusters that lie in one GPC.
KERNELS = (
    tb.Launch(1, 1024, 32),
    tb.Launch(1, 32, 16),
    tb.Launch(1, 96, 168),
    tb.Launch(1, 128, 32, 49_152, carveout=100),
    tb.Launch(1, 64, 32, 100_000, carveout=100),
)
CLUSTER = 8


def differences(gpu: Gpu, spec: tb.DeviceSpec) -> Iterator[str]:
    """What the GPU says otherwise than the description, in words; nothing if they agree.

    Asks for the compute capability, the number of SMs, how many blocks of some kernels an SM holds,
    and which SMs clusters share: those of a GPC.
    """
    capability = gpu.info.details["compute_capability"]
    if capability != spec.compute_capability:
        yield f"compute capability {capability}, not {spec.compute_capability}"
        return
    if gpu.info.sms != spec.sms:
        yield f"{gpu.info.sms} SMs, not {spec.sms}"
        return
    for kernel in KERNELS:
        resident = gpu._gpu.resident(kernel)
        [placement] = tb.predict(tb.Sequence([_many(kernel, 33 * spec.sms)]), spec)
        if placement.placed != resident * spec.sms:
            yield f"{resident} blocks of {kernel} on an SM, not {placement.placed / spec.sms:g}"
    if spec.gpcs:
        yield from _other_gpcs(gpu, spec)


def _many(kernel: tb.Launch, blocks: int) -> tb.Launch:
    return tb.Launch(
        blocks, kernel.threads, kernel.registers, kernel.shared_memory, carveout=kernel.carveout
    )


def _other_gpcs(gpu: Gpu, spec: tb.DeviceSpec) -> Iterator[str]:
    grid = tb.Launch(CLUSTER * spec.sms, 1024, 32, cluster=CLUSTER)
    [placement] = gpu.observe(tb.Sequence([grid]))
    clusters = placement.smid.reshape(-1, CLUSTER)
    clusters = clusters[(clusters >= 0).all(axis=1)]
    gpcs = np.array(spec.gpc_of_tpc)[clusters // (spec.sms // spec.tpcs)]
    for sms, found in zip(clusters, gpcs, strict=True):
        if found.min() != found.max() or found.min() < 0:
            yield f"SMs {sorted(set(sms.tolist()))} share a GPC, as a cluster showed"
            return
    if missing := set(range(len(spec.gpcs))) - set(gpcs.ravel().tolist()):
        yield f"no cluster of {CLUSTER} blocks in GPCs {sorted(missing)}"
