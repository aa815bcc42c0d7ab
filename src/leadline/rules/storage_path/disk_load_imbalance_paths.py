"""One path carries nearly all of a device's I/O although several share the work.

Finds:
    Devices with two or more recorded paths where the busiest takes more than 70 % of their commands (critical: 90 %)
    for at least 60 s, while they do 50 commands per second or more. Devices known to use one path at a time (Fixed,
    Most Recently Used) are left out; where the policy is not known the finding is low.

Why:
    Round Robin is there so that adapters, fabric ports and array controllers share the load. When one path does it all,
    its port queue fills while the others are idle, and that port's limits are the device's limits.

Do:
    Check the path policy of the device and the state of its paths, then zoning and masking: each adapter should see
    ports of both controllers. Where Round Robin changes the path only after 1000 commands, let it do so after each
    one or by latency, as the array's maker says.

When it is wrong:
    With ALUA only paths to the controller that owns the LUN are used: one such path among two is all there is. The
    latency-based mode leaves slow paths aside on purpose.

Sources:
    vSphere 7.0 Storage guide, Round Robin path policy and its latency mechanism; Broadcom KB 371368.
    Judgement: 70 and 90 %; two equal paths carry 50 % each, and sampling alone does not reach 70 %.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.capture import SeriesGroup
from leadline.core.model.entities import Entity
from leadline.core.model.finding import Evidence, Finding
from leadline.core.model.units import show
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.arithmetic.episodes import Episode, find_episodes
from leadline.estate.knowledge.paths import ROUND_ROBIN, path_policy, paths_by_device

META = RuleMeta(
    code="STO133",
    layer=Layer.STORAGE_PATH,
    severity=Severity.MEDIUM,
    causes=("disk-busy-with-others",),
    needs=("disk_iops", "device.paths"),
    thresholds={
        "warn": Threshold(70.0, "pct", "Judgement: two equal paths carry 50 % each"),
        "crit": Threshold(90.0, "pct", "Judgement: the other paths are as good as unused"),
        "load_min": Threshold(50.0, "per_s", "Judgement: few commands fall unevenly by chance"),
        "duration": Threshold(60.0, "s", "Judgement: long beside the turns Round Robin takes"),
    },
    judgement=True,
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per device whose paths are known and were recorded."""
    wanted = paths_by_device(context.inventory)
    for group in context.of("disk_iops", EntityKind.PATH):
        row_of = {entity: row for row, entity in enumerate(group.entities)}
        for device, paths in wanted.items():
            rows = [row_of[path] for path in paths if path in row_of]
            policy = path_policy(context.inventory, device)
            if len(rows) > 1 and policy in (None, ROUND_ROBIN):
                yield from _judged(context, group.take(rows), device, known=policy is not None)


def _judged(context: RuleContext, paths: SeriesGroup, device: Entity, *, known: bool) -> Iterator[Finding]:
    rates = np.nan_to_num(np.asarray(paths.values, dtype=np.float64))
    total = rates.sum(axis=0)
    loaded = (total >= context.limit("load_min")) & np.isfinite(paths.values).all(axis=0)
    share = np.where(loaded, 100.0 * rates.max(axis=0) / np.where(loaded, total, 1.0), np.nan)[np.newaxis, :]
    whole = replace(paths, entities=[device], values=share)
    met = loaded & (share > context.limit("warn"))
    episodes = list(find_episodes(whole, met, share, context.limit("duration")))
    if episodes:
        worst = max(episodes, key=lambda episode: episode.median)
        busiest = paths.entities[int(np.argmax(rates[:, worst.met_indices].sum(axis=1)))]
        yield replace(_finding(context, worst, busiest, known=known), windows=tuple(e.window for e in episodes))


def _finding(context: RuleContext, episode: Episode, busiest: Entity, *, known: bool) -> Finding:
    device, share = episode.entity, episode.median
    severity = META.severity if share > context.limit("crit") else META.severity.lowered()
    evidence = Evidence(
        f"{busiest.name} took {show(share, 'pct')} of the commands of {device.label()} for {episode.held_s:.0f} s",
        metric="disk_iops",
        entity=busiest,
        statistic="median",
        value=share,
        threshold=context.limit("warn"),
        unit="pct",
        source=context.source_name(episode.group),
    )
    return context.finding(
        device,
        f"{show(share, 'pct')} of the I/O of {device.label()} goes over one path, {busiest.name}",
        [evidence],
        severity=severity if known else Severity.LOW,
        score=share / context.limit("warn"),
        guessed=() if known else (f"that {device.label()} uses Round Robin",),
    )
