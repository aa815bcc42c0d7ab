"""Fixtures every test may use."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from leadline.core.contracts.discovery import unit_modules
from tests import mock_driver
from tests.mock_driver import Disk

ROOT = Path(__file__).resolve().parent.parent
FIXTURES = ROOT / "tests" / "fixtures"
SAMPLES = ROOT.parent / "shared" / "samples"

# Who asks for one of these drives a real tool.
REAL_FIXTURES = frozenset({"browser", "chromium"})

# A test run is repeatable: the same examples each time, however busy the machine. `make fuzz` looks for new ones.
settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.register_profile("explore", derandomize=False, deadline=None)
settings.load_profile("repeatable")

# A shell's `&` and nohup have signals ignored, and children inherit that: the tests of Ctrl-C would wait for ever.
for _number in (signal.SIGINT, signal.SIGHUP):
    if signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(_number, signal.default_int_handler if _number == signal.SIGINT else signal.SIG_DFL)


@pytest.fixture(scope="session")
def samples() -> Path:
    """The folder of recordings by real tools that lies beside a developer's checkout; skips where it is absent."""
    if not SAMPLES.is_dir():
        pytest.skip("the sample recordings are not beside this checkout")
    return SAMPLES


@pytest.fixture(scope="session")
def fixtures() -> Path:
    """The project's own recordings."""
    return FIXTURES


@pytest.fixture(scope="session", autouse=True)
def _own_runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Runs of the tests are not kept among the user's."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LEADLINE_HOME", str(tmp_path_factory.mktemp("home")))
        yield


@pytest.fixture
def mock_fio(monkeypatch: pytest.MonkeyPatch) -> Disk:
    """fio is a driver with exact times; the disk it loads can be changed."""
    return stand_in_for_fio(monkeypatch)


def stand_in_for_fio(patch: pytest.MonkeyPatch) -> Disk:
    """Until the patch is undone the unit named fio is the one of the tests."""
    patch.setitem(unit_modules("benchmark"), "fio", mock_driver.__name__)
    patch.setattr(mock_driver, "disk", Disk())
    return mock_driver.disk


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A test that drives a real tool measures a machine others use too: it may try again, and the run says so.

    One that ran out of time does not: it hangs, and its second try would have no limit.
    """
    for item in items:
        if REAL_FIXTURES.intersection(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.real)
        if item.get_closest_marker("real") is not None:
            item.add_marker(pytest.mark.flaky(reruns=2, reruns_delay=10, rerun_except="from pytest-timeout"))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Why each test that was tried again had failed; its last try tells of the leftovers of the first at most."""
    for report in terminalreporter.stats.get("rerun", []):
        reasons = [line[1:].strip() for line in report.longreprtext.splitlines() if line.startswith("E  ")]
        terminalreporter.write_line(f"tried again: {report.nodeid}: {' / '.join(reasons[:3])[:600]}")
