"""Kernels as functions of their parameters, and a search for the fastest ones.

A template is a function whose parameters give a workload. The thesis on GF100 GPUs makes two of a
kernel's properties parameters (section 8.2.3): the number of threads, by its procedure P_1, and
how much of the data is used again, by P_2.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

import numpy as np

from tbsched.errors import shown
from tbsched.program.checks import integer, items
from tbsched.sm.results import Simulations
from tbsched.sm.running import ConfigLike, simulate_many
from tbsched.sm.workloads import LOAD, NONE, STORE, Workload

_WORD = 4  # bytes of an element
_LANES = 32
_INDEXING = 4  # instructions by which a thread computes its number, and from it an address
_MAX_ROWS = 1 << 26


def matrix_product(
    size: int = 128, *, blocks: int = 132, warps_per_block: int = 8, reuse: int = 1
) -> Workload:
    """Returns a template: the product of two square matrices, of 32-bit elements.

    A piece of work is 32 neighbouring elements of a row of the product, one for each thread of a
    warp. For each of ``size`` steps, the warp loads an element of the first matrix and 32 of the
    second, and multiplies and adds. Warps take pieces in turn until none is left: the number of
    threads is a parameter, as P_1 makes it. ``reuse`` changes which data a warp works on, and no
    instruction, as P_2 does with its first set of transformations: so many warps after each other
    load the same elements of the second matrix.

    Args:
        size: rows and columns, a multiple of 32 and of ``reuse``, up to 4,096.
        blocks: of the grid.
        warps_per_block: 1 to 64; threads are 32 times as many.
        reuse: rows of the product that warps after each other work on, in the same columns.

    Raises:
        TypeError, ValueError: a number out of its range; names the parameter.

    Example:
        >>> one, four = (tb.sm.matrix_product(64, blocks=1, reuse=n) for n in (1, 4))
        >>> one.instructions == four.instructions, bool((one.address == four.address).all())
        (True, False)
    """
    size = integer("matrix_product", "size", size, _LANES, 4096)
    blocks = integer("matrix_product", "blocks", blocks, 1, 1 << 20)
    warps_per_block = integer("matrix_product", "warps_per_block", warps_per_block, 1, 64)
    reuse = integer("matrix_product", "reuse", reuse, 1, size)
    for name, part in (("32", _LANES), ("reuse", reuse)):
        if size % part:
            raise ValueError(f"matrix_product.size: {size} is no multiple of {name}, {part}")
    across = size // _LANES
    pieces = np.arange(size * across)
    accesses = 2 * size + 1
    if len(pieces) * accesses > _MAX_ROWS:
        raise ValueError(
            f"matrix_product.size: {size} has {len(pieces) * accesses} accesses, more than "
            f"{_MAX_ROWS}"
        )
    # Pieces of one column of pieces, `reuse` rows of it, come after each other.
    strip, within = np.divmod(pieces, reuse * across)
    row = strip * reuse + within % reuse
    column = within // reuse * _LANES
    step = np.arange(size)
    address = np.empty((len(pieces), accesses), np.int64)
    address[:, 0:-1:2] = row[:, None] * size + step
    address[:, 1:-1:2] = (size + step) * size + column[:, None]
    address[:, -1] = (2 * size + row) * size + column
    access = np.full(accesses, LOAD)
    access[-1] = STORE
    compute = np.zeros(accesses, np.int64)
    compute[2::2] = 1  # multiplies and adds what was loaded
    warps = blocks * warps_per_block
    order = np.argsort(pieces % warps, kind="stable")
    warp_accesses = np.bincount(pieces % warps, minlength=warps) * accesses
    # Each warp first finds out which pieces are its own.
    begins = np.cumsum(warp_accesses) - warp_accesses
    return Workload(
        f"matrix_product {size}",
        warps_per_block,
        64 // warps_per_block,
        np.concatenate([[0], np.cumsum(warp_accesses + 1)]),
        np.insert(np.tile(compute, len(pieces)), begins, _INDEXING),
        np.insert(np.tile(access, len(pieces)), begins, NONE),
        np.insert((address[order] * _WORD).ravel(), begins, 0),
    )


def tune(
    template: Callable[..., Workload],
    values: Mapping[str, Iterable[int]],
    scheduler: str = "unbroken_round_robin",
    config: ConfigLike = "h200-like",
    *,
    threads: int | None = None,
) -> Simulations:
    """Simulates a template with all combinations of values, and returns the fastest first.

    ``efficiency`` of a run is a lower bound: a better choice of warps in each cycle could make it
    no faster than by that.

    Args:
        template: a function that returns a workload, such as :func:`matrix_product`.
        values: for each parameter that is searched, its values.
        scheduler, config: as for :func:`simulate`.
        threads: how many run at a time; None is one per processor.

    Raises:
        TypeError, ValueError: no function, no values, or something else than a workload; what the
            template and :func:`simulate` raise.

    Example:
        >>> found = tb.sm.tune(
        ...     lambda blocks: tb.sm.matrix_product(64, blocks=blocks), {"blocks": (1, 16)}
        ... )
        >>> [run.workload for run in found]
        ['matrix_product 64 blocks=16', 'matrix_product 64 blocks=1']
    """
    if not callable(template):
        raise TypeError(f"tune.template: a function is needed, got {shown(template)}")
    if not isinstance(values, Mapping):
        raise TypeError(f"tune.values: values by parameter are needed, got {shown(values)}")
    rows = {
        str(name): tuple(items("tune", str(name), values_given))
        for name, values_given in values.items()
    }
    for name, values_given in rows.items():
        if not values_given:
            raise ValueError(f"tune.{name}: no value; one or more are needed")
    workloads = []
    for chosen in itertools.product(*rows.values()):
        parameters = dict(zip(rows, chosen, strict=True))
        workload = template(**parameters)
        if not isinstance(workload, Workload):
            raise TypeError(f"tune.template: it returns {shown(workload)}, not a workload")
        words = [workload.name, *(f"{name}={value}" for name, value in parameters.items())]
        workloads.append(replace(workload, name=" ".join(words)))
    simulations = simulate_many(workloads, scheduler, config, threads=threads)
    return Simulations(tuple(sorted(simulations, key=lambda run: run.counts["cycles"])))
