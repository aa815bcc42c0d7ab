"""Recorded incidents played through a watch, as if each went on now: ``make bench-played``.

Each archive of ``incidents/recorded`` is given to a watch five seconds at a time, by the clock of the recording. Of one
with a fault it is counted whether an incident was opened for it, how long after the fault began, whether the first
cause that people were told is true, what `diagnose` says of the whole recording, and whether more than one incident
was opened. Of a healthy one every notice is a false one. These recordings are harder than a watch: they begin some
seconds before the fault, which lasts for twenty, where a watch knows the last twenty minutes. Half of the recordings
are set aside: they are in the totals and never shown one by one, so that nothing is tuned on them. The exit status is
0: this measures; 2 on wrong arguments.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import tempfile
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median

from benches.incidents.recordings import Truth, archives, ns_of, read_recording
from leadline.app.diagnose.diagnosing import diagnose
from leadline.app.watch.incident_book import IncidentStep, LifeStep
from leadline.app.watch.recorded import RecordedFiles
from leadline.app.watch.settings import WatchSettings
from leadline.app.watch.sources import SourceEvent, SourceHealth
from leadline.app.watch.watching import Watch
from leadline.core.contracts.rule import rule_metas
from leadline.core.model.capture import NS_PER_S, Capture
from leadline.core.model.vocabulary import Severity
from leadline.faces.words.live import incident_words
from leadline.stores.incidents import IncidentStore, LiveIncident
from leadline.stores.samples import SampleStore
from tests.conftest import ROOT

RECORDED = ROOT / "incidents" / "recorded"
STEP_S = 5
IN_TIME_S = 30.0  # after the duration of the rule


@dataclass
class PlayedSource:
    """A source that gives what is put into it."""

    name: str = "played"
    kind: str = "played"
    waiting: list[Capture] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.health = SourceHealth(self.name, self.kind, 1.0)

    def take(self) -> list[Capture]:
        """What was put in since the last time."""
        given, self.waiting = self.waiting, []
        return given

    def events(self) -> list[SourceEvent]:
        """None: it is never down."""
        return []


@dataclass(frozen=True, slots=True)
class Played:
    """One recording and what the watch said.

    Attributes:
        first: the cause that was told when the incident of the fault was opened; None where none was.
        last: what it was called at the end.
        whole: what `diagnose` calls the first cause of the whole recording.
        after_s: from the begin of the fault to the opening.
        in_time: within 30 s of the duration of its rule.
        fault_s: how long the fault lasted, in the recording.
        opened: how many incidents were opened.
        false: the causes of those of medium severity or more before the fault, or of a healthy recording.
    """

    kind: str
    variant: int
    is_set_aside: bool
    is_faulty: bool
    fault_s: float = 0.0
    first: str | None = None
    last: str | None = None
    whole: str | None = None
    after_s: float | None = None
    in_time: bool = False
    is_first_true: bool = False
    is_last_true: bool = False
    is_whole_true: bool = False
    opened: int = 0
    false: tuple[str, ...] = ()


def parts(capture: Capture) -> Iterator[Capture]:
    """A capture as a watch would get it."""
    span = capture.span_ns()
    if span is None:
        return
    for start in range(span[0] - NS_PER_S, span[1] + 1, STEP_S * NS_PER_S):
        yield capture.between(start, start + STEP_S * NS_PER_S)


def steps_of(capture: Capture, folder: Path) -> tuple[list[IncidentStep], list[LiveIncident]]:
    """What became of incidents while a capture was played, and how each is called at the end."""
    settings = WatchSettings.model_validate(
        {"sources": [{"name": "x", "follow": "x"}], "store": {"folder": str(folder / "store")}}
    )
    source, incidents = PlayedSource(), IncidentStore(folder / "store")
    with SampleStore(folder / "store") as store:
        files = RecordedFiles(folder / "work")
        watch = Watch(settings, (source,), files, store, incidents, incident_words)  # type: ignore[arg-type]
        now_s = 0.0
        watch.clock = lambda: now_s
        steps = []
        for part in parts(capture):
            now_s += STEP_S
            source.waiting.append(part)
            steps += watch.step()
        return steps, incidents.between(0, 1 << 62)


def is_true(rule: str | None, truth: Truth) -> bool:
    """Whether a rule names a cause of the fault."""
    if rule is None or truth.fault is None:
        return False
    meta = rule_metas().get(rule)
    return not truth.fault.causes.isdisjoint({rule} if meta is None else meta.causes)


def played(archive: Path) -> Played:
    """One recording through a watch of its own."""
    with tempfile.TemporaryDirectory(prefix="leadline-bench-") as text:
        folder = Path(text)
        recording = read_recording(archive, folder / "recording")
        steps, last = steps_of(recording.whole, folder)
    truth = recording.truth
    opened = [step.incident for step in steps if step.step is LifeStep.OPENED]
    start_ns = 1 << 62 if truth.fault is None else ns_of(truth.fault.start)
    early = [one for one in opened if one.seen_ns < start_ns and one.severity >= Severity.MEDIUM]
    known = Played(
        truth.kind,
        truth.variant,
        truth.set_aside,
        truth.fault is not None,
        opened=len(opened),
        false=tuple(one.cause for one in early),
    )
    answer = diagnose(recording.whole).answer
    whole = answer.cause.finding.rule if answer.cause is not None and answer.explains else None
    first = next((one for one in opened if one.seen_ns >= start_ns), None)
    if truth.fault is None or first is None:
        fault_s = 0.0 if truth.fault is None else (truth.fault.end - truth.fault.start).total_seconds()
        return Played(**{**asdict(known), "whole": whole, "fault_s": fault_s, "is_whole_true": is_true(whole, truth)})
    after_s = (first.seen_ns - start_ns) / NS_PER_S
    final = next(one.cause for one in last if one.id == first.id)
    return Played(
        **{
            **asdict(known),
            "fault_s": (truth.fault.end - truth.fault.start).total_seconds(),
            "first": first.cause,
            "last": final,
            "whole": whole,
            "after_s": round(after_s, 1),
            "in_time": after_s <= IN_TIME_S + duration_s(first.cause),
            "is_first_true": is_true(first.cause, truth),
            "is_last_true": is_true(final, truth),
            "is_whole_true": is_true(whole, truth),
        }
    )


def duration_s(rule: str) -> float:
    """The duration of a rule, seconds; 0 where it has none."""
    meta = rule_metas().get(rule)
    threshold = None if meta is None else meta.thresholds.get("duration")
    return 0.0 if threshold is None else threshold.value


def print_one(one: Played) -> None:
    """The line of a recording."""
    name = f"{one.kind}/{one.variant}"
    if not one.is_faulty:
        print(f"{name:<28} healthy: {', '.join(one.false) or 'nothing told'}")
        return
    mark = "NOT SEEN" if one.first is None else "true" if one.is_first_true else "NOT TRUE"
    after = "" if one.after_s is None else f", told after {one.after_s:.0f} s of {one.fault_s:.0f}"
    early = f", BEFORE THE FAULT: {', '.join(one.false)}" if one.false else ""
    print(f"{name:<28} {mark}{after}: {one.first}, at the end {one.last}, diagnose {one.whole}{early}")


def print_totals(rows: list[Played]) -> None:
    """The totals of those shown, of those set aside and of all."""
    for title, some in (
        ("shown", [one for one in rows if not one.is_set_aside]),
        ("set aside", [one for one in rows if one.is_set_aside]),
        ("all", rows),
    ):
        faulty, healthy = [one for one in some if one.is_faulty], [one for one in some if not one.is_faulty]
        seen = [one for one in faulty if one.first is not None]
        late = [one.after_s for one in seen if one.after_s is not None]
        print(
            f"{title}: {len(faulty)} with a fault: {len(seen)} seen, told after {median(late) if late else 0:.0f} s in "
            f"the median, {sum(one.in_time for one in seen)} in time; the first cause told is true in "
            f"{sum(one.is_first_true for one in seen)}, the last in {sum(one.is_last_true for one in seen)}, diagnose "
            f"is right in {sum(one.is_whole_true for one in faulty)}; more than one incident in "
            f"{sum(one.opened > 1 for one in seen)}; told before the fault in {sum(bool(one.false) for one in faulty)}"
        )
        print(f"  {len(healthy)} healthy: something told in {sum(bool(one.false) for one in healthy)}")


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(prog="python -m benches.bench_played", description=__doc__.split("\n\n")[0])
    parser.add_argument("--kind", action="append", help="only recordings of this kind")
    parser.add_argument("--count", type=int, default=0, help="only the first so many recordings")
    parser.add_argument("--jobs", type=int, default=0, help="side by side (default: one for each processor)")
    parser.add_argument("--json", type=Path, help="write the rows to a file, too")
    options = parser.parse_args()
    paths = archives(RECORDED, options.kind)
    paths = paths[: options.count] if options.count else paths
    if not paths:
        parser.error("no recordings of that kind")
    rows = []
    jobs = min(options.jobs or os.cpu_count() or 1, len(paths))
    with ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("spawn")) as pool:
        for future in as_completed([pool.submit(played, path) for path in paths]):
            rows.append(future.result())
            if not rows[-1].is_set_aside:
                print_one(rows[-1])
            if options.json is not None:
                options.json.write_text(json.dumps([asdict(one) for one in rows], indent=1) + "\n")
    print_totals(rows)


if __name__ == "__main__":
    main()
