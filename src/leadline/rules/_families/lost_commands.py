"""Commands that storage did not carry out (aborted, reset, failed), counted per second on what the host sees of it."""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.derived.disks import lowest_kind
from leadline.estate.language.templates import Over, over_threshold
from leadline.rules._families.symptoms import GUEST_WAITS_FOR_DISK, SLOW_DEVICE, WAITS_FOR_DEVICE


def given_up_meta(code: str, metric: str, noun: str, explains: tuple[str, ...] = ()) -> RuleMeta:
    """META of a rule about commands that were given up on: rare, and every one of them counts.

    Args:
        code: of the rule.
        metric: how many per second.
        noun: what is counted, in the plural.
        explains: symptoms beside those of a slow device.
    """
    return RuleMeta(
        code=code,
        layer=Layer.STORAGE_PATH,
        severity=Severity.CRITICAL,
        causes=("disk-stalled",),
        needs=(metric,),
        thresholds={
            "warn": Threshold(0.0, "per_s", "EsxtopDrill c_map.csv"),
            "crit": Threshold(1.0, "per_s", "Yellow-Bricks esxtop thresholds"),
            "duration": Threshold(0.0, "s", f"Judgement: one sample is enough, {noun} are rare"),
        },
        explains=(*explains, *SLOW_DEVICE, *WAITS_FOR_DEVICE, *GUEST_WAITS_FOR_DISK),
    )


def lost_commands(context: RuleContext, metric: str, noun: str) -> Iterator[Finding]:
    """Findings per device (per adapter where no device was recorded) and NFS volume."""
    kinds = lowest_kind(context, metric)
    yield from over_threshold(context, Over(metric, noun, (*kinds, EntityKind.DATASTORE)))
