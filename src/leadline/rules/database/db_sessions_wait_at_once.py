r"""Most sessions at work wait for the same thing, in a snapshot of them.

Finds:
    A snapshot of active sessions, or up to three, in which at least 3 sessions and half of all that are at work wait
    for reads of data files, for the log, or for temporary files (PostgreSQL's wait events).

Why:
    What most wait for at a moment is what most of the time goes to, if the moment is a usual one. A wait says where
    the time goes, not why: a slow disk, a limit, or more to read than before look alike.

Do:
    Take more snapshots: the statement again with \watch 1, or leadline collect postgresql. Record the disk meanwhile
    (iostat -x -t 1), which tells whether a request is slow or there are too many.

When it is wrong:
    One moment is one moment: a checkpoint or the start of a report passes.

Sources:
    PostgreSQL documentation, "The Cumulative Statistics System": wait events of the classes IO and LWLock.
    Judgement: three of five is more than chance; with four snapshots or more the account of the time tells it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

import numpy as np

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.entities import Entity
from leadline.core.model.finding import Evidence, Finding, Window
from leadline.core.model.units import show
from leadline.core.model.vocabulary import Layer, Severity

_WAITS = "db_wait_event_sessions_count"
_SAMPLES_MAX = 3
# What a wait event is a wait for, by what its name begins with.
_KINDS = {
    "IO:DataFile": "reads of data files",
    "LWLock:WALWrite": "the log",
    "IO:WAL": "the log",
    "IO:BufFile": "temporary files",
    "IO:BuffileRead": "temporary files",
    "IO:BuffileWrite": "temporary files",
}

META = RuleMeta(
    code="DBS193",
    layer=Layer.DATABASE,
    severity=Severity.MEDIUM,
    needs=(_WAITS,),
    thresholds={
        "least": Threshold(3.0, "count", "Judgement: two sessions may be chance"),
        "share": Threshold(0.5, "ratio", "Judgement: of all that are at work"),
    },
    clears=False,
    is_wait=True,
    judgement=True,
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per server."""
    for group in context.of(_WAITS):
        if len(group.times_ns) > _SAMPLES_MAX:
            continue
        means = np.nan_to_num(group.values.astype(np.float64)).mean(axis=1)
        waiting: dict[Entity, dict[str, dict[str, float]]] = defaultdict(lambda: defaultdict(dict))
        total: dict[Entity, float] = defaultdict(float)
        for event, mean in zip(group.entities, means.tolist(), strict=True):
            server = event.parent or event
            total[server] += mean
            kind = next((kind for start, kind in _KINDS.items() if event.name.startswith(start)), "")
            if kind and mean > 0:
                waiting[server][kind][event.name] = mean
        for server, by_kind in waiting.items():
            kind, events = max(by_kind.items(), key=lambda one: sum(one[1].values()))
            count = sum(events.values())
            if count < context.limit("least") or count < context.limit("share") * total[server]:
                continue
            longest = sorted(events.items(), key=lambda event: -event[1])
            names = ", ".join(f"{name} {show(mean, 'count')}" for name, mean in longest)
            line = Evidence(
                f"sessions of {server.label()} at work: {show(total[server], 'count')}; of them wait for {names}",
                metric=_WAITS,
                entity=server,
                statistic="mean",
                value=count,
                unit="count",
                source=context.source_name(group),
            )
            end = int(group.times_ns[-1])
            yield context.finding(
                server,
                f"{show(count, 'count')} of {show(total[server], 'count')} sessions at work wait for {kind}",
                [line],
                windows=(Window(int(group.times_ns[0]), end),),
                score=count / total[server],
            )
