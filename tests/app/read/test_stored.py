"""What a watch keeps is read like a recording: a span of it, one machine of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from leadline.app.diagnose.diagnosing import diagnose
from leadline.app.read.importing import import_paths
from leadline.app.read.resolve import resolve
from leadline.app.read.stored import StoredPart, stored_capture
from leadline.core.model.capture import NS_PER_S, Capture
from leadline.core.model.errors import UsageError
from leadline.stores.samples import SampleStore

EXAMPLE = Path("examples/incidents/throttled-wal-disk")


@pytest.fixture(scope="module")
def recorded() -> Capture:
    return import_paths([EXAMPLE]).capture


@pytest.fixture(scope="module")
def folder(recorded: Capture, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("store")
    with SampleStore(path) as store:
        store.append(recorded)
    return path


def read(folder: Path, **part: str) -> Capture:
    return stored_capture(Path(f"store:{folder}"), StoredPart(**part))


def span_s(capture: Capture) -> float:
    span = capture.span_ns()
    assert span is not None
    return (span[1] - span[0]) / NS_PER_S


def test_it_is_diagnosed_as_the_recording_is(folder: Path, recorded: Capture) -> None:
    of_files, of_store = diagnose(recorded).answer, diagnose(resolve(read(folder))).answer
    assert of_files.cause is not None and of_store.cause is not None
    assert of_store.cause.finding.rule == of_files.cause.finding.rule
    assert of_store.disk is of_files.disk


@pytest.mark.parametrize(
    ("since", "until", "seconds"),
    [("60s", None, 60), ("1m", None, 60), ("23:49:47", "23:50:17", 30), ("2026-11-20T23:49:47Z", "23:50:17", 30)],
)
def test_a_span(folder: Path, since: str, until: str | None, seconds: float) -> None:
    capture = stored_capture(Path(f"store:{folder}"), StoredPart(since, until))
    assert span_s(capture) == pytest.approx(seconds, abs=2.0)


def test_one_machine_with_its_database(folder: Path) -> None:
    capture = read(folder, vm="DB*")
    assert capture.of("guest_load_1m")
    with pytest.raises(UsageError, match="nothing of web01"):
        read(folder, vm="web01")


@pytest.mark.parametrize(
    "part", [{"since": "yesterday"}, {"until": "25:00"}, {"since": "23:50:00", "until": "23:40:00"}]
)
def test_what_is_no_time_is_said(folder: Path, part: dict[str, str]) -> None:
    with pytest.raises(UsageError, match=r"--from|--to"):
        read(folder, **part)


def test_there_is_no_store(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no sample store"):
        read(tmp_path / "nothing")
    assert not (tmp_path / "nothing").exists()
