"""Whether launches can leave a last one too little room: an integer program over outcomes of SMs.

An outcome of an SM, or of a TPC, says how many blocks each launch takes there and how much room is
left. The variables say how many SMs have which outcome. Each launch takes the SM with the most room
first, so it stops at one place: at a level of room, and there at one SM in the order of preference.
No SM has more room than the level then, and preferred ones have less. OR-tools' CP-SAT decides
whether numbers of SMs fit, in integers. If none do, the last launch finds room.

The program is a relaxation: for SMs that clusters tie it knows only some rules. So an answer of
"none" is a proof, and a solution is a candidate that must be played.
"""

from __future__ import annotations

import importlib.util
import math
import threading
import time
from collections.abc import Callable, Iterator
from collections.abc import Sequence as Several
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from tbsched.program.arrays import Int32Array

# Pairs (outcome, units) of each group; None: there is no solution; False: undecided.
Counts: TypeAlias = list[list[tuple[int, int]]]
Answer: TypeAlias = Counts | bool | None
Values: TypeAlias = np.ndarray[Any, np.dtype[Any]]
Weights: TypeAlias = Any  # one number per outcome
# Budget of all levels together, in CP-SAT's deterministic time: some seconds.
MAX_WORK = 8.0
_FIRST_WORK = 1.0  # budget of one level, before a tighter relaxation is tried
MAX_VARIABLES = 200_000
_NO_LEVEL = 1 << 20  # no level: behind all others


@dataclass(frozen=True, slots=True)
class Stage:
    """A launch of the order of arrival; all but the last one leave room for later ones.

    Attributes:
        way: how it chooses SMs: ``single`` blocks, or clusters: ``whole_tpcs`` or ``balanced``.
        blocks: blocks of its grid.
        parts: parts of a cluster, each on an SM or a TPC.
        on_part: blocks of a part.
        most_room: most of its blocks that an SM holds.
        waits: whether it finds too little room, and takes all that there is.
        waits_whole: whether it then takes nothing.
    """

    way: str
    blocks: int
    parts: int
    on_part: int
    most_room: int
    waits: bool
    waits_whole: bool


@dataclass(frozen=True, slots=True)
class Waiting:
    """A launch with pending blocks that may enter where others leave; attributes as in C++."""

    most: int
    together: int
    on_tpc: int
    place: int


@dataclass(frozen=True, slots=True)
class Group:
    """Units of a domain with the same outcomes.

    Attributes:
        domain: its number.
        outcomes: index of their outcomes.
        units: number of units.
        ranks, positions: places of their SMs, by unit: in order of preference, and in the domain.
    """

    domain: int
    outcomes: int
    units: int
    ranks: Int32Array
    positions: Int32Array


@dataclass(frozen=True, slots=True)
class Outcomes:
    """Outcomes of a unit, as arrays with a row for each.

    Attributes:
        blocks: blocks of each counted launch.
        room: room left for the last launch.
        barred: a bit for each waiting launch that cannot enter.
        taken, left, idle: places taken, room left and idleness before, by stage and SM.
    """

    blocks: Int32Array
    room: Int32Array
    barred: Int32Array
    taken: Int32Array
    left: Int32Array
    idle: Int32Array


def solver(seconds: Callable[[], float]) -> Callable[..., Answer] | None:
    """Returns a function that solves integer programs for the core; None without OR-tools.

    Args:
        seconds: called for each program, returns the remaining time.
    """
    if importlib.util.find_spec("ortools") is None:
        return None

    def solve(outcomes: Any, groups: Any, stages: Any, waiting: Any) -> Answer:
        """Returns counts that solve the program; None: there are none; False: undecided."""
        program = _IntegerProgram(
            [_outcomes_of(*outcome) for outcome in outcomes],
            [_group_of(*group) for group in groups],
            [Stage(*stage) for stage in stages],
            [Waiting(*each) for each in waiting],
        )
        return program.solve(_cp_model(), seconds())

    return solve


def _cp_model() -> Any:
    """Returns CP-SAT's module; a Ctrl-C during its import of a second stays a KeyboardInterrupt.
    pybind11 turns the interrupt into an ImportError that has it as its cause."""
    try:
        from ortools.sat.python import cp_model
    except ImportError as error:
        if isinstance(error.__cause__, KeyboardInterrupt):
            raise error.__cause__ from None
        raise
    return cp_model


def _group_of(domain: int, outcomes: int, units: int, ranks: Any, positions: Any) -> Group:
    """Returns a group from the core's values."""
    return Group(domain, outcomes, units, ranks.reshape(units, -1), positions.reshape(units, -1))


def _outcomes_of(rows: Int32Array, by_stage: Int32Array) -> Outcomes:
    """Returns the outcomes of a kind of unit, from the core's rows.

    Args:
        rows: a row per outcome.
        by_stage: of each outcome, stage and SM three numbers: blocks taken, room left, whether the
            SM was idle.
    """
    return Outcomes(
        rows[:, :-2], rows[:, -2], rows[:, -1], by_stage[..., 0], by_stage[..., 1], by_stage[..., 2]
    )


class _IntegerProgram:
    """The integer program of one question, solved for all levels at which launches may stop."""

    def __init__(
        self, outcomes: list[Outcomes], groups: list[Group], stages: list[Stage],
        waiting: list[Waiting],
    ) -> None:  # fmt: skip
        self.outcomes, self.groups, self.waiting = outcomes, groups, waiting
        self.earlier, self.last = stages[:-1], stages[-1]
        self.most_position = max(int(group.positions.max()) for group in groups)
        self.units = [0] * len(outcomes)
        for group in groups:
            self.units[group.outcomes] += group.units
        # Indicator variables by the variable, its value, and whether it has that value or more.
        self.indicators: dict[tuple[int, int, bool], Any] = {}

    @staticmethod
    def _level_count(stage: Stage) -> int:
        """Returns the number of levels at which a launch may stop: 1 if it takes all room. At a
        level, SMs with equally much room get a block each (see policy/levels.h)."""
        if stage.waits:
            return 1
        return stage.most_room + (1 if stage.way == "whole_tpcs" else 0)

    def allowed(self, outcomes: Outcomes, stage: int, level: int) -> Values:
        """Returns, for each outcome of a kind of unit, whether a unit may have it if the launch of
        this stage stops at this level."""
        launch = self.earlier[stage]
        taken, left = outcomes.taken[:, stage], outcomes.left[:, stage]
        if launch.waits:
            return np.ones(len(taken), bool)
        if launch.way == "single":
            fits = (left <= level + 1) & ((taken == 0) | (left >= level))
        else:
            last_level = _level_of(launch, left + 1, _idle(outcomes, stage, 1))
            fits = (taken == 0) | (last_level <= level)
        return np.asarray(fits.all(axis=1))

    def places(self, outcomes: Outcomes, stage: int, level: int | None) -> Values:
        """Returns, for each outcome of a kind of unit, how many parts of clusters of a launch the
        unit takes.

        Args:
            outcomes: of the unit.
            stage: index of the launch.
            level: counts only the parts before the launch reaches this level; None: all parts.
        """
        launch = self.earlier[stage]
        room = np.asarray(outcomes.taken[:, stage] + outcomes.left[:, stage])
        if launch.way != "whole_tpcs":
            before = room if level is None else np.clip(level - (launch.most_room - room), 0, room)
            return np.asarray(before.sum(axis=1))
        room, idle = np.asarray(room[:, 0]), outcomes.idle[:, stage, 0] > 0
        if level is None:
            return room
        before = np.clip(level - (launch.most_room - room + 1), 0, room)
        at_idle = np.maximum(before, np.minimum(room, 1))
        return np.asarray(np.where(idle & (level > 0), at_idle, before))

    def solve(self, cp: Any, seconds: float) -> Answer:
        """Returns a solution at some combination of levels at which launches stop; None: there is
        none at any; False: that is not decided.

        Args:
            cp: CP-SAT's module.
            seconds: the remaining time.
        """
        deadline = time.monotonic() + seconds
        answer: Answer = None
        work = MAX_WORK
        all_outcomes = [np.ones(len(outcome.room), bool) for outcome in self.outcomes]
        for levels, masks in self._possible_levels((), all_outcomes):
            variables = sum(int(masks[group.outcomes].sum()) for group in self.groups)
            seconds_left = deadline - time.monotonic()
            if variables > MAX_VARIABLES or seconds_left <= 0 or work <= 0:
                return False
            solution, spent = self._solved_at(cp, levels, masks, seconds_left, work)
            work -= spent
            if solution is False:
                answer = False
            elif solution is not None:
                return solution
        return answer

    def _possible_levels(
        self, levels: tuple[int, ...], masks: list[Values]
    ) -> Iterator[tuple[tuple[int, ...], list[Values]]]:
        """Yields combinations of levels at which all launches may stop, as far as bounds do not
        rule them out; with each, for every kind of unit a mask of the outcomes that it allows.

        Args:
            levels: of the first launches, chosen already.
            masks: the outcomes that these levels allow, by kind of outcomes.
        """
        if not self._may_fit(masks):
            return
        stage = len(levels)
        if stage == len(self.earlier):
            yield levels, masks
            return
        for level in range(self._level_count(self.earlier[stage])):
            allowed = [
                mask & self.allowed(each, stage, level)
                for each, mask in zip(self.outcomes, masks, strict=True)
            ]
            yield from self._possible_levels((*levels, level), allowed)

    def _solved_at(
        self, cp: Any, levels: tuple[int, ...], masks: list[Values], seconds: float, work: float
    ) -> tuple[Answer, float]:
        """Returns the answer for one combination of levels (see solve()), and how much work it
        took, in the deterministic time of CP-SAT."""
        model = cp.CpModel()
        self.indicators = {}
        counts = self._add_counts(model, masks)
        self._add_sums(model, counts)
        for stage, launch in enumerate(self.earlier):
            if launch.waits_whole:
                continue
            if launch.way != "single":
                self._add_clusters(model, counts, stage, levels[stage])
            elif not launch.waits:
                self._add_preference(model, counts, stage, levels[stage])
        self._add_waiting(model, counts)
        self._add_room(model, counts)
        solution, spent = _run_solver(cp, model, seconds, work)
        if solution is None or solution is False:
            return solution, spent
        answer = []
        for group, variables in zip(self.groups, counts, strict=True):
            keys = {k: self._preference(group, k, levels) for k in variables}
            order = sorted(variables, key=keys.__getitem__)
            answer.append([(k, n) for k in order if (n := solution.value(variables[k]))])
        return answer, spent

    def _preference(self, group: Group, outcome: int, levels: tuple[int, ...]) -> tuple[int, ...]:
        """Returns a sort key of an outcome. Units that gave a block at a launch's last level come
        before those that kept one, since they are preferred."""
        outcomes, key = self.outcomes[group.outcomes], []
        for stage, launch in enumerate(self.earlier):
            taken, left = outcomes.taken[outcome, stage], outcomes.left[outcome, stage]
            last_level = _level_of(launch, left + 1, _idle(outcomes, stage, 1)[outcome])
            next_level = _level_of(launch, left, _idle(outcomes, stage, 0)[outcome])
            gave = ((taken > 0) & (last_level == levels[stage])).sum()
            kept = ((left > 0) & (next_level == levels[stage])).sum()
            key.append(int(kept) - int(gave))
        return tuple(key)

    def _may_fit(self, masks: list[Values]) -> bool:
        """Returns whether bounds of each kind of unit, with the outcomes of ``masks``, allow a
        solution at all."""
        if not all(mask.any() for mask in masks):
            return False
        units = self.units
        used = range(len(units))
        for stage, launch in enumerate(self.earlier):
            columns = [self.outcomes[k].blocks[masks[k], stage] for k in used]
            least = sum(units[k] * int(c.min()) for k, c in zip(used, columns, strict=True))
            most = sum(units[k] * int(c.max()) for k, c in zip(used, columns, strict=True))
            if least > launch.blocks or (most < launch.blocks and not launch.waits):
                return False
        if self.last.parts > 1:
            return True
        room = sum(units[k] * int(self.outcomes[k].room[masks[k]].min()) for k in used)
        return room < self._last_clusters()

    def _last_clusters(self) -> int:
        """Returns the number of clusters of the last launch; of blocks, if it has no clusters."""
        return self.last.blocks // (self.last.parts * self.last.on_part)

    def _add_counts(self, model: Any, masks: list[Values]) -> list[dict[int, Any]]:
        """Adds the main variables: how many units of each group have each outcome."""
        counts = []
        for group in self.groups:
            units_by_outcome = {
                int(k): model.new_int_var(0, group.units, "")
                for k in np.flatnonzero(masks[group.outcomes])
            }
            model.add(sum(units_by_outcome.values()) == group.units)
            counts.append(units_by_outcome)
        return counts

    def _weighted_sum(
        self, counts: Several[dict[int, Any]], weights: Several[Values], domain: int | None
    ) -> Any:
        """Returns an expression: the sum, over all units, of the weight of the outcome that the
        unit has.

        Args:
            counts: the main variables.
            weights: one per outcome, by kind of outcomes.
            domain: sums over its units only; None: over all units.
        """
        terms, factors = [], []
        for group, variables in zip(self.groups, counts, strict=True):
            if domain is not None and group.domain != domain:
                continue
            weight = weights[group.outcomes]
            for k, variable in variables.items():
                if weight[k]:
                    terms.append(variable)
                    factors.append(int(weight[k]))
        return _scalar(terms, factors)

    def _add_sums(self, model: Any, counts: list[dict[int, Any]]) -> None:
        """Requires that each launch has all its blocks resident; one that waits may have fewer."""
        for stage, launch in enumerate(self.earlier):
            sums = self._weighted_sum(
                counts, [outcome.blocks[:, stage] for outcome in self.outcomes], None
            )
            if launch.waits:
                model.add(sums <= launch.blocks)
            else:
                model.add(sums == launch.blocks)

    def _domains(self) -> list[int]:
        """Returns the numbers of the domains (GPCs), ascending."""
        return sorted({group.domain for group in self.groups})

    def _add_clusters(
        self, model: Any, counts: list[dict[int, Any]], stage: int, level: int
    ) -> None:
        """Adds how many clusters of a launch each GPC gets if the launch stops at a level. All that
        fit before the level enter. Then the GPCs get one each, in passes, while one fits."""
        launch = self.earlier[stage]
        size = launch.parts * launch.on_part
        most = launch.blocks // size
        taken = [outcome.taken[:, stage].sum(axis=1) for outcome in self.outcomes]
        passes = model.new_int_var(0, most, "")
        before_it = 1
        for domain in self._domains():
            clusters = model.new_int_var(0, most, "")
            model.add(self._weighted_sum(counts, taken, domain) == clusters * size)
            self._add_order(model, counts, stage, domain, clusters)
            if launch.waits:
                _ClusterBounds(self, model, counts, stage, domain, None).require_at_most(
                    clusters, []
                )
                continue
            in_last = model.new_bool_var("")  # the domain is in the last pass
            model.add(in_last <= before_it)
            before_it = in_last
            earlier = model.new_int_var(0, most, "")
            before = _ClusterBounds(self, model, counts, stage, domain, level)
            before.require_at_most(earlier, [])
            before.require_at_least(earlier, [])
            model.add(earlier <= clusters)
            model.add(clusters <= earlier + passes + in_last)
            is_full = model.new_bool_var("")
            model.add(clusters >= earlier + passes + in_last).only_enforce_if(is_full.negated())
            through = _ClusterBounds(self, model, counts, stage, domain, level + 1)
            through.require_at_most(clusters, [is_full])

    def _add_order(
        self, model: Any, counts: list[dict[int, Any]], stage: int, domain: int, clusters: Any
    ) -> None:
        """Requires that clusters take the places of a domain in order.

        A TPC has at most one part of each cluster. A TPC that takes fewer parts has no place left
        that precedes the last place taken on another TPC.
        """
        launch = self.earlier[stage]
        in_tpcs = launch.way == "whole_tpcs"
        ends: dict[tuple[int, int, int], list[Any]] = {}  # last level taken, first left, taken
        for group, variables in zip(self.groups, counts, strict=True):
            if group.domain != domain:
                continue
            outcomes = self.outcomes[group.outcomes]
            taken, left = outcomes.taken[:, stage], outcomes.left[:, stage]
            last = np.where(taken > 0, _level_of(launch, left + 1, _idle(outcomes, stage, 1)), -1)
            first = np.where(
                left > 0, _level_of(launch, left, _idle(outcomes, stage, 0)), _NO_LEVEL
            )
            for k, variable in variables.items():
                end = (int(last[k].max()), int(first[k].min()), int(taken[k, 0]))
                ends.setdefault(end, []).append(variable)
        is_more: dict[int, Any] = {}  # by n, the indicator that the domain has n clusters or more
        if in_tpcs:
            for number in range(1, max(taken for _, _, taken in ends) + 2):
                is_more[number] = model.new_bool_var("")
                model.add(clusters >= number).only_enforce_if(is_more[number])
                model.add(clusters < number).only_enforce_if(is_more[number].negated())
                too_many = [
                    variable
                    for end, variables_ in ends.items()
                    for variable in variables_
                    if end[2] >= number
                ]
                if too_many:
                    model.add(sum(too_many) == 0).only_enforce_if(is_more[number].negated())
        last = model.new_int_var(-1, self.most_position, "")
        behind: list[Any] = []  # negated indicator of the level behind this one
        for level in sorted({end[0] for end in ends if end[0] >= 0}, reverse=True):
            comes_to = model.new_bool_var("")
            at_last = [comes_to, *behind]
            behind = [comes_to.negated()]
            self._add_preference_in(model, counts, stage, level, domain, last, is_more, at_last)
            further = [
                variable
                for end, variables_ in ends.items()
                for variable in variables_
                if end[0] >= level
            ]
            model.add(sum(further) == 0).only_enforce_if(comes_to.negated())
            for number in sorted({end[2] for end in ends}) if in_tpcs else (0,):
                out = [
                    variable
                    for end, variables_ in ends.items()
                    for variable in variables_
                    if end[1] < level and (not in_tpcs or end[2] == number)
                ]
                if out:
                    when = [comes_to, is_more[number + 1]] if in_tpcs else [comes_to]
                    model.add(sum(out) == 0).only_enforce_if(when)

    def _add_preference(
        self, model: Any, counts: list[dict[int, Any]], stage: int, level: int
    ) -> None:
        """Requires that SMs up to one in the order of preference gave their room of this level."""
        ranks = [group.ranks for group in self.groups]
        last = model.new_int_var(-1, max(int(rank.max()) for rank in ranks), "")
        for group, variables in zip(self.groups, counts, strict=True):
            outcomes = self.outcomes[group.outcomes]
            taken, left = outcomes.taken[:, stage], outcomes.left[:, stage]
            gave, kept = (taken > 0) & (left == level), left == level + 1
            _add_order_of_units(model, variables, gave, kept, last, group.ranks)

    def _add_preference_in(
        self, model: Any, counts: list[dict[int, Any]], stage: int, level: int, domain: int,
        last: Any, is_more: dict[int, Any], when: list[Any],
    ) -> None:  # fmt: skip
        """Requires the order of preference at the last level at which a domain takes clusters. TPCs
        with a part of every cluster may keep a place, since no TPC has two parts of a cluster."""
        launch = self.earlier[stage]
        in_tpcs = launch.way == "whole_tpcs"
        skipped = []
        for group, variables in zip(self.groups, counts, strict=True):
            if group.domain != domain:
                continue
            outcomes = self.outcomes[group.outcomes]
            taken, left = outcomes.taken[:, stage], outcomes.left[:, stage]
            last_level = _level_of(launch, left + 1, _idle(outcomes, stage, 1))
            next_level = _level_of(launch, left, _idle(outcomes, stage, 0))
            gave = (taken > 0) & (last_level == level)
            kept = (left > 0) & (next_level == level)
            if not in_tpcs:
                _add_order_of_units(model, variables, gave, kept, last, group.positions, when)
                continue
            gave, kept, taken = gave[:, 0], kept[:, 0], taken[:, 0]
            given = _count_up_to(model, last, group.positions[:, 0])
            _add_bound(model, variables, gave, given, when)
            # An idle TPC has no place at the next level. So one that is not idle and has as much
            # room may be behind it.
            is_like_idle = (outcomes.idle[:, stage, 0] == 0) & (
                taken + outcomes.left[:, stage, 0] == launch.most_room
            )
            skips = model.new_int_var(0, launch.parts - 1, "")
            skipped.append(skips)
            for number in sorted({int(taken[k]) for k in variables}):
                some = kept & (taken <= number)
                behind = group.units - given
                _add_bound(
                    model, variables, some & ~is_like_idle, behind, [*when, is_more[number + 1]]
                )
                _add_bound(model, variables, some, behind + skips, [*when, is_more[number + 1]])
        if skipped:
            model.add(sum(skipped) <= launch.parts - 1)

    def _add_waiting(self, model: Any, counts: list[dict[int, Any]]) -> None:
        """Requires that pending blocks enter in whole clusters, and no more than are pending."""
        for launch in self.waiting:
            blocks = [outcome.blocks[:, launch.place] for outcome in self.outcomes]
            if launch.together == 1:
                model.add(self._weighted_sum(counts, blocks, None) <= launch.most)
                continue
            all_clusters = []
            for domain in self._domains():
                clusters = model.new_int_var(0, launch.most // launch.together, "")
                all_clusters.append(clusters)
                model.add(self._weighted_sum(counts, blocks, domain) <= clusters * launch.together)
                if launch.on_tpc > 1:
                    self._add_entering_tpcs(model, counts, launch, domain, clusters)
            model.add(sum(all_clusters) * launch.together <= launch.most)

    def _add_entering_tpcs(
        self, model: Any, counts: list[dict[int, Any]], launch: Waiting, domain: int, clusters: Any
    ) -> None:
        """Requires that pending clusters enter only domains with enough TPCs that have room."""
        units = sum(group.units for group in self.groups if group.domain == domain)
        some = model.new_bool_var("")
        barred = [(outcome.barred >> launch.place & 1) for outcome in self.outcomes]
        parts = launch.together // launch.on_tpc
        model.add(self._weighted_sum(counts, barred, domain) <= units - parts).only_enforce_if(some)
        model.add(clusters == 0).only_enforce_if(some.negated())
        for group, variables in zip(self.groups, counts, strict=True):
            if group.domain != domain:
                continue
            entered = self.outcomes[group.outcomes].blocks[:, launch.place] // launch.on_tpc
            for number in sorted(set(entered.tolist())):
                more = [variable for k, variable in variables.items() if entered[k] >= number]
                if number > 1 and more:
                    enough = model.new_bool_var("")
                    model.add(clusters >= number).only_enforce_if(enough)
                    model.add(sum(more) == 0).only_enforce_if(enough.negated())

    def _add_room(self, model: Any, counts: list[dict[int, Any]]) -> None:
        """Requires that not all of the last launch finds room."""
        wanted, parts = self._last_clusters(), self.last.parts
        rooms = [outcome.room for outcome in self.outcomes]
        if parts == 1:
            model.add(self._weighted_sum(counts, rooms, None) <= wanted - 1)
            return
        fits = []
        for domain in self._domains():
            most = max(
                sum(
                    group.units * int(self.outcomes[group.outcomes].room.max())
                    for group in self.groups
                    if group.domain == domain
                )
                // parts,
                0,
            )
            clusters = model.new_int_var(0, most, "")
            fits.append(clusters)
            _ClusterBounds(self, model, counts, None, domain, None).require_at_most(clusters, [])
        model.add(sum(fits) <= wanted - 1)


class _ClusterBounds:
    """Constraints on how many clusters of a launch fit into a domain's places.

    Each part of a cluster that takes whole TPCs is on another TPC. So if c clusters fit, the sum
    of min(places, c) over TPCs is at least c times the parts, and otherwise less.
    """

    def __init__(
        self, program: _IntegerProgram, model: Any, counts: list[dict[int, Any]], stage: int | None,
        domain: int, level: int | None,
    ) -> None:  # fmt: skip
        self.program, self.model, self.counts, self.domain = program, model, counts, domain
        own = program.last if stage is None else program.earlier[stage]
        self.parts, self.in_tpcs = own.parts, own.way == "whole_tpcs"
        self.places = [
            outcome.room if stage is None else program.places(outcome, stage, level)
            for outcome in program.outcomes
        ]
        most = [
            int(self.places[group.outcomes][list(each)].max())
            for group, each in zip(program.groups, counts, strict=True)
            if group.domain == domain and each
        ]
        # If this many clusters fit, no TPC has more places than clusters.
        self.enough = max(most, default=0) if self.in_tpcs and own.parts > 1 else 0

    def require_at_most(self, clusters: Any, when: list[Any]) -> None:
        """Requires, if all of ``when`` hold, that no more than ``clusters`` clusters fit."""
        for number in range(self.enough - 1):
            self._add_for_count(
                clusters, number, when,
                self._sum_of_places(number + 1) <= (number + 1) * self.parts - 1,
            )  # fmt: skip
        all_of_them = self._sum_of_places(None) <= (clusters + 1) * self.parts - 1
        self._add_for_count(clusters, None, when, all_of_them)

    def require_at_least(self, clusters: Any, when: list[Any]) -> None:
        """Requires, if all of ``when`` hold, that ``clusters`` clusters fit."""
        for number in range(1, self.enough - 1):
            self._add_for_count(
                clusters, number, when, self._sum_of_places(number) >= number * self.parts
            )
        self._add_for_count(
            clusters, None, when, self._sum_of_places(None) >= clusters * self.parts
        )

    def _sum_of_places(self, limit: int | None) -> Any:
        """Returns an expression: the sum over units of min(places, limit); None: without a
        limit.
        """
        places = (
            self.places if limit is None else [np.minimum(place, limit) for place in self.places]
        )
        return self.program._weighted_sum(self.counts, places, self.domain)

    def _add_for_count(
        self, clusters: Any, number: int | None, when: list[Any], constraint: Any
    ) -> None:
        """Adds a constraint that counts, if all of ``when`` hold, only where the variable
        ``clusters`` is ``number``; None: where it is ``enough - 1`` or more."""
        few = self.enough - 1
        if number is None and few <= 0:
            self.model.add(constraint).only_enforce_if(when)
            return
        key = (clusters.index, few if number is None else number, number is None)
        known = self.program.indicators.get(key)
        if known is None:
            known = self.program.indicators[key] = self.model.new_bool_var("")
            if number is None:
                self.model.add(clusters >= few).only_enforce_if(known)
                self.model.add(clusters < few).only_enforce_if(known.negated())
            else:
                self.model.add(clusters == number).only_enforce_if(known)
                self.model.add(clusters != number).only_enforce_if(known.negated())
        self.model.add(constraint).only_enforce_if([*when, known])


def _idle(outcomes: Outcomes, stage: int, taken: int) -> Values:
    """Returns for each outcome and SM whether its TPC was idle and gave ``taken`` places. The first
    place of an idle TPC skips a level."""
    return np.asarray((outcomes.idle[:, stage] > 0) & (outcomes.taken[:, stage] == taken))


def _level_of(stage: Stage, room: Values, idle: Values) -> Values:
    """Returns the level at which SMs with this room give their next place; 0 is the level with the
    most room."""
    if stage.way == "single":
        return room - 1
    if stage.way == "balanced":
        return stage.most_room - room
    return np.where(idle, 0, stage.most_room - room + 1)


def _count_up_to(model: Any, last: Any, places: Values) -> Any:
    """Returns a variable that equals how many of ``places`` are at most the variable ``last``."""
    places = np.sort(places)
    count = model.new_int_var(0, len(places), "")
    greatest = int(places.max())
    at = model.new_int_var(0, greatest + 1, "")
    model.add_min_equality(at, [last + 1, greatest + 1])
    table = np.searchsorted(places, np.arange(-1, greatest + 1), side="right").tolist()
    model.add_element(at, table, count)
    return count


def _add_order_of_units(
    model: Any, counts: dict[int, Any], gave: Values, kept: Values, last: Any,
    places: Values, when: list[Any] | None = None,
) -> None:  # fmt: skip
    """Requires that units whose place is up to ``last`` gave their block of the level, and that the
    others kept it.

    Args:
        counts: units by outcome.
        gave, kept: bool (outcomes, SMs of a unit).
        places: of the units' SMs, (units, SMs of a unit).
        when: indicators without which nothing is required.
    """
    if not any(gave[k].any() or kept[k].any() for k in counts):
        return
    units = len(places)
    some, whole = (
        _count_up_to(model, last, each) for each in (places.min(axis=1), places.max(axis=1))
    )
    _add_bound(model, counts, gave.all(axis=1), whole, when)
    _add_bound(model, counts, kept.any(axis=1), units - whole, when)
    if places.shape[1] == 1:
        return
    _add_bound(model, counts, gave.any(axis=1), some, when)
    _add_bound(model, counts, kept.all(axis=1), units - some, when)
    _add_bound(model, counts, gave.any(axis=1) & kept.any(axis=1), some - whole, when)


def _add_bound(
    model: Any, counts: dict[int, Any], weight: Weights, bound: Any, when: Any = None
) -> None:
    """Requires, if all of ``when`` hold, that the sum of the weights of all units is at most
    ``bound``. A unit has the weight of its outcome; ``counts``: how many units have each outcome.
    """
    units = {k: one for k, one in counts.items() if weight[k]}
    if units:
        holds = model.add(_scalar(list(units.values()), [int(weight[k]) for k in units]) <= bound)
        if when is not None:
            holds.only_enforce_if(when)


def _scalar(terms: list[Any], factors: list[int]) -> Any:
    """Returns an expression: the sum of each variable times its factor."""
    return _cp_model().LinearExpr.weighted_sum(terms, factors)


def _run_solver(cp: Any, model: Any, seconds: float, work: float) -> tuple[Any, float]:
    """Solves a model. Returns the solver with the solution (None: there is none; False: that is not
    decided), and how much work it took. Ctrl-C ends it.

    Most programs take milliseconds. Of the others a tighter linear relaxation decides some. In
    place of the solver: None if there is no solution, False if that is not decided.
    """
    deadline, spent = time.monotonic() + seconds, 0.0
    for linear, most in ((1, min(_FIRST_WORK, work)), (2, work - _FIRST_WORK)):
        left = deadline - time.monotonic()
        if most <= 0 or left <= 0:
            break
        found = cp.CpSolver()
        found.parameters.num_workers = 1
        found.parameters.linearization_level = linear
        found.parameters.cp_model_probing_level = 0
        found.parameters.symmetry_level = 0
        found.parameters.max_deterministic_time = most
        if left < math.inf:
            found.parameters.max_time_in_seconds = left
        found.parameters.catch_sigint_signal = False
        status = _run(found, model)
        spent += found.response_proto.deterministic_time
        if status == cp.INFEASIBLE:
            return None, spent
        if status in (cp.OPTIMAL, cp.FEASIBLE):
            return found, spent
    return False, spent


def _run(solver: Any, model: Any) -> Any:
    """Returns the status of a solver that runs in a thread, so that Ctrl-C stops it."""
    status: list[Any] = []
    worker = threading.Thread(target=lambda: status.append(solver.solve(model)), daemon=True)
    worker.start()
    try:
        while worker.is_alive():
            worker.join(0.1)
    except BaseException:
        solver.stop_search()
        worker.join()
        raise
    return status[0]
