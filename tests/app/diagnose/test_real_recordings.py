"""What the verdict says of recordings of real tools, each with a fault that was set from outside."""

from __future__ import annotations

from pathlib import Path

import pytest

from benches.incidents.recordings import read_recording
from benches.incidents.views import ALONE, FULL, views
from leadline.app.diagnose.diagnosing import diagnose
from leadline.app.read.importing import import_paths
from leadline.core.model.answer import Disk, Reason
from leadline.core.model.finding import Diagnosis
from leadline.core.model.vocabulary import Layer, LayerState, Severity
from leadline.faces.words.answers import disk_sentence
from leadline.faces.words.findings import Quotes
from tests.conftest import ROOT

RECORDED = ROOT / "incidents" / "recorded"
SHARED = ROOT.parent / "shared"
MORE_SAMPLES = SHARED / "more_samples"


def diagnosed_file(name: str) -> Diagnosis:
    path = SHARED / "samples" / name
    if not path.is_file():
        pytest.skip("the recording does not lie beside this checkout")
    return diagnose(import_paths([path]).capture)


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
    assert diagnosis.answer.disk is not Disk.NO


def test_a_stalled_disk_of_a_public_recording_is_convicted() -> None:
    path = MORE_SAMPLES / "sysstat" / "Goose97__postgres_long_commit__iostat.log"
    if not path.is_file():
        pytest.skip("the recording does not lie beside this checkout")
    diagnosis = diagnose(import_paths([path]).capture)
    assert diagnosis.top is not None
    assert diagnosis.top.rule == "guest-disk-stalled"
    assert diagnosis.top.entity.name == "vdb"
    assert diagnosis.answer.disk.accuses


def test_a_limit_in_bytes_is_told_in_megabytes(tmp_path: Path) -> None:
    diagnosis = diagnosed("bandwidth-limit", 2, tmp_path)
    assert diagnosis.top is not None
    assert diagnosis.top.rule == "vm-iops-limit-hit"
    assert "capped at about 5.17 MB/s" in diagnosis.top.summary


def test_a_limit_on_a_log_disk_that_only_writes_is_seen(tmp_path: Path) -> None:
    diagnosis = diagnosed("iops-limit-wal", 1, tmp_path)
    assert diagnosis.top is not None
    assert (diagnosis.top.rule, diagnosis.top.entity.name) == ("vm-iops-limit-hit", "loop1")
    assert diagnosis.answer.disk.accuses


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
    assert diagnosis.answer.because is Reason.IO_WAIT


def test_processors_alone_clear_no_guest(tmp_path: Path) -> None:
    diagnosis = diagnosed("lock-waits", 2, tmp_path, f"{ALONE}mpstat")
    guest = diagnosis.layer(Layer.GUEST)
    assert guest.state is LayerState.NOT_EXAMINED
    assert "disks" in guest.reason.absent


@pytest.mark.parametrize(
    ("kind", "variant"), [("healthy-scan", 1), ("healthy-full-utilisation", 3), ("healthy-load-average", 3)]
)
def test_healthy_recordings_that_look_bad_accuse_nobody(kind: str, variant: int, tmp_path: Path) -> None:
    diagnosis = diagnosed(kind, variant, tmp_path)
    assert [f.rule for f in diagnosis.findings if f.severity >= Severity.MEDIUM and not f.is_symptom] == []
    assert diagnosis.incidents == ()


def test_what_fio_measured_on_a_slow_disk_is_evidence_and_its_ceiling_is_marked() -> None:
    name = "louwrentius__fio-plot__fio-3.1__benchmark_data_SERVER_IBM_M1015_8x2TBRAID5MDADM_randwrite-64-64.json"
    diagnosis = diagnosed_file(f"fio/{name}")
    assert diagnosis.top is not None
    assert diagnosis.top.rule == "guest-disk-load-test-slow"
    assert "write mean 7,653 ms, p99 at least 17,113 ms, with 3,660 under way" in diagnosis.top.summary
    assert diagnosis.answer.disk.accuses


def test_what_ioping_measured_on_a_slow_disk_is_evidence() -> None:
    diagnosis = diagnosed_file("ioping/AbhishekGhosh__OpenVZ-2GB-Host1Plus-Benchmark__ioping.txt")
    assert diagnosis.top is not None
    assert diagnosis.top.rule == "guest-disk-load-test-slow"


def test_many_jobs_at_once_on_a_quick_disk_are_one_queue() -> None:
    diagnosis = diagnosed_file("fio/SamYaple__fio-plot-results__4096_sector_1x_4k_randread-64-64.json")
    assert diagnosis.findings == ()
    assert "with 4,094 under way" in disk_sentence(diagnosis.answer, Quotes())


def test_a_series_of_load_tests_is_no_incident() -> None:
    diagnosis = diagnosed_file("vdbench/TheOtherOtherOperation__vdbconvert__test_flatfile.html")
    assert diagnosis.incidents == ()


def test_what_a_hypervisor_counted_is_no_load_test() -> None:
    diagnosis = diagnosed_file("vscsistats/er0080__vscsiStats-helper__algonquin.csv")
    assert "load tool" not in disk_sentence(diagnosis.answer, Quotes())
    assert "guest-disk-load-test-slow" not in {finding.rule for finding in diagnosis.findings}
