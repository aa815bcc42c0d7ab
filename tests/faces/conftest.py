"""Reports that several test modules look at."""

from __future__ import annotations

from pathlib import Path

import pytest

from leadline.app.diagnose.diagnosing import diagnose
from leadline.app.generating import FaultRequest, generate
from leadline.app.read.importing import Imported, import_paths
from leadline.core.model.finding import Diagnosis
from leadline.faces.report import write_report
from leadline.generators.host_model import CaptureShape
from tests.faces.report_samples import HOSTILE, renamed


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> tuple[Diagnosis, Imported]:
    path = tmp_path_factory.mktemp("report") / "cap.csv"
    generate(CaptureShape(vm_count=3), [FaultRequest("device-slow", 0), FaultRequest("cpu-contention", 1)], path)
    imported = import_paths([path])
    return diagnose(imported.capture), imported


@pytest.fixture(scope="module")
def report(generated: tuple[Diagnosis, Imported], tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("report") / "report.html"
    write_report(path, *generated)
    return path


@pytest.fixture(scope="module")
def hostile(generated: tuple[Diagnosis, Imported], tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("hostile") / "report.html"
    capture = renamed(generated[1].capture, "vm002", HOSTILE)
    write_report(path, diagnose(capture), Imported(capture, unrecognised=[f"{HOSTILE}.txt"]))
    return path
