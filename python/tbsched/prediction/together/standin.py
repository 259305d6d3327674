"""Until the core answers."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np

from tbsched import _core


def _play(model, events, state):
    return _core.predict(model, _core.Sequence(events), state, False)


def capacity(model, events, state):
    from dataclasses import replace

    *beside, launch = events
    rows = _play(model, events, state)
    for k, (_, final, _, _) in enumerate(rows[:-1]):
        if (final < 0).any():
            raise ValueError(f"beside[{k}]: not resident whole")
    smid = rows[-1][1]
    one = replace(launch, blocks=launch.cluster)
    _, words = _core.capacities(model, _core.Sequence([*events, one]), state)[-1]
    blocks = _core.capacities(model, _core.Sequence([*events, one]), state)[-1][0]
    codes = [_core.CAUSES.index(w) if b == 0 else 0 for w, b in zip(words, blocks, strict=True)]
    return smid[smid >= 0], np.array(codes, np.uint8)


def coresident(model, launches, groups, after, plays):
    from tbsched.program.events.release import Release

    members = {k for group in groups for k in group}
    played = 0
    states = model.states()[:2]
    level = [()]
    while level:
        following = []
        for steps in level:
            arrived = [k for what, k in steps if what == "launch"]
            gone = {k for what, k in steps if what == "release"}
            place = {k: n for n, k in enumerate(arrived)}
            events = [launches[k] if w == "launch" else Release(place[k]) for w, k in steps]
            whole = set(arrived)
            for state, components in states if events else []:
                rows = _play(model, events, state)
                played += 1
                for k, (_, final, limiter, _) in zip(arrived, rows, strict=True):
                    if (final < 0).any():
                        whole.discard(k)
                        for number, group in enumerate(groups):
                            if k in group:
                                return SimpleNamespace(
                                    verdict="unsafe",
                                    proof="",
                                    full_sms=[],
                                    events=list(steps),
                                    state=components,
                                    group=number,
                                    stranded=k,
                                    refusal=_core.CAUSES.index(limiter),
                                    behind=-1,
                                    plays=played,
                                )
            for k in range(len(launches)):
                if k not in arrived and all(a in whole for a, b in after if b == k):
                    following.append((*steps, ("launch", k)))
                elif k in arrived and k not in members and k not in gone:
                    following.append((*steps, ("release", k)))
        level = following
    return SimpleNamespace(
        verdict="safe",
        proof="played",
        full_sms=[],
        events=[],
        state={},
        group=-1,
        stranded=-1,
        refusal=0,
        behind=-1,
        plays=played,
    )
