"""A source that fails is an event and is tried again; what it gives is handed over once."""

from __future__ import annotations

import threading
import time

import pytest

from leadline.app.watch import sources as sources_module
from leadline.app.watch.sources import WatchedSource
from leadline.core.model.capture import Capture
from leadline.core.model.errors import ToolError


class Fake:
    """A source that answers, breaks off at its third sample, cannot be opened once, and answers again."""

    def __init__(self) -> None:
        self.notes: list[str] = ["a view is left out"]
        self.openings = 0
        self.closings = 0
        self.samples = 0
        self.done = threading.Event()

    def open(self) -> Fake:
        self.openings += 1
        if self.openings == 2:
            raise ToolError("x", found="no answer", expected="an answer", advice="Try again.")
        return self

    def sample(self) -> Capture:
        self.samples += 1
        if self.samples == 3:
            message = "a defect of a library"
            raise ValueError(message)
        if self.samples == 6:
            self.done.set()
        return Capture()

    def close(self) -> None:
        self.closings += 1


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources_module, "BACK_OFF_S", (0.02, 0.02))


def test_a_source_that_fails_is_tried_again() -> None:
    fake = Fake()
    source = WatchedSource("db", "postgresql", fake.open, 0.02)
    source.start()
    assert fake.done.wait(10)
    source.close()
    health = source.health
    assert (health.failure_count, health.is_up, health.error) == (2, True, "")
    assert health.sample_count == fake.samples - 1
    assert len(source.take()) == health.sample_count
    assert source.take() == []
    assert fake.closings == 2
    assert [(event.is_up, event.text) for event in source.events()] == [
        (False, "ValueError: a defect of a library"),
        (True, "answers again, after 0 s without a sample"),
    ]
    assert health.notes == ("a view is left out",)


def test_a_source_that_is_slow_has_gaps() -> None:
    class Slow(Fake):
        def sample(self) -> Capture:
            self.samples += 1
            time.sleep(0.2 if self.samples == 2 else 0.0)
            if self.samples == 6:
                self.done.set()
            return Capture()

    fake = Slow()
    source = WatchedSource("db", "postgresql", fake.open, 0.02)
    source.start()
    assert fake.done.wait(10)
    source.close()
    health = source.health
    assert health.gap_count >= 1
    assert health.gap_s >= 0.2


def test_the_time_a_source_is_down_is_a_gap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources_module, "BACK_OFF_S", (0.4, 0.4))
    fake = Fake()
    source = WatchedSource("db", "postgresql", fake.open, 0.05)
    source.start()
    assert fake.done.wait(10)
    source.close()
    health = source.health
    assert health.gap_count == 1
    assert len(health.gaps_ns) == 1
    start_ns, end_ns = health.gaps_ns[0]
    assert health.gap_s == pytest.approx((end_ns - start_ns) / 1e9, abs=0.02)
    assert health.gap_s >= 0.8  # two tries failed, each with its pause


def test_a_source_that_is_down_at_the_start_has_no_gap() -> None:
    class Late(Fake):
        def open(self) -> Fake:
            self.openings += 1
            if self.openings == 1:
                raise ToolError("x", found="no answer", expected="an answer", advice="Try again.")
            return self

        def sample(self) -> Capture:
            self.done.set()
            return Capture()

    fake = Late()
    source = WatchedSource("db", "postgresql", fake.open, 60.0)
    source.start()
    assert fake.done.wait(10)
    source.close()
    assert source.health.gap_count == 0
    assert [(event.is_up, event.text) for event in source.events()][1:] == [(True, "answers")]
