"""What is said of recordings that no rule uses, and what is asked for next."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from leadline.app.diagnose.diagnosing import diagnose, metrics_read
from leadline.app.diagnose.examine import EXAMINE, advised
from leadline.app.read.importing import import_paths
from leadline.core.contracts.discovery import unit_modules
from leadline.core.contracts.importer import Request
from leadline.core.model.capture import CaptureBuilder
from leadline.core.model.entities import Entity
from leadline.core.model.vocabulary import EntityKind, Layer
from leadline.faces.words.answers import headline
from leadline.faces.words.findings import Quotes
from tests.command_line import leadline as run

COUNT = 4000


@pytest.fixture
def unused(tmp_path: Path) -> Path:
    """A perfmon recording of thousands of counters none of which a rule reads."""
    names = [f'"\\\\db01\\Widgets(w{i})\\Counter {i:04d}"' for i in range(COUNT)]
    rows = [f'"02/16/2026 00:00:{5 * n:02d}",' + ",".join(['"1"'] * COUNT) for n in range(1, 5)]
    path = tmp_path / "widgets.csv"
    path.write_text("\n".join([",".join(['"(PDH-CSV 4.0) (UTC)(0)"', *names]), *rows, ""]))
    return path


def test_counters_that_no_rule_uses_are_named(unused: Path) -> None:
    done = run("diagnose", str(unused), "--quiet")
    said = " ".join(done.stdout.split())
    assert said.startswith("Read, but no rule uses these counters: perfmon.Widgets.Counter ")
    assert "and 3,997 more." in said
    assert "Nothing was measured" not in said


def test_only_where_nothing_wanted_was_found_everything_is_read(unused: Path, tmp_path: Path) -> None:
    wanted = Request(metrics=metrics_read())
    assert import_paths([unused], wanted).capture.series_count == 0
    assert import_paths([unused], wanted, else_all=True).capture.series_count == COUNT
    vmstat = tmp_path / "vmstat.txt"
    vmstat.write_text(
        "procs -----------memory---------- ---swap-- -----io---- -system-- ------cpu----- -----timestamp-----\n"
        " r  b   swpd   free   buff  cache   si   so    bi    bo   in   cs us sy id wa st                 UTC\n"
        " 1  0      0 100000   2000 300000    0    0     1     2  100  200  1  1 98  0  0 2026-02-16 00:00:05\n"
        " 1  0      0 100000   2000 300000    0    0     1     2  100  200  1  1 98  0  0 2026-02-16 00:00:10\n"
    )
    both = import_paths([unused, vmstat], wanted, else_all=True).capture
    assert both.series_count == import_paths([vmstat], wanted).capture.series_count
    assert not headline(diagnose(both), Quotes()).startswith("Read, but")


def test_a_file_without_a_sample_measured_nothing(tmp_path: Path) -> None:
    path = tmp_path / "header.csv"
    path.write_text('"(PDH-CSV 4.0) (UTC)(0)","\\\\db01\\Widgets(a)\\Counter"\n')
    assert run("diagnose", str(path), "--quiet").stdout.startswith("Nothing was measured")


def test_a_recording_that_was_given_is_not_asked_for() -> None:
    def asked(importer: str) -> set[str]:
        builder = CaptureBuilder("a", importer, importer)
        host = Entity(EntityKind.HOST, "esx01")
        builder.add_series("host_cpu_load_1m", host, 5_000_000_000 * np.arange(1, 31, dtype=np.int64), np.ones(30))
        found = diagnose(builder.build())
        return {command for layer in found.layers for command in layer.examine}

    assert any("esxtop" in command for command in asked("vmstat"))
    assert not any("esxtop" in command for command in asked("esxtop"))
    assert not any(command.startswith("vmstat") for command in asked("vmstat"))
    assert any("iostat" in command for command in asked("vmstat"))


def test_what_is_advised_is_read_by_importers_there_are() -> None:
    names = {name.replace("_", "-") for name in unit_modules("importer")}
    assert all(one.importers <= names for recordings in EXAMINE.values() for one in recordings)
    assert advised(Layer.GUEST, (), ()) != ()
    assert advised(Layer.GUEST, ("iostat", "vmstat"), ("guest_disk_await_ms_write",)) == ()


def test_a_recording_without_the_option_that_times_requests_is_asked_for_again(tmp_path: Path) -> None:
    path = tmp_path / "iostat.txt"
    report = "Device            tps    kB_read/s    kB_wrtn/s    kB_read    kB_wrtn\nsda  1.50 2.00 3.00 2 3\n\n"
    path.write_text("Linux 6.1.0 (db01)\t11/20/2026\t_x86_64_\t(4 CPU)\n\n" + 20 * report)
    printed = run("diagnose", str(path), "--quiet").stdout
    assert "no recording shows the disk's latency" in " ".join(printed.split())
    assert "iostat -x -t 1 300" in printed
