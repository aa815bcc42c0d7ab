"""The CPU credits of a cloud machine are used up: its CPUs are capped at what it is guaranteed.

Finds:
    At most 1 CPU credit left (low severity: at most 5) for at least 5 min on a machine that does not run on credits it
    pays for later.

Why:
    Burstable machines (AWS t2, t3, t4g and db.t classes, Azure B-series, burstable flexible servers) are guaranteed a
    part of their CPUs, 5 to 40 % each. More of it takes credits. Without credits the cloud stops the CPUs for the rest
    of each moment: all that runs on them takes longer, waits for disks included, and tools in the guest see steal time
    or a CPU that never gets above a level.

Do:
    Take a machine without CPU credits (AWS m or r classes, Azure D or E series), or a larger burstable one. AWS: allow
    it to go on and pay, `aws ec2 modify-instance-credit-specification --instance-credit-specification
    InstanceId=ID,CpuCredits=unlimited`. Until then move jobs that are not urgent to other hours. Expect statements to
    take what they took with credits.

When it is wrong:
    A machine that was just started may have no credits yet. A machine with unlimited credits has none left either and
    is not capped: it owes (CPUSurplusCreditBalance), where that was exported.

Sources:
    Amazon EC2 User Guide, "Key concepts for burstable performance instances": CPUCreditBalance; without credits CPU
    use is brought down to the baseline. Microsoft Learn, "B-series burstable virtual machine sizes".
    Judgement: 1 and 5 credits (a minute and five minutes of one CPU); 5 min, the period of the counter.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.capture import SeriesGroup
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.language.templates import Over, over_threshold

_OWED = "guest_cpu_credits_owed_count"

META = RuleMeta(
    code="GST189",
    layer=Layer.GUEST,
    severity=Severity.MEDIUM,
    causes=("cpu-capped",),
    needs=("guest_cpu_credits_count",),
    uses=(_OWED,),
    thresholds={
        "warn": Threshold(5.0, "count", "Judgement: five minutes of one CPU"),
        "crit": Threshold(1.0, "count", "Judgement: a minute of one CPU"),
        "duration": Threshold(300.0, "s", "Judgement: the period of the counter"),
    },
    explains=("guest-run-queue-high", "guest-load-average-per-core", "guest-steal-time"),
    clears=False,
    judgement=True,
)


def _without_debts(context: RuleContext, group: SeriesGroup) -> NDArray[np.floating[Any]]:
    """The credits [k, n]; NaN where the machine runs on credits that it owes."""
    owed = context.aligned(group, _OWED)
    if owed is None:
        return np.asarray(group.values)
    with np.errstate(invalid="ignore"):
        return np.where(owed > 0, np.nan, group.values)


_SPEC = Over(
    "guest_cpu_credits_count",
    "CPU credits left",
    (EntityKind.GUEST,),
    below=True,
    inclusive=True,
    value=_without_debts,
    says="the CPUs of {where} are capped by the cloud: {noun} {value}",
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per machine."""
    yield from over_threshold(context, _SPEC)
