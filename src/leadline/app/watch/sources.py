"""What samples a source again and again, in a thread of its own: a source that is down is an event, not the end.

Each source counts what it does: samples, failures, gaps, how long a sample takes and how late it comes.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from leadline.core.model.errors import LeadlineError
from leadline.core.model.units import duration
from leadline.core.system.secret import scrubbed

if TYPE_CHECKING:
    from leadline.core.model.capture import Capture

BACK_OFF_S = (1.0, 2.0, 5.0, 10.0, 30.0, 60.0)  # between tries of a source that is down
GAP_INTERVALS = 2.5  # a pause of so many intervals is a gap
GAPS_MAX = 20  # the newest ones are kept by their times


class Sampler(Protocol):
    """An open source."""

    @property
    def notes(self) -> list[str]:
        """What it leaves out, and why."""

    def sample(self) -> Capture | None:
        """Take a sample: what is new, or None where it is read elsewhere.

        Raises:
            LeadlineError: the source cannot be reached now, or refuses.
        """

    def close(self) -> None:
        """Give up connections and files."""


@dataclass(slots=True)
class SourceHealth:
    """What a source did since the watch began.

    Attributes:
        is_up: whether the last try succeeded; None before the first one ended.
        since_ns: since when it is up or down, UTC nanoseconds.
        sample_count: samples that were taken.
        failure_count: tries that failed.
        gap_count: pauses of several intervals between two samples, those among them in which it was down.
        gap_s: how long all of them were together, each from the last sample before it to the first one after it.
        gaps_ns: the times of the newest ones, UTC nanoseconds.
        duration_s: of the last sample.
        late_s: by how much the last sample began after its time.
        error: why the last try failed; empty while it is up.
    """

    name: str
    kind: str
    every_s: float
    is_up: bool | None = None
    since_ns: int = 0
    sample_count: int = 0
    failure_count: int = 0
    gap_count: int = 0
    gap_s: float = 0.0
    gaps_ns: tuple[tuple[int, int], ...] = ()
    duration_s: float = 0.0
    late_s: float = 0.0
    error: str = ""
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class SourceEvent:
    """A source that went down, or came back."""

    time_ns: int
    source: str
    is_up: bool
    text: str


@dataclass(eq=False)
class WatchedSource:
    """A source that is sampled in a thread until it is closed.

    Args:
        name: as the settings call it.
        kind: the collector, or ``file``.
        opened: connects; called again after a failure.
        every_s: the interval of samples, seconds.
    """

    name: str
    kind: str
    opened: Callable[[], Sampler]
    every_s: float
    health: SourceHealth = field(init=False)
    _captures: deque[Capture] = field(default_factory=deque)
    _events: deque[SourceEvent] = field(default_factory=deque)
    _over: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None
    _last: tuple[float, int] | None = None  # when the last sample that came was begun: monotonic seconds, UTC

    def __post_init__(self) -> None:
        self.health = SourceHealth(self.name, self.kind, self.every_s)

    def start(self) -> None:
        """Begin to sample."""
        self._thread = threading.Thread(target=self._work, name=f"leadline-{self.name}", daemon=True)
        self._thread.start()

    def take(self) -> list[Capture]:
        """The captures since the last call."""
        return [self._captures.popleft() for _ in range(len(self._captures))]

    def events(self) -> list[SourceEvent]:
        """What happened to the source since the last call."""
        return [self._events.popleft() for _ in range(len(self._events))]

    def close(self, wait_s: float = 10.0) -> None:
        """End the thread; it gives up its connections."""
        self._over.set()
        if self._thread is not None:
            self._thread.join(wait_s)

    def _work(self) -> None:
        failures = 0
        while not self._over.is_set():
            sampler = None
            try:
                sampler = self.opened()
                self._sample_on(sampler)
            except LeadlineError as error:
                failures = 1 if self.health.is_up else failures + 1
                self._down(str(error))
            except Exception as error:  # whatever a library raises, the other sources go on
                failures = 1 if self.health.is_up else failures + 1
                self._down(scrubbed(f"{type(error).__name__}: {error}"))
            finally:
                if sampler is not None:
                    sampler.close()
            self._over.wait(BACK_OFF_S[min(failures, len(BACK_OFF_S)) - 1] if failures else 0.0)

    def _sample_on(self, sampler: Sampler) -> None:
        """Sample at every multiple of the interval; a beat that is already over is left out."""
        began, beat = time.monotonic(), 0
        while not self._over.is_set():
            start, start_ns = time.monotonic(), time.time_ns()
            capture = sampler.sample()
            health = self.health
            health.duration_s = time.monotonic() - start
            health.late_s = max(start - began - beat * self.every_s, 0.0)
            health.sample_count += 1
            health.notes = tuple(dict.fromkeys(sampler.notes))
            self._up(self._paused(start, start_ns))
            if capture is not None:
                self._captures.append(capture)
            beat = max(beat + 1, int((time.monotonic() - began) / self.every_s) + 1)
            self._over.wait(max(began + beat * self.every_s - time.monotonic(), 0.0))

    def _paused(self, start: float, start_ns: int) -> float:
        """The seconds since the sample before this one; a gap is counted."""
        before, self._last = self._last, (start, start_ns)
        if before is None:
            return 0.0
        pause_s = start - before[0]
        if pause_s > GAP_INTERVALS * self.every_s:
            health = self.health
            health.gap_count += 1
            health.gap_s += pause_s
            health.gaps_ns = (*health.gaps_ns, (before[1], start_ns))[-GAPS_MAX:]
        return pause_s

    def _up(self, pause_s: float) -> None:
        if self.health.is_up:
            return
        was_down = self.health.is_up is False
        self.health.is_up, self.health.since_ns, self.health.error = True, time.time_ns(), ""
        if was_down:
            text = f"answers again, after {duration(pause_s)} without a sample" if pause_s else "answers"
            self._events.append(SourceEvent(self.health.since_ns, self.name, True, text))

    def _down(self, why: str) -> None:
        self.health.failure_count += 1
        self.health.error = why
        if self.health.is_up is not False:
            self.health.is_up, self.health.since_ns = False, time.time_ns()
            self._events.append(SourceEvent(self.health.since_ns, self.name, False, why))
