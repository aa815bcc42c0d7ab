"""Several incidents in one call: recordings that do not touch are judged each by itself, and every incident is told."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benches.incidents.judging import causes_of
from benches.incidents.recordings import TRUTH, Truth, ns_of, unpack
from leadline.app.diagnose.diagnosing import diagnose, metrics_read
from leadline.app.diagnose.stretches import combined, stretches
from leadline.app.read.importing import import_paths
from leadline.core.contracts.importer import Request
from leadline.core.io.yaml_files import read_model
from leadline.core.model.answer import Disk, Reason
from leadline.core.model.capture import Capture, CaptureBuilder
from leadline.core.model.entities import Entity
from leadline.core.model.finding import Window
from leadline.core.model.vocabulary import EntityKind
from tests.conftest import ROOT

S = 1_000_000_000
GUEST = Entity(EntityKind.GUEST, "db01")
DRAWN = [
    ("iops-limit-data/1", "lock-waits/2"),
    ("missing-index/3", "costly-query/1"),
    ("connections/3", "cold-cache/3", "network-narrow/3"),
    ("disk-full/3", "slow-disk/1"),
]


def recorded(name: str, first_s: int, count: int = 60, step_s: int = 1) -> Capture:
    builder = CaptureBuilder(name, "iostat", "sysstat")
    times = S * (first_s + step_s * np.arange(1, count + 1, dtype=np.int64))
    builder.add_series("guest_cpu_busy_pct", GUEST, times, np.full(count, 5.0), interval_s=float(step_s))
    return builder.build()


def test_recordings_that_overlap_or_follow_each_other_are_one_stretch() -> None:
    whole = Capture.merged([recorded("a", 0), recorded("b", 30), recorded("c", 93)])
    assert stretches(whole) == (whole,)
    days = Capture.merged([recorded("sa01", 0, 144, 600), recorded("sa02", 86_400, 144, 600)])
    assert stretches(days) == (days,)


def test_recordings_of_other_times_are_stretches_of_their_own() -> None:
    parts = stretches(Capture.merged([recorded("a", 0), recorded("b", 300), recorded("c", 310)]))
    assert [{part.sources[group.source].name for group in part.groups} for part in parts] == [{"a"}, {"b", "c"}]


def test_a_history_of_many_pieces_is_not_parted() -> None:
    whole = Capture.merged([recorded(str(i), 600 * i) for i in range(12)])
    assert stretches(whole) == (whole,)


def test_a_stretch_that_was_not_looked_at_keeps_another_from_clearing_all() -> None:
    unknown = replace(diagnose(recorded("a", 0)).answer, disk=Disk.UNKNOWN, because=Reason.TOO_SHORT)
    quick = replace(unknown, disk=Disk.NO, because=Reason.QUICK)
    parts = [recorded("a", 0), recorded("b", 900)]
    diagnoses = [replace(diagnose(part), answers=(one,)) for part, one in zip(parts, (quick, unknown), strict=True)]
    assert [answer.disk for answer in combined(diagnoses, parts).answers] == [Disk.UNKNOWN]


def test_a_stretch_with_nothing_but_settings_is_no_incident() -> None:
    """As a kernel's log before a recording: the settings of the machine are found in both, and told once."""
    whole = Capture.merged([recorded("a", 0), recorded("b", 900)])
    whole.inventory.add(GUEST, "facts", sysctl={"vm.swappiness": 60.0}, memory_mib=65_536.0)
    whole.inventory.add(Entity(EntityKind.DATABASE, "postgresql", GUEST), "facts", engine="postgresql")
    diagnosis = diagnose(whole)
    assert [finding.rule for finding in diagnosis.findings] == ["guest-swappiness-high"]
    assert len(diagnosis.answers) == 1


@pytest.mark.parametrize("names", DRAWN, ids=["+".join(names) for names in DRAWN])
def test_every_incident_of_several_is_told_with_its_own_cause(names: tuple[str, ...], tmp_path: Path) -> None:
    truths, folders = [], []
    for place, name in enumerate(names):
        folder = tmp_path / str(place)
        folder.mkdir()
        unpack(ROOT / "incidents" / "recorded" / f"{name}.tar.xz", folder)
        path = next(folder.rglob(TRUTH))
        truths.append(read_model(path, Truth, "a truth", "docs/incidents.md"))
        path.unlink()
        folders.append(path.parent)
    answers = diagnose(import_paths(folders, Request(metrics=metrics_read(), timezone="UTC")).capture).answers
    badness = [answer.incident.badness for answer in answers if answer.incident is not None]
    assert badness == sorted(badness, reverse=True)
    for truth in truths:
        assert truth.fault is not None
        fault = Window(ns_of(truth.fault.start), ns_of(truth.fault.end))
        of_fault = [one for one in answers if one.span is not None and one.span.overlaps(fault)]
        named = {cause for one in of_fault if one.cause is not None for cause in causes_of(one.cause.finding)}
        assert not truth.fault.causes.isdisjoint(named), (truth.kind, named)
