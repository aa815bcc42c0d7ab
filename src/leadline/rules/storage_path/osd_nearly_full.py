"""An OSD of a Ceph cluster is nearly full.

Finds:
    An OSD that is filled to 85 % (warning) or 90 % (critical) or more; or a cluster that counts OSDs as nearly full.

Why:
    At 90 % no copies are moved to it any more, so a failed disk cannot be replaced by others. At 95 % the cluster
    stops all writes of the pools that lie on it: VMs stand still.

Do:
    Delete what is not needed (snapshots, old images), then move data to emptier OSDs: ceph osd df; ceph balancer
    on; or ceph osd reweight-by-utilization. Add OSDs. Do not raise the full ratio to win time without a plan.

When it is wrong:
    A cluster whose ratios were raised on purpose (ceph osd dump, nearfull_ratio).

Sources:
    Ceph documentation, storage capacity: mon_osd_nearfull_ratio 0.85, mon_osd_backfillfull_ratio 0.90,
    mon_osd_full_ratio 0.95.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.language.templates import Over, over_threshold

META = RuleMeta(
    code="STO198",
    layer=Layer.STORAGE_PATH,
    severity=Severity.HIGH,
    causes=("disk-full",),
    needs=("osd_used_pct|osd_near_full_count",),
    thresholds={
        "warn": Threshold(85.0, "pct", "Ceph, mon_osd_nearfull_ratio"),
        "crit": Threshold(90.0, "pct", "Ceph, mon_osd_backfillfull_ratio"),
        "count": Threshold(0.0, "count", "Ceph, OSD_NEARFULL"),
        "duration": Threshold(20.0, "s", "Judgement: fill does not come and go"),
    },
    clears=False,
)
_SHOWN_S = 60.0  # Judgement: what is filled stays filled


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per OSD; of the cluster where no OSD is named."""
    of_osds = Over("osd_used_pct", "fill", (EntityKind.DEVICE,), inclusive=True, averaged_s=_SHOWN_S)
    findings = list(over_threshold(context, of_osds))
    yield from findings
    if not findings:
        counted = Over(
            "osd_near_full_count",
            "OSDs nearly full",
            (EntityKind.CLUSTER,),
            averaged_s=_SHOWN_S,
            warn="count",
            crit="none",
            says="{value} OSDs of {where} are nearly full",
        )
        yield from over_threshold(context, counted)
