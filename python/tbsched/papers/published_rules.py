"""Rules about block placement that were published before a whole model was, as predicates.

From two sources. "RTAS 2020" is *Dissecting the CUDA Scheduling Hierarchy: a Performance and
Predictability Perspective*, whose Definitions III.1 to III.3 say when a block joins another on its
SM. "GF100 thesis" is a thesis on optimising GPU programs at the level of their ELF code, which
gives two observations on a Tesla C2070, T_1 and T_2, on how a grid of two blocks per SM spreads.

They are here to be compared with :func:`tbsched.predict`, which they are not part of;
``docs/explanation/papers.md`` says how far each holds. Warps and registers are counted per SM.
"""

from __future__ import annotations

from tbsched.program.checks import integer

MOST = 2**31 - 1


def joins_on_idle_sms(warps_per_sm: int, first: int, second: int) -> bool:
    """Definition III.1 (RTAS 2020, equation 2): whether two blocks share an SM of an idle GPU.

    Args:
        warps_per_sm: the most warps that an SM holds, ``mw``.
        first: warps of the block that is on its SM, ``x``.
        second: warps of the block that comes next, ``y``.

    Raises:
        TypeError, ValueError: a block without warps, or with more than an SM holds.
    """
    return joins_on_equal_sms(warps_per_sm, 0, first, second)


def joins_on_equal_sms(warps_per_sm: int, resident: int, first: int, second: int) -> bool:
    """Definition III.2 (RTAS 2020, equation 3): the same, where each SM had ``resident`` warps.

    Args:
        warps_per_sm: the most warps that an SM holds, ``mw``.
        resident: warps on the SM before the first of the two blocks came, ``z``. The definition
            does not mention the other SMs; it can only be meant for as many on each.
        first, second: warps of the two blocks, ``x`` and ``y``. Whether the second one fits is
            another question: with no room for it on any SM, the definition has it join.

    Raises:
        TypeError, ValueError: a block without warps, or more warps than an SM holds.
    """
    _check(warps_per_sm, first=first, second=second)
    integer("warps", "resident", resident, 0, warps_per_sm)
    free = warps_per_sm - resident
    return free - first >= ((free - second) // second + 1) * second


def joins_on_last_idle_sm(warps_per_sm: int, others: int, first: int, second: int) -> bool:
    """Definition III.3 (RTAS 2020, equation 4): the same, where one SM had been left idle.

    Args:
        warps_per_sm: the most warps that an SM holds, ``mw``.
        others: warps of the block that each other SM holds, ``z'``.
        first: warps of the block on the SM that had been idle, ``x``.
        second: warps of the block that comes next, ``y``.

    Raises:
        TypeError, ValueError: a block without warps, or with more than an SM holds.
    """
    _check(warps_per_sm, others=others, first=first, second=second)
    left = warps_per_sm - first
    return warps_per_sm - others < left // second * second <= left


def spreads_unevenly(registers: int, registers_per_sm: int) -> bool:
    """T_1 (GF100 thesis): two blocks per SM never spread evenly if they leave half the registers.

    The thesis adds: if the scheduler has the choice.

    Args:
        registers: what the two blocks wanted on each SM take together.
        registers_per_sm: the register file.

    Raises:
        TypeError, ValueError: no numbers of registers.
    """
    _check_registers(registers, registers_per_sm)
    return 2 * registers <= registers_per_sm


def spreads_evenly(registers: int, registers_per_sm: int) -> bool:
    """T_2 (GF100 thesis): two blocks per SM always spread evenly if they take more than half.

    Args:
        registers: what the two blocks wanted on each SM take together.
        registers_per_sm: the register file.

    Raises:
        TypeError, ValueError: no numbers of registers.
    """
    _check_registers(registers, registers_per_sm)
    return registers <= registers_per_sm < 2 * registers


def failed_conditions(
    blocks: int, warps: int, registers: int, *, sms: int, registers_per_sm: int
) -> tuple[int, ...]:
    """S_lc (GF100 thesis, section 8.3): which of its conditions (1) to (5) a launch fails.

    There are fewer than 8 blocks per SM, the most that an SM of the GF100 holds, of 1 to 32 warps
    (1). Their number is a multiple of the number of SMs (2). An even spread puts at most 32 warps
    on an SM (3), which take at least half of its registers, and no more than all (4). Their number
    is even (5). A launch that fails (2) is not asked (3) to (5): it has no even spread. Exactly
    half passes, as section 8.3 says; T_1 says of such launches that they never spread evenly.

    Condition (6) bounds the measured skew at the end, which the thesis does not print in full.

    Args:
        blocks: of the launch.
        warps: of a block.
        registers: of a thread.
        sms: of the GPU.
        registers_per_sm: the register file.

    Raises:
        TypeError, ValueError: a number out of its range.

    Example:
        >>> failed_conditions(28, 10, 30, sms=14, registers_per_sm=32768)
        ()
        >>> failed_conditions(28, 10, 20, sms=14, registers_per_sm=32768)
        (4,)
    """
    for name, value in (("blocks", blocks), ("warps", warps), ("registers", registers)):
        integer("S_lc", name, value, 1, MOST)
    integer("S_lc", "sms", sms, 1, MOST)
    integer("S_lc", "registers_per_sm", registers_per_sm, 1, MOST)
    failed = [] if blocks < 8 * sms and warps <= 32 else [1]
    if blocks % sms:
        return (*failed, 2)
    resident = blocks // sms * warps
    taken = resident * 32 * registers
    holds = {3: resident <= 32, 4: registers_per_sm <= 2 * taken <= 2 * registers_per_sm}
    holds[5] = resident % 2 == 0
    return (*failed, *(number for number, right in holds.items() if not right))


def _check_registers(registers: int, registers_per_sm: int) -> None:
    integer("registers", "registers", registers, 0, MOST)
    integer("registers", "registers_per_sm", registers_per_sm, 0, MOST)


def _check(warps_per_sm: int, **blocks: int) -> None:
    integer("warps", "warps_per_sm", warps_per_sm, 1, MOST)
    for name, warps in blocks.items():
        integer("warps", name, warps, 1, warps_per_sm)
