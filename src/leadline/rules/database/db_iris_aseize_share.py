"""Processes of IRIS wait for each other inside the instance.

Finds:
    Above 3 % (warning) or 5 % (critical) of seizes of global resources that had to wait, for at least a minute, while
    the instance does 1000 or more global references per second.

Why:
    A seize that does not succeed at once spins or sleeps until the other process is done. It costs CPU and time, grows
    with the number of CPUs, and no disk is to blame.

Do:
    Find the hot global: a counter everybody increments, one node all processes set. Spread it ($SEQUENCE, one node per
    process), shorten what is done under it, and do not add vCPUs before that.

When it is wrong:
    On a VM with ready time or co-stop a process is taken off the CPU while it holds a resource, and the others wait for
    it: clear the CPU first.

Sources:
    yaspe documentation (IRIS KPI reference): share of ASeizes. InterSystems documentation, "Monitoring Performance
    Using ^mgstat".
    Judgement: a minute, and a least load.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import Layer, Severity
from leadline.estate.language.templates import Over, over_threshold

_YASPE = "yaspe documentation (IRIS KPI reference)"

META = RuleMeta(
    code="DBS155",
    layer=Layer.DATABASE,
    severity=Severity.LOW,
    causes=("lock-waits",),
    needs=("db_iris_seize_waits_pct",),
    uses=("db_iris_glorefs_per_s",),
    thresholds={
        "warn": Threshold(3.0, "pct", _YASPE),
        "crit": Threshold(5.0, "pct", _YASPE),
        "load_min": Threshold(1000.0, "per_s", "Judgement: a share of few seizes says nothing"),
        "duration": Threshold(60.0, "s", "Judgement: longer than a burst of one job"),
    },
    clears=False,
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per instance."""
    spec = Over("db_iris_seize_waits_pct", "share of seizes that waited", load=("db_iris_glorefs_per_s",))
    yield from over_threshold(context, spec)
