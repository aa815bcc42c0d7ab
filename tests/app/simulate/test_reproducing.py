"""Published figures from the use case to text, JSON and the page."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import ModuleType

import pytest
from typer.testing import CliRunner

from leadline.app.simulate import reproducing
from leadline.app.simulate.reproducing import reproduce
from leadline.core.contracts.experiment import ExperimentMeta, FigureVerdict, Findings, Published, Simulated, Statement
from leadline.core.model.errors import InputError, UsageError
from leadline.core.model.picture import Curve, Picture
from leadline.faces.cli.main import build_app
from leadline.faces.report.reproduction import bar, gauge, reproduction_page
from leadline.faces.reproductions import document, show_reproductions
from tests.conftest import ROOT

QUICK = ["load-average-queue", "hardware-assisted-virtualisation"]
META = ExperimentMeta("a <claim>", "a source", "second", "numeric", ("arithmetic",), 0.1, calibrated="a point")
FOUND = Findings(
    (
        Published("near", 100.0, 104.0, "ms"),
        Published("far", (50.0, 60.0), 90.0, "per_s"),
        Published("set", 5.0, 5.0, is_calibrated=True),
        Published("unknown", 5.0, float("nan")),
    ),
    (Statement("it grows", holds=True, evidence="1 to 2"), Statement("it falls", holds=False, evidence="2 to 2")),
    Picture("x", "y", (Curve("own", (1.0, 2.0), (1.0, 3.0)), Curve("own", (1.0,), (2.0,), is_published=True))),
    "Because of this.",
)


@pytest.fixture
def planted(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """An experiment of our own under the name of any figure."""
    module = ModuleType("planted", "A figure.\n\nSetup:\n    As here.\n\nRun:\n    Nothing.\n\nLimits:\n    All.\n")
    module.META = META  # type: ignore[attr-defined]
    module.reproduce = lambda simulated: FOUND  # type: ignore[attr-defined]
    monkeypatch.setattr(reproducing, "load_unit", lambda kind, name: module)
    return module


def test_figures_come_in_the_order_asked_for_and_once() -> None:
    told: list[tuple[float, int, int]] = []
    found = reproduce([*QUICK, QUICK[0]], lambda *words: told.append(words))
    assert [own.name for own in found] == QUICK
    assert all(own.verdict is FigureVerdict.REPRODUCED for own in found)
    assert told[-1][0] == 1.0
    assert told[-1][2] == 2


def test_an_unknown_figure_is_one_error_and_says_what_is_near() -> None:
    with pytest.raises(UsageError, match="mclock-fig3") as caught:
        reproduce(["mclock-fig33"])
    assert caught.value.exit_status == 2


def test_a_scenario_that_is_none_is_a_defect_of_its_experiment(planted: ModuleType) -> None:
    def broken(simulated: Simulated) -> Findings:
        simulated({"system": "storage-path", "vms": []})
        return FOUND

    planted.reproduce = broken  # type: ignore[attr-defined]
    with pytest.raises(InputError, match="experiment mine: vms"):
        reproduce(["mine"])


def test_verdicts_errors_and_reasons_are_shown(planted: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    found = reproduce(["mine"])
    assert found[0].verdict is FigureVerdict.NOT_REPRODUCED
    show_reproductions(found)
    text = capsys.readouterr().out
    assert max(map(len, text.splitlines())) <= 80
    assert re.search(r"near +100 ms +104 ms +\+4 %", text)
    assert re.search(r"far +50 to 60/s +90/s +\+50 %", text)
    assert re.search(r"unknown +5 +- +-", text)
    for said in ("set (calibrated)", "holds: it grows", "does not hold: it falls", "Why: Because of this", "As here."):
        assert said in text


def test_many_figures_are_grouped_by_verdict(planted: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    show_reproductions(reproduce(["a", "b", "c", "d"]))
    text = capsys.readouterr().out
    assert "not reproduced (4)" in text
    assert "As here." not in text
    assert "4 published figures: 4 not reproduced" in text


def test_the_document_has_every_number(planted: ModuleType) -> None:
    own = document(reproduce(["mine"]))["figures"][0]
    assert own["verdict"] == "not reproduced"
    assert [part["is_within"] for part in own["comparisons"]] == [True, False, True, False]
    assert own["comparisons"][1]["error"] == pytest.approx(0.5)
    assert own["picture"]["curves"][1]["is_published"]


def test_the_page_holds_everything_and_escapes_it(planted: ModuleType) -> None:
    found = reproduce(["mine"])
    page = reproduction_page(found)
    for said in (
        "a &lt;claim&gt;",
        "Because of this.",
        "Does not hold",
        "Hollow: published",
        "from a text that quotes",
    ):
        assert said in page
    assert page.count('class="gauge"') == 3  # what was not measured has none
    assert "<script" not in page
    assert bar(found) == [{"state": "convicted", "start": 0.0, "width": 1000.0, "text": "1 not reproduced"}]


def test_a_gauge_ends_where_the_error_is_beyond_it() -> None:
    near, far = gauge(FOUND.comparisons[0], 0.1), gauge(Published("far", 1.0, 0.1), 0.1)
    assert near is not None
    assert far is not None
    assert near.band_start < near.place < near.band_start + near.band_width
    assert not near.is_beyond
    assert (far.place, far.is_beyond) == (4.0, True)


def test_the_verb_writes_page_and_json(tmp_path: Path) -> None:
    page = tmp_path / "figures.html"
    done = CliRunner().invoke(build_app(), ["reproduce", *QUICK, "--json", "--html", str(page)])
    assert done.exit_code == 0
    assert json.loads(done.stdout)["counts"] == {"reproduced": 2, "direction only": 0, "not reproduced": 0}
    assert "load-average-queue" in page.read_text()


def test_a_page_that_cannot_be_written_is_refused_first(tmp_path: Path) -> None:
    done = CliRunner().invoke(build_app(), ["reproduce", "--html", str(tmp_path / "no" / "f.html")])
    assert isinstance(done.exception, UsageError)


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_ctrl_c_ends_it_soon_and_leaves_nothing(tmp_path: Path) -> None:
    environment = {**os.environ, "LEADLINE_HOME": str(tmp_path / "home")}
    text = "from leadline.faces.cli.main import run; from leadline.app.simulate import reproducing"
    text += "; print('up', flush=True); run()"
    command = [sys.executable, "-c", text, "reproduce", "-q"]
    process = subprocess.Popen(command, env=environment, cwd=ROOT, stderr=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"up\n"
    time.sleep(1.5)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=30)
    assert process.returncode in (0, 130)  # all may have been done by then
    assert b"Traceback" not in said
    assert not (tmp_path / "home" / "runs").exists()
