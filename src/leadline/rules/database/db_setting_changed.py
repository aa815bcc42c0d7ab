"""A setting of the database server was changed as an incident began.

Finds:
    A setting that got another value, by the server's log, from two minutes before an incident to its middle. Of medium
    severity from 10 s before it began to 10 s after, else low; low also where the setting only says what is logged or
    counted.

Why:
    What changed just before it became slow is the first to look at. A setting that is read anew (ALTER SYSTEM, a file
    and a reload) takes effect at once in every session, and no statistic of the server shows it.

Do:
    Set it back and see whether the incident ends: ALTER SYSTEM RESET name; SELECT pg_reload_conf(); or undo what was
    changed in postgresql.conf. pg_settings tells what is in force and from which file (sourcefile, sourceline).

When it is wrong:
    Somebody who sees an incident begin may change a setting against it. Tools that tune a server change several at a
    time, of which one may matter.

Sources:
    PostgreSQL documentation, "Setting Parameters"; the server's messages in guc-file.l, ProcessConfigFile.
    Judgement: an incident that begins within 10 s of a change began with it; after two minutes it is chance.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import Blames, Layer, Severity
from leadline.rules._families.setting_changes import BEGIN_SHARE, LoggedChange, setting_changes

_NS_PER_S = 1e9
_ONLY_TOLD = ("log_", "track_")  # what such settings change is what the server tells

META = RuleMeta(
    code="DBS176",
    layer=Layer.DATABASE,
    severity=Severity.MEDIUM,
    needs=("db_setting_changes_per_s",),
    thresholds={
        "before": Threshold(120.0, "s", "Judgement: what was changed longer ago took effect before"),
        "near": Threshold(10.0, "s", "Judgement: a reload takes effect within seconds"),
    },
    clears=False,
    accuses=Blames.SETTING,
    of_incident=True,
    judgement=True,
)


def check(context: RuleContext) -> Iterator[Finding]:
    """A finding per database server, with every change of that time in its evidence."""
    if context.incident is None:
        return
    by_server: dict[object, list[tuple[float, LoggedChange]]] = {}
    window = context.incident.window
    for change in setting_changes(context):
        after_s = (change.at_ns - window.start_ns) / _NS_PER_S
        if -context.limit("before") <= after_s <= BEGIN_SHARE * window.duration_s:
            by_server.setdefault(change.entity.parent, []).append((after_s, change))
    for changes in by_server.values():
        after_s, nearest = min(changes, key=lambda one: (_only_told(one[1]), abs(one[0])))
        server = nearest.entity.parent or nearest.entity
        is_near = abs(after_s) <= context.limit("near") and not _only_told(nearest)
        ordered = [nearest, *(change for _, change in changes if change is not nearest)]
        yield context.finding(
            server,
            f"On {server.label()} {nearest.clause}, {_when(after_s)}",
            [change.evidence for change in ordered],
            severity=Severity.MEDIUM if is_near else Severity.LOW,
            windows=(window,),
        )


def _only_told(change: LoggedChange) -> bool:
    return change.name.casefold().startswith(_ONLY_TOLD)


def _when(after_s: float) -> str:
    if abs(after_s) < 1.0:
        return "in the second in which it became slow"
    return f"{abs(after_s):.0f} s {'after' if after_s > 0 else 'before'} it became slow"
