"""A watch from sources to incidents and notices: recordings of real incidents are played back through it."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pytest

from leadline.app.diagnose.diagnosing import diagnose
from leadline.app.read.importing import import_paths
from leadline.app.watch import watching
from leadline.app.watch.incident_book import IncidentStep
from leadline.app.watch.recorded import RecordedFiles
from leadline.app.watch.settings import WatchSettings
from leadline.app.watch.sources import SourceEvent, SourceHealth
from leadline.app.watch.telling import Teller
from leadline.app.watch.watching import Watch
from leadline.core.model.capture import NS_PER_S, Capture
from leadline.core.model.errors import ToolError
from leadline.core.model.finding import Window
from leadline.core.model.vocabulary import Severity
from leadline.faces.words.live import incident_words
from leadline.stores.incidents import IncidentStore, Maintenance
from leadline.stores.notices import NoticeQueue
from leadline.stores.samples import SampleStore

EXAMPLE = Path("examples/incidents/throttled-wal-disk")
STEP_S = 5


@dataclass
class Played:
    """A source that gives what a test puts into it."""

    name: str = "played"
    kind: str = "played"
    waiting: list[Capture] = field(default_factory=list)
    happened: list[SourceEvent] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.health = SourceHealth(self.name, self.kind, 1.0)

    def take(self) -> list[Capture]:
        given, self.waiting = self.waiting, []
        return given

    def events(self) -> list[SourceEvent]:
        given, self.happened = self.happened, []
        return given


@dataclass
class Play:
    """A watch under test, with a clock of its own."""

    watch: Watch
    source: Played
    queue: NoticeQueue
    now_s: float = 0.0

    def step(self, *captures: Capture) -> list[IncidentStep]:
        self.now_s += STEP_S
        self.source.waiting += captures
        return self.watch.step()

    def notices(self) -> list[str]:
        every, now_ns = [], 1
        while due := self.queue.due(now_ns):
            for delivery in due:
                every.append(delivery.notice.state.value)
                self.queue.sent(delivery.id, now_ns)
        return every


@contextmanager
def playing(folder: Path) -> Iterator[Play]:
    tell = {"name": "dba", "notifier": "run-command", "settings": {"command": ["true"]}}
    settings = WatchSettings.model_validate(
        {"sources": [{"name": "x", "follow": "x"}], "store": {"folder": str(folder / "store")}, "tell": [tell]}
    )
    source = Played()
    queue = NoticeQueue(folder / "store")
    with SampleStore(folder / "store") as store:
        watch = Watch(
            settings,
            (source,),  # type: ignore[arg-type]
            RecordedFiles(folder / "work"),
            store,
            IncidentStore(folder / "store"),
            incident_words,
            Teller(queue, [one.receiver() for one in settings.tell], lambda: 1),
        )
        play = Play(watch, source, queue)
        watch.clock = lambda: play.now_s
        yield play


def parts(capture: Capture) -> Iterator[Capture]:
    """A capture as a watch would get it, five seconds at a time."""
    span = capture.span_ns()
    assert span is not None
    for start in range(span[0] - NS_PER_S, span[1] + 1, STEP_S * NS_PER_S):
        yield capture.between(start, start + STEP_S * NS_PER_S)


def later(capture: Capture, seconds: float) -> Capture:
    return capture.shifted(seconds)


@pytest.fixture(scope="module")
def incident() -> Capture:
    return import_paths([EXAMPLE]).capture


def test_a_real_incident_is_one_incident_with_its_cause_and_one_notice(tmp_path: Path, incident: Capture) -> None:
    first = diagnose(incident).answer
    assert first.cause is not None and first.incident is not None
    with playing(tmp_path) as play:
        steps = [step for part in parts(incident) for step in play.step(part)]
        steps = [step for step in steps if step.step.value != "seen"]
        (opened,) = [step.incident for step in steps if step.step.value == "opened"]
        known = {one.id for one in play.watch.incidents.between(0, 1 << 62)}
        assert known == {opened.id}
        final = play.watch.incidents.get("last")
        assert final.cause == first.cause.finding.rule
        assert final.was_felt
        assert play.notices()[:1] == ["opened"]
        assert "probably capped at about 30 IOPS" in final.title
        delay_s = (opened.seen_ns - first.incident.window.start_ns) / NS_PER_S
        assert delay_s <= 40.0


def test_it_closes_after_recovery_and_keeps_its_own_recording(tmp_path: Path, incident: Capture) -> None:
    with playing(tmp_path) as play:
        for part in parts(incident):
            play.step(part)
        span = incident.span_ns()
        assert span is not None
        # It goes on as healthy as it was before; where the same half minute begins again is a seam.
        for part in list(parts(incident))[:12]:
            if play.watch.book.open_ones():
                play.step(later(part, (span[1] - span[0]) / NS_PER_S + 5.0))
        assert play.watch.book.open_ones() == ()
        assert play.notices() == ["opened", "closed"]
        kept = play.watch.incidents.get("last")
        assert kept.closed_ns is not None
        whole = diagnose(play.watch.window.capture).answer
        assert whole.cause is not None and kept.cause == whole.cause.finding.rule
        play.watch.keep_house()
        kept = play.watch.incidents.get("last")
        again = diagnose(import_paths([Path(kept.capture)]).capture)
        assert again.answer.cause is not None
        assert again.answer.cause.finding.rule == kept.cause


def test_a_watch_that_is_killed_goes_on_with_its_incident(tmp_path: Path, incident: Capture) -> None:
    every = list(parts(incident))
    with playing(tmp_path) as play:
        for part in every[:24]:
            play.step(part)
        (known,) = play.watch.book.open_ones()
    with playing(tmp_path) as play:
        (again,) = play.watch.book.open_ones()
        assert again.id == known.id
        assert play.notices() == ["opened"]


def test_the_next_watch_knows_what_was_usual_before_the_incident(tmp_path: Path, incident: Capture) -> None:
    span = incident.span_ns()
    assert span is not None
    every = list(parts(incident.shifted(time.time() - span[0] / NS_PER_S - 180)))
    with playing(tmp_path) as play:
        for part in every[:24]:
            play.step(part)
        (known,) = play.watch.book.open_ones()
    with playing(tmp_path) as play:
        play.watch._fill_window()
        kept = play.watch.window.capture.span_ns()
        assert kept is not None and (kept[1] - kept[0]) / NS_PER_S > 100
        steps = [step for part in every[24:30] for step in play.step(part)]
        assert steps and {step.step.value for step in steps} <= {"seen", "changed"}
        (again,) = play.watch.book.open_ones()
        assert (again.id, again.cause) == (known.id, known.cause)
        assert again.seen_ns > known.seen_ns
        assert [(one.metric, round(one.normal)) for one in again.symptoms] == [
            (one.metric, round(one.normal)) for one in known.symptoms
        ]


def test_nobody_is_told_in_maintenance(tmp_path: Path, incident: Capture) -> None:
    with playing(tmp_path) as play:
        play.watch.incidents.add_maintenance(Maintenance("*", 0, 1 << 62, "patch day"))
        for part in parts(incident):
            play.step(part)
        assert play.watch.incidents.get("last").severity >= Severity.MEDIUM
        assert play.notices() == []


def test_a_full_disk_is_said_once_and_nothing_is_lost_when_it_has_space_again(
    tmp_path: Path, incident: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    every = list(parts(incident))
    with playing(tmp_path) as play:
        append = play.watch.store.append

        def full(capture: Capture) -> None:
            raise ToolError("store", found="no space left", expected="space", advice="Free some.")

        play.step(every[0])
        monkeypatch.setattr(play.watch.store, "append", full)
        for part in every[1:6]:
            play.step(part)
        monkeypatch.setattr(play.watch.store, "append", append)
        play.step(every[6])
        assert [event.is_bad for event in play.watch.events if event.about == "store"] == [True, False]
        span = incident.span_ns()
        assert span is not None
        kept = play.watch.store.read(0, 1 << 62)
        wanted = Capture.merged(every[:7])
        metric = "guest_load_1m" if wanted.of("guest_load_1m") else wanted.metrics()[0]
        times = np.concatenate([group.times_ns for group in wanted.of(metric)])
        stored = np.concatenate([group.times_ns for group in kept.of(metric)])
        assert set(stored.tolist()) == set(times.tolist())
        assert play.watch.lost_count == 0


def test_a_source_that_goes_down_is_an_event_and_a_marker(tmp_path: Path) -> None:
    with playing(tmp_path) as play:
        play.source.happened.append(SourceEvent(5 * NS_PER_S, "db", False, "no answer"))
        play.step()
        assert [(event.about, event.is_bad) for event in play.watch.events] == [("db", True)]
        assert [marker.kind for marker in play.watch.incidents.markers(0, 10 * NS_PER_S)] == ["source down"]


def test_a_full_disk_keeps_incidents_waiting_and_they_are_told_when_it_has_space(
    tmp_path: Path, incident: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    every = list(parts(incident))
    with playing(tmp_path) as play:
        save = play.watch.incidents.save

        def full(*_: object) -> None:
            raise ToolError("incidents", found="no space left", expected="space", advice="Free some.")

        monkeypatch.setattr(play.watch.incidents, "save", full)
        for part in every[:26]:
            play.step(part)
        assert play.watch.book.open_ones()
        assert play.notices() == []
        assert [step.step.value for step in play.watch._unkept].count("seen") == 1
        monkeypatch.setattr(play.watch.incidents, "save", save)
        play.step(every[26])
        assert play.notices() == ["opened"]
        assert [event.is_bad for event in play.watch.events if event.about == "incidents"] == [True, False]
        assert play.watch._unkept == []


def test_a_defect_of_ours_ends_no_watch(tmp_path: Path, incident: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        message = "a defect"
        raise KeyError(message)

    with playing(tmp_path) as play:
        monkeypatch.setattr(watching, "suspicions_of", broken)
        over = threading.Event()
        play.source.waiting += list(parts(incident))[:3]

        def stepped() -> None:
            over.set()
            message = "the state cannot be written"
            raise OSError(message)

        monkeypatch.setattr(play.source, "start", lambda: None, raising=False)
        monkeypatch.setattr(play.source, "close", lambda: None, raising=False)
        play.watch.run(over, stepped)
        assert {event.about for event in play.watch.events} == {"judging", "state"}


def test_what_is_judged_begins_when_the_last_incident_is_over(incident: Capture) -> None:
    span = incident.span_ns()
    assert span is not None
    start_ns, end_ns = span
    over = Window(start_ns, start_ns + 60 * NS_PER_S)
    judged = watching.since(incident, (over,), end_ns).span_ns()
    assert judged is not None and judged[0] >= over.end_ns and judged[1] == end_ns
    just_over = Window(start_ns, end_ns - 30 * NS_PER_S)
    assert watching.since(incident, (just_over,), end_ns) is incident
    assert watching.since(incident, (), end_ns) is incident
    assert watching.since(incident, (Window(0, 1),), end_ns) is incident


def test_what_only_all_of_the_window_shows_stays_known(incident: Capture) -> None:
    whole = diagnose(incident)
    assert whole.findings
    recent = replace(whole, findings=whole.findings[:1])
    assert {one.rule for one in watching.with_older(recent, whole).findings} == {one.rule for one in whole.findings}
    assert watching.with_older(whole, whole).findings == whole.findings
