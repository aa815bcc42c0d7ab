"""Fixtures every test may use."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

ROOT = Path(__file__).resolve().parent.parent
FIXTURES = ROOT / "tests" / "fixtures"
SAMPLES = ROOT.parent / "shared" / "samples"

# A test run is repeatable: the same examples each time. `make fuzz` looks for new ones.
settings.register_profile("repeatable", derandomize=True)
settings.register_profile("explore", derandomize=False)
settings.load_profile("repeatable")


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


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A test that drives a real tool measures a machine others use too: it may try again, and the run says so."""
    for item in items:
        if item.get_closest_marker("real") is not None:
            item.add_marker(pytest.mark.flaky(reruns=2, reruns_delay=10))
