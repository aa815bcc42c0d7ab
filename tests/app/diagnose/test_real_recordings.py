"""What the verdict says of recordings of real tools, each with a fault that was set from outside."""

from __future__ import annotations

from pathlib import Path

import pytest

from benches.incidents.recordings import read_recording
from benches.incidents.views import ALONE, FULL, views
from leadline.app.diagnose.diagnosing import diagnose
from leadline.app.read.importing import import_paths
from leadline.core.model.finding import Diagnosis
from leadline.core.model.vocabulary import Layer, LayerState, Severity
from tests.conftest import ROOT

RECORDED = ROOT / "incidents" / "recorded"
MORE_SAMPLES = ROOT.parent / "shared" / "more_samples"


def diagnosed(kind: str, variant: int, folder: Path, view: str = FULL) -> Diagnosis:
    recording = read_recording(RECORDED / kind / f"{variant}.tar.xz", folder)
    (seen,) = views(recording, [view])
    assert seen.capture is not None
    return diagnose(seen.capture)


@pytest.mark.parametrize("variant", [1, 2])
def test_a_disk_that_stands_still_between_normal_seconds_is_convicted_from_iostat_alone(
    variant: int, tmp_path: Path
) -> None:
    diagnosis = diagnosed("disk-freezes", variant, tmp_path, f"{ALONE}iostat")
    assert not diagnosis.verdict.is_it_the_disk.startswith("No:")


def test_a_stalled_disk_of_a_public_recording_is_convicted() -> None:
    path = MORE_SAMPLES / "sysstat" / "Goose97__postgres_long_commit__iostat.log"
    if not path.is_file():
        pytest.skip("the recording does not lie beside this checkout")
    diagnosis = diagnose(import_paths([path]).capture)
    assert diagnosis.top is not None
    assert diagnosis.top.rule == "guest-disk-stalled"
    assert diagnosis.top.entity.name == "vdb"
    assert diagnosis.verdict.is_it_the_disk.startswith("Yes as the guest sees it")


def test_a_limit_in_bytes_is_told_in_megabytes(tmp_path: Path) -> None:
    diagnosis = diagnosed("bandwidth-limit", 2, tmp_path)
    assert diagnosis.top is not None
    assert diagnosis.top.rule == "vm-iops-limit-hit"
    assert "held at about 5.17 MB/s by a limit" in diagnosis.top.summary


def test_a_limit_on_a_log_disk_that_only_writes_is_seen(tmp_path: Path) -> None:
    diagnosis = diagnosed("iops-limit-wal", 1, tmp_path)
    assert diagnosis.top is not None
    assert (diagnosis.top.rule, diagnosis.top.entity.name) == ("vm-iops-limit-hit", "loop1")
    assert diagnosis.verdict.is_it_the_disk.startswith("Yes as the guest sees it")


@pytest.mark.parametrize(
    ("kind", "variant", "rule", "program"),
    [("noisy-program", 3, "guest-disk-taken", "fio"), ("cpu-taken", 2, "guest-cpu-taken", "stress-ng-cpu")],
)
def test_who_did_it_is_named(kind: str, variant: int, rule: str, program: str, tmp_path: Path) -> None:
    top = diagnosed(kind, variant, tmp_path).top
    assert top is not None
    assert top.rule == rule
    assert top.summary.startswith(program)


def test_the_incident_of_a_lock_is_found_and_the_lock_explains_it(tmp_path: Path) -> None:
    diagnosis = diagnosed("lock-waits", 2, tmp_path)
    assert diagnosis.top is not None
    assert diagnosis.top.rule == "db-lock-waits"
    (incident,) = diagnosis.incidents
    assert incident.window.duration_s == pytest.approx(20, abs=3)


def test_i_o_wait_alone_does_not_say_that_a_disk_is_slow(tmp_path: Path) -> None:
    diagnosis = diagnosed("healthy-full-utilisation", 3, tmp_path, f"{ALONE}mpstat")
    assert diagnosis.verdict.is_it_the_disk.startswith("Not known: I/O wait")


def test_processors_alone_clear_no_guest(tmp_path: Path) -> None:
    diagnosis = diagnosed("lock-waits", 2, tmp_path, f"{ALONE}mpstat")
    guest = diagnosis.verdict.layer(Layer.GUEST)
    assert guest.state is LayerState.NOT_EXAMINED
    assert "disks" in guest.reason


@pytest.mark.parametrize(
    ("kind", "variant"), [("healthy-scan", 1), ("healthy-full-utilisation", 3), ("healthy-load-average", 3)]
)
def test_healthy_recordings_that_look_bad_accuse_nobody(kind: str, variant: int, tmp_path: Path) -> None:
    diagnosis = diagnosed(kind, variant, tmp_path)
    assert [f.rule for f in diagnosis.findings if f.severity >= Severity.MEDIUM and not f.is_symptom] == []
    assert diagnosis.incidents == ()
