"""The loop of a watch: what sources gave is kept, judged and told, step by step.

A step reads what is new, keeps it in the store before anything else, moves the live window on, and now and then judges
it. What a judgement says becomes incidents; who is to know is told by a queue on the disk. Whatever fails in a step is
said and tried again in the next one.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from leadline.app.diagnose.causes import explained
from leadline.app.diagnose.diagnosing import diagnose
from leadline.app.diagnose.feeling import feeling_of
from leadline.app.diagnose.incidents import Lookout
from leadline.app.diagnose.symptoms import Symptoms
from leadline.app.watch.announcing import Announcer
from leadline.app.watch.incident_book import REOPEN_WITHIN_S, IncidentBook, IncidentStep, LifeStep, still_needed
from leadline.app.watch.incident_captures import QUOTA_SHARE, IncidentCaptures
from leadline.app.watch.judging import LiveJudge
from leadline.app.watch.sources import SourceEvent, WatchedSource
from leadline.app.watch.suspicions import Suspicion, looking_back, recent_ns, suspicions_of
from leadline.app.watch.window import EVENTS, LiveWindow
from leadline.core.contracts.notifier import Notice, NoticeState
from leadline.core.contracts.rule import rule_metas
from leadline.core.model.capture import NS_PER_S, Capture
from leadline.core.model.entities import Fact, Inventory
from leadline.core.model.errors import LeadlineError
from leadline.core.model.events import events_of
from leadline.core.model.finding import Diagnosis, Window
from leadline.core.model.profile import Profile
from leadline.core.model.vocabulary import EntityKind
from leadline.core.system.secret import scrubbed
from leadline.stores.incidents import IncidentStore, LiveIncident, Marker

if TYPE_CHECKING:
    from leadline.app.watch.recorded import RecordedFiles
    from leadline.app.watch.settings import WatchSettings
    from leadline.app.watch.telling import Teller
    from leadline.stores.samples import SampleStore, StoreStatus
    from leadline.stores.victoriametrics import VictoriaMetricsStore

SEND_EVERY_S, MAINTAIN_EVERY_S, FACTS_EVERY_S = 2.0, 60.0, 3600.0
EVENTS_KEPT = 200
_NOT_SETTINGS = frozenset(  # they move along
    {
        *("events", "role", "filesystem_free_pct", "free_gib", "provisioned_gib", "uptime_days", "snapshot_age_days"),
        *("snapshot_ages_days", "snapshot_size_gib", "certificate_days_left", "vsan_device_used_pct"),
    }
)
_NO_PLACES = frozenset({EntityKind.SESSION, EntityKind.STATEMENT})  # what is known of them is what they do now
_NO_CHANGES = frozenset({"alarm-status-changed", "user-login-session", "user-logout-session"})
WHOLE_SERIES_MAX = 20_000  # of more, rules are asked where samples came, and no account is made
GONE_EVERY_S = 300.0
NORMAL_S = 60.0  # Judgement: of a shorter time it cannot be said what is usual
AHEAD_S = 120.0  # of samples: more is a clock that was put back, or one that is ahead elsewhere
HELPER_END_S = 30.0  # what sending and keeping may take at the end
JUDGE_SHARE_MAX = 0.25  # of the time: a judgement that takes longer is made less often
Say = Callable[["Diagnosis", Capture, Suspicion], tuple[str, str]]


@dataclass(frozen=True, slots=True)
class WatchEvent:
    """Something that a watch says: a source that went down, a disk that is full."""

    time_ns: int
    about: str
    text: str
    is_bad: bool


@dataclass(slots=True)
class Judged:
    """The last judgement: when, of what, and how long it took."""

    time_ns: int = 0
    duration_s: float = 0.0
    diagnosis: Diagnosis | None = None
    suspicions: tuple[Suspicion, ...] = ()


@dataclass(eq=False)
class Watch:
    """A watch that runs.

    Args:
        settings: what it does.
        sources: that are sampled in threads of their own; started by `run`.
        files: what recorders and others append to.
        store: where samples are kept.
        incidents: where incidents are kept.
        say: title and text of a suspicion.
        teller: tells people; None for nobody.
        profile: a site's own limits.
        clock: seconds, which say what is due.
    """

    settings: WatchSettings
    sources: tuple[WatchedSource, ...]
    files: RecordedFiles
    store: SampleStore | VictoriaMetricsStore
    incidents: IncidentStore
    say: Say
    teller: Teller | None = None
    profile: Profile = field(default_factory=Profile)
    clock: Callable[[], float] = time.monotonic
    judge: LiveJudge = field(init=False)
    window: LiveWindow = field(init=False)
    book: IncidentBook = field(init=False)
    announcer: Announcer = field(init=False)
    captures: IncidentCaptures = field(init=False)
    judged: Judged = field(default_factory=Judged)
    events: deque[WatchEvent] = field(default_factory=lambda: deque(maxlen=EVENTS_KEPT))
    stored: StoreStatus | None = None  # once a minute
    last_steps: tuple[IncidentStep, ...] = ()
    sample_count: int = 0
    lost_count: int = 0  # readings that a full disk did not take before the window had moved on
    began_ns: int = field(default_factory=time.time_ns)
    _due: dict[str, float] = field(default_factory=dict)
    _unkept: list[IncidentStep] = field(default_factory=list)
    _unstored: list[Capture] = field(default_factory=list)
    _failing: dict[str, str] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self.judge = LiveJudge(self.profile)
        self.window = LiveWindow(self.settings.window_minutes * 60.0, [])
        self.book = IncidentBook(self._words_of)
        now_ns = time.time_ns()
        recent = self.incidents.between(now_ns - _ns(REOPEN_WITHIN_S), now_ns)
        known = [*self.incidents.open_ones(), *(one for one in recent if not one.is_open)]
        self.book.take_up(known)
        bytes_max = round(QUOTA_SHARE * self.settings.store.gib_max * (1 << 30))
        self.captures = IncidentCaptures(self.settings.store.path() / "incidents", self.store, bytes_max)
        self.captures.take_up(known)
        self.announcer = Announcer(self.settings.tell, self.incidents, self._tell)
        self.announcer.take_up()

    def run(self, over: threading.Event, stepped: Callable[[], None] | None = None) -> None:
        """Watch until it is over.

        Args:
            over: set by whoever ends it.
            stepped: called after each step, such as to redraw a screen.
        """
        self._try("window", self._fill_window)
        for source in self.sources:
            source.start()
        helpers = [
            threading.Thread(target=work, args=(over,), name=f"leadline-{name}", daemon=True)
            for name, work in (("notices", self._send), ("keeping", self._keep_house))
        ]
        for helper in helpers:
            helper.start()
        try:
            while not over.is_set():
                began = time.monotonic()
                self.step()
                if stepped is not None:
                    self._try("state", stepped)
                over.wait(max(self.settings.read_every_s - (time.monotonic() - began), 0.05))
        finally:
            for source in self.sources:
                source.close()
            with self.lock:
                self._take_in()
            for helper in helpers:
                helper.join(HELPER_END_S)
            self.store.close()

    def _fill_window(self) -> None:
        """Fill the window from the store, so that an incident that goes on is compared with the time before it."""
        kept_ns, now_ns = self.store.span_ns(), time.time_ns()
        start_ns = now_ns - _ns(self.window.span_s)
        if kept_ns is None or kept_ns[1] < start_ns:
            return
        newest = self.store.read(kept_ns[1] - _ns(NORMAL_S), kept_ns[1] + 1, settings=False)
        if newest.series_count <= WHOLE_SERIES_MAX:  # of more, what users feel is not looked for
            # Settings are read anew: those of what is gone would be judged.
            self.window.take(self.store.read(start_ns, now_ns, settings=False))

    def step(self) -> list[IncidentStep]:
        """Take in what is new, and judge it where that is due."""
        with self.lock:
            self._take_in()
            steps: list[IncidentStep] = []
            if self.window.changed and self._is_due("judge", self._judge_every_s()):
                steps = self._try("judging", self._judge) or []
            self.last_steps = tuple(steps)
            self._unkept = still_needed([*self._unkept, *steps])
            self._try("incidents", self._keep_steps)
            return steps

    def keep_house(self) -> None:
        """Put the store in order and write the recordings of incidents: what takes longer than a step may."""
        self._try("store", self._maintain)
        self._try("captures", self._write_captures)

    def _keep_house(self, over: threading.Event) -> None:
        is_last = False
        while not is_last:
            is_last = over.wait(MAINTAIN_EVERY_S)
            self.keep_house()

    def _take_in(self) -> None:
        """Keep what is new, then put it into the window."""
        captures = [capture for source in self.sources for capture in source.take()]
        if self._is_due("facts", FACTS_EVERY_S):
            for source in self.sources:
                if source.kind == "linux":
                    self._try("facts", partial(self.files.add_facts, source.name))
        if self._is_due("gone", GONE_EVERY_S):
            self._forget_gone()
        recorded = self._try("files", self.files.read)
        captures += [] if recorded is None else [recorded]
        for source in self.sources:
            for event in source.events():
                self._source_event(event)
        self._unstored += [capture for capture in captures if capture.groups or capture.inventory.facts]
        self._try("store", self._store)
        span, now_ns = self.window.capture.span_ns(), time.time_ns()
        if span is not None and captures and span[1] > now_ns + _ns(AHEAD_S):
            self.events.append(WatchEvent(now_ns, "clock", "was put back; samples ahead of it are kept", is_bad=True))
            self.window.drop_newer(now_ns)
        for capture in captures:
            self._mark_changes(capture)
            self.window.take(capture)
            self.sample_count += sum(group.values.size for group in capture.groups)

    def _forget_gone(self) -> None:
        """What comes and goes, as sessions do, costs no memory when it is gone."""
        span = self.window.capture.span_ns()
        self.window.forget_gone()
        if span is not None:
            self.files.forget(span[0])

    def _store(self) -> None:
        """Keep what is not kept yet; what a full disk refuses waits for the next step, as far as the window reaches."""
        newest_ns = max((span[1] for capture in self._unstored if (span := capture.span_ns())), default=0)
        oldest_ns = newest_ns - round(self.window.span_s * NS_PER_S)
        before = len(self._unstored)
        self._unstored = [one for one in self._unstored if (one.span_ns() or (0, newest_ns))[1] >= oldest_ns]
        self.lost_count += before - len(self._unstored)
        while self._unstored:
            self.store.append(self._unstored[0])
            del self._unstored[0]

    def _maintain(self) -> None:
        self.store.maintain()
        self.stored = self.store.status()

    def _judge_every_s(self) -> float:
        return max(self.settings.judge_every_s, self.judged.duration_s / JUDGE_SHARE_MAX)

    def _judge(self) -> list[IncidentStep]:
        began = time.monotonic()
        capture = self.window.capture
        span = capture.span_ns()
        if span is None:
            return []
        is_large = capture.series_count > WHOLE_SERIES_MAX
        diagnosis = self._findings() if is_large else self._diagnosed(capture, span[1])
        suspicions = suspicions_of(diagnosis, capture, span[1], self.profile)
        self.judged = Judged(span[1], 0.0, diagnosis, suspicions)
        steps = self.book.judged(suspicions, capture, span[1])
        if not is_large:
            steps = [self._concluded(step) if step.step is LifeStep.CLOSED else step for step in steps]
        self.judged.duration_s = time.monotonic() - began
        return steps

    def _diagnosed(self, capture: Capture, now_ns: int) -> Diagnosis:
        """What is wrong now: felt since the last incident was over, found in all of the window."""
        past = self.book.past_ones()
        lookout = Lookout(recent_ns(now_ns), past)
        whole = diagnose(capture, self.profile, lookout=lookout)
        recent = since(capture, past, now_ns)
        if recent is capture:
            return whole
        return with_older(diagnose(recent, self.profile, lookout=lookout), whole)

    def _concluded(self, step: IncidentStep) -> IncidentStep:
        """An incident that was closed, as `diagnose` calls it now that all of it and its normal are in the window.

        While it goes on it is judged again and again from what is known by then, which may be a part of it.
        """
        incident = step.incident
        if not incident.was_felt:
            return step
        others = tuple(one for one in self.book.past_ones() if one.end_ns <= incident.opened_ns)
        capture = since(self.window.capture, others, self.judged.time_ns)
        diagnosis = diagnose(capture, self.profile)
        suspicion = looking_back(diagnosis, capture, Window(incident.opened_ns, incident.seen_ns))
        if suspicion is None or (incident.cause in rule_metas() and suspicion.cause not in rule_metas()):
            return step  # what explains nothing is no better name
        return self.book.concluded(step, suspicion, self.say(diagnosis, capture, suspicion))

    def _findings(self) -> Diagnosis:
        """What rules find in a large window, each with what explains it; no answer is made of it."""
        capture = self.window.capture
        verdict = self.judge.judge(self.window)
        symptoms = Symptoms((), feeling_of(capture))
        joined = explained(verdict.findings, symptoms, capture, ())
        return Diagnosis((), (), joined.findings, (), feeling=symptoms.feeling)

    def _words_of(self, suspicion: Suspicion) -> tuple[str, str]:
        assert self.judged.diagnosis is not None  # it is where suspicions come from
        return self.say(self.judged.diagnosis, self.window.capture, suspicion)

    def _keep_steps(self) -> None:
        """Keep what became of incidents and tell it, in order; what a full disk refuses waits until it has space."""
        if self._unkept:
            self.incidents.save(*(step.incident for step in self._unkept))
        while self._unkept:
            self._follow(self._unkept[0])
            del self._unkept[0]
        self._announce()

    def _follow(self, step: IncidentStep) -> None:
        """Have an incident that is kept recorded, and tell who is to know."""
        self.captures.take(step.incident)
        self.announcer.take(step.incident)
        if step.step is not LifeStep.SEEN:  # of one that opened and closed since, both are told
            self._announce()

    def _announce(self) -> None:
        if self.teller is not None and self.judged.time_ns:
            self.announcer.announce(self.judged.time_ns)

    def _tell(self, incident: LiveIncident, state: NoticeState, names: list[str]) -> None:
        assert self.teller is not None
        self.teller.tell(notice_of(incident, state, self.settings.page.link), names)

    def _write_captures(self) -> None:
        """Write the recordings of incidents that are due, and say where each is."""
        for number in self.captures.write_due(self.judged.time_ns, self._copied_window):
            path = str(self.captures.path(number))
            with self.lock:
                is_known = self.book.get(number) is not None
                incident = self.book.with_capture(number, path) if is_known else self.incidents.get(number)
                self.incidents.save(replace(incident, capture=path))
                self.announcer.take(incident)

    def _copied_window(self) -> Capture:
        """Series and settings of the window, for a thread that looks at them while the watch goes on."""
        with self.lock:
            known = self.window.inventory
            return Capture(list(self.window.capture.groups), [], Inventory(dict(known.facts), dict(known.links)))

    def _mark_changes(self, capture: Capture) -> None:
        """Keep settings that are not what they were as known changes."""
        known = self.window.inventory.facts
        span = capture.span_ns()
        time_ns = time.time_ns() if span is None else span[1]
        for entity, facts in capture.inventory.facts.items():
            before = {} if entity.kind in _NO_PLACES else known.get(entity, {})
            for text in changes_of(before, facts, capture.inventory.gone.get(entity)):
                self._mark(Marker(time_ns, "setting", str(entity), text))
            if EVENTS in facts and entity.kind in (EntityKind.VM, EntityKind.HOST):
                kinds = {str(event["kind"]) for event in facts[EVENTS].value}
                for event in events_of(capture.inventory, entity, kinds - _NO_CHANGES):
                    self._mark(Marker(event.time_ns, event.kind, str(entity), event.text))

    def _source_event(self, event: SourceEvent) -> None:
        self.events.append(WatchEvent(event.time_ns, event.source, event.text, not event.is_up))
        kind = "source up" if event.is_up else "source down"
        self._mark(Marker(event.time_ns, kind, event.source, event.text))

    def _mark(self, marker: Marker) -> None:
        self._try("incidents", partial(self.incidents.mark, marker))

    def _is_due(self, name: str, every_s: float) -> bool:
        now = self.clock()
        if now < self._due.get(name, 0.0):
            return False
        self._due[name] = now + every_s
        return True

    def _try(self, name: str, action: Callable[[], Any]) -> Any:  # noqa: ANN401 - whatever it returns
        """Do something that may fail: it is said once when it begins to fail, and once when it works again.

        A defect of ours ends no watch either: it is an event like any other, and the next step is tried.
        """
        try:
            result = action()
        except Exception as error:
            text = str(error) if isinstance(error, LeadlineError) else scrubbed(f"{type(error).__name__}: {error}")
            if self._failing.get(name) != text:
                self.events.append(WatchEvent(time.time_ns(), name, text, is_bad=True))
            self._failing[name] = text
            return None
        if self._failing.pop(name, None) is not None:
            self.events.append(WatchEvent(time.time_ns(), name, "works again", is_bad=False))
        return result

    def _send(self, over: threading.Event) -> None:
        while self.teller is not None:
            is_last = over.wait(SEND_EVERY_S)
            outcome = self._try("notices", self.teller.send_due)
            for failure in () if outcome is None else outcome.failed:
                self.events.append(WatchEvent(time.time_ns(), failure.delivery.receiver, failure.error, is_bad=True))
            if is_last:
                return


def since(capture: Capture, past: tuple[Window, ...], now_ns: int) -> Capture:
    """What is judged of a window: what was since the last incident was over, where that is long enough to be a normal.

    Rules look at all of what they are given: sessions that waited for a slow log a quarter of an hour ago say nothing
    of those that wait for a lock now.
    """
    end_ns = max((window.end_ns for window in past), default=0)
    start_ns = (capture.span_ns() or (0, 0))[0]
    if end_ns <= start_ns or now_ns - end_ns < _ns(NORMAL_S):
        return capture
    return capture.between(end_ns, now_ns + 1)


def changes_of(before: Mapping[str, Fact], now: Mapping[str, Fact], anew: str | None) -> Iterator[str]:
    """The settings of an entity that are not what they were, in words.

    Args:
        before: what was known of it.
        now: what is given of it; the rest stays.
        anew: the source that gives all it knows, whose settings that are missing are no more; None for none.

    >>> before = {"cpu_limit_mhz": Fact(2000, "vc"), "vcpu_count": Fact(4, "vc"), "uptime_days": Fact(1.5, "vc")}
    >>> list(changes_of(before, {"vcpu_count": Fact(8, "vc"), "uptime_days": Fact(0.1, "vc")}, "vc"))
    ['vcpu_count: 4 -> 8', 'cpu_limit_mhz: 2000 -> not set']
    """
    settings = {name: fact for name, fact in before.items() if name not in _NOT_SETTINGS}
    for name, fact in settings.items():
        if name in now and now[name].value != fact.value:
            yield f"{name}: {_short(fact.value)} -> {_short(now[name].value)}"
    for name, fact in settings.items():
        if name not in now and fact.source == anew:
            yield f"{name}: {_short(fact.value)} -> not set"


def with_older(recent: Diagnosis, whole: Diagnosis) -> Diagnosis:
    """A diagnosis of the last part of a window, with what only all of it shows: what is wrong elsewhere for longer."""
    known = {(finding.rule, finding.entity) for finding in recent.findings}
    older = tuple(finding for finding in whole.findings if (finding.rule, finding.entity) not in known)
    return replace(recent, findings=(*recent.findings, *older))


def notice_of(incident: LiveIncident, state: NoticeState, link: str) -> Notice:
    """What people are told of an incident."""
    return Notice(
        incident=incident.id,
        state=state,
        severity=incident.severity,
        entity=incident.entity,
        cause=incident.cause,
        title=incident.title,
        text=incident.text,
        opened_ns=incident.opened_ns,
        closed_ns=incident.closed_ns,
        link=f"{link.rstrip('/')}/incidents/{incident.id}" if link else "",
        capture=incident.capture,
    )


def _ns(seconds: float) -> int:
    return round(seconds * NS_PER_S)


def _short(value: object) -> str:
    text = str(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
