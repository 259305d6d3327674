"""Brings the code of a kernel into an order in which each loop is in one piece.

Compilers move what they expect to be rare to the end: often the loop in which a thread waits.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection, Mapping

from tbsched.hangs.disassembler import Instructions
from tbsched.hangs.instruction import Instruction
from tbsched.program.reachable import reachable

_UNKNOWN_TARGETS = re.compile(r"^(?:BRX|BRXU|JMX|JMXU|JMP)\b")
_TARGET = re.compile(r"0x[0-9a-f]+$")
_GUARDED_BRANCH = re.compile(r"@(!?)(U?P\d\s+BRA(?:\.U)?\s+0x[0-9a-f]+)")
_STEP = 16  # bytes of an instruction
_Successors = Mapping[int, Collection[int]]


def with_loops_in_one_piece(instructions: Instructions) -> Instructions:
    """Returns the same code with each loop in one piece, from its first instruction on.

    Addresses are new. A jump is added where an instruction was followed by another one. Code that
    jumps to unknown places stays as it is.
    """
    code = [Instruction(address, text) for address, text in instructions]
    index_at = {each.address: index for index, each in enumerate(code)}
    targets = {each.target for each in code} | {each.call_target for each in code}
    if (
        not code
        or not targets - {None} <= index_at.keys()
        or any(_UNKNOWN_TARGETS.match(each.body) for each in code)
    ):
        return instructions
    blocks = _blocks(code, {index_at[each] for each in targets if each is not None})
    block_at = {block.start: number for number, block in enumerate(blocks)}
    successors = {
        number: [block_at[index] for index in _followers(code, block.stop - 1, index_at)]
        for number, block in enumerate(blocks)
    }
    calls = sorted(
        block_at[index_at[each.call_target]] for each in code if each.call_target is not None
    )
    order: list[int] = []
    for first in (0, *calls):  # the kernel, and its functions
        rest = reachable([first], successors.__getitem__).difference(order)
        order += _in_order(rest, {number: successors[number] for number in rest})
    order += [number for number in range(len(blocks)) if number not in {*order}]
    if order == [*range(len(blocks))]:
        return instructions
    return _laid_out(code, [blocks[number] for number in order], index_at)


def _blocks(code: list[Instruction], targets: set[int]) -> list[range]:
    """Returns the basic blocks: instructions that are executed one after the other."""
    starts = {0, *targets}
    for index, each in enumerate(code[:-1]):
        if each.target is not None or each.leaves:
            starts.add(index + 1)
    bounds = [*sorted(starts), len(code)]
    return [range(first, last) for first, last in itertools.pairwise(bounds)]


def _followers(code: list[Instruction], index: int, index_at: Mapping[int, int]) -> list[int]:
    """Returns the instructions that may be executed after one: the next one first."""
    each = code[index]
    followers = []
    if each.falls_through and index + 1 < len(code):
        followers.append(index + 1)
    if each.target is not None:
        followers.append(index_at[each.target])
    return followers


def _in_order(nodes: Collection[int], successors: _Successors) -> list[int]:
    """Returns blocks in an order in which each is after those before it, and loops are whole."""
    inside = {*nodes}
    entered = {
        after for node, all_after in successors.items() if node not in inside for after in all_after
    }
    order: list[int] = []
    for component in reversed(components(nodes, successors)):
        if len(component) == 1:
            order += component
            continue
        members = {*component}
        entries = entered & members or {
            after for node in inside - members for after in successors[node] if after in members
        }
        first = min(entries or members)
        order += [first, *_in_order(sorted(members - {first}), successors)]
    return order


def components(nodes: Collection[int], successors: _Successors) -> list[list[int]]:
    """Returns the strongly connected components of some blocks, later ones first (Tarjan)."""
    inside = {*nodes}
    found: list[list[int]] = []
    numbers: dict[int, int] = {}
    lowest: dict[int, int] = {}
    open_nodes: list[int] = []
    closed: set[int] = set()
    for root in sorted(inside, reverse=True):
        if root in numbers:
            continue
        work = [(root, iter(sorted(inside.intersection(successors[root]), reverse=True)))]
        numbers[root] = lowest[root] = len(numbers)
        open_nodes.append(root)
        while work:
            node, following = work[-1]
            after = next(following, None)
            if after is None:
                work.pop()
                if work:
                    lowest[work[-1][0]] = min(lowest[work[-1][0]], lowest[node])
                if lowest[node] == numbers[node]:
                    place = open_nodes.index(node)
                    found.append(open_nodes[place:])
                    closed.update(open_nodes[place:])
                    del open_nodes[place:]
            elif after not in numbers:
                numbers[after] = lowest[after] = len(numbers)
                open_nodes.append(after)
                following = iter(sorted(inside.intersection(successors[after]), reverse=True))
                work.append((after, following))
            elif after not in closed:
                lowest[node] = min(lowest[node], numbers[after])
    return found


def _laid_out(
    code: list[Instruction], blocks: list[range], index_at: Mapping[int, int]
) -> Instructions:
    """Returns the instructions of blocks in their order, with new addresses.

    Where a block no longer comes before what it falls through to, the nearer of its two successors
    gets a jump, and its branch goes to the farther one, which may be behind a loop.
    """
    place = {block.start: number for number, block in enumerate(blocks)}
    rows: list[tuple[str, int | None]] = []  # texts, and the indices of what they jump to
    row_of: dict[int, int] = {}  # by index
    for number, block in enumerate(blocks):
        row_of |= {index: len(rows) + index - block.start for index in block}
        rows += [(code[index].text, _target_index(code[index], index_at)) for index in block]
        followers = _followers(code, block.stop - 1, index_at)
        if block.stop not in followers or place[block.stop] == number + 1:
            continue
        nearer = block.stop
        text, target = rows[-1]
        inverted = _inverted(text)
        if inverted is not None and target is not None and place[target] < place[nearer]:
            rows[-1] = inverted, nearer
            nearer = target
        if place[nearer] != number + 1:
            rows.append(("BRA 0x0", nearer))
    return tuple([
        (_STEP * row, text if to is None else _TARGET.sub(f"{_STEP * row_of[to]:#x}", text))
        for row, (text, to) in enumerate(rows)
    ])  # fmt: skip


def _target_index(instruction: Instruction, index_at: Mapping[int, int]) -> int | None:
    """Returns the index of what an instruction jumps to or calls; None: it does neither."""
    target = instruction.target if instruction.target is not None else instruction.call_target
    return None if target is None else index_at[target]


def _inverted(text: str) -> str | None:
    """Returns the branch that is taken where another one is not; None: it cannot be written."""
    branch = _GUARDED_BRANCH.fullmatch(text)
    return f"@{'' if branch[1] else '!'}{branch[2]}" if branch is not None else None
