"""Use case: the verdict of a probe from recordings that were made before: of a workload, then of pulses.

The pulses are known from the load tool's own reports where those were recorded, as `leadline probe` leaves them. Else
they are found in the counters of the disk: its highest steady rate, and a steady rate below.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from leadline.app.diagnose.diagnosing import diagnose
from leadline.app.probe.model import DELIVERED_SHARE, Observed, ProbeVerdict, Pulse, judge, undecided
from leadline.app.probe.probing import FACTS, Probed, ProbePlan, disk_line, observe, pulse_of, unlike_rounds
from leadline.app.read.importing import Imported, import_paths
from leadline.core.contracts.importer import Request
from leadline.core.model.capture import Capture
from leadline.core.model.errors import InputError, LeadlineError, UsageError
from leadline.core.model.finding import Diagnosis, Window
from leadline.core.model.result import Result

if TYPE_CHECKING:
    from leadline.app.probe.probing import DiskLine, Floats

PLATEAU_SAMPLES = 3  # Judgement: fewer samples at one rate are chance
PLATEAU_SPREAD = 0.1  # Judgement: of the mean; a pulse is steady
GENTLE_MIN, GENTLE_MAX = 0.2, 0.9  # Judgement: of the ceiling; below it is hardly load, above it queues at it
NAMED_SHARE = 0.02  # Judgement: an offered rate so near the limit is the pulse at the limit
_ROUNDS = ("round-1", "round-2")


@dataclass(frozen=True, slots=True)
class _LimitEvidence:
    """Pulses with when they were: as hard as possible, below that, at the limit."""

    hard: tuple[Pulse, Window]
    gentle: tuple[Pulse, Window] | None = None
    at_limit: tuple[Pulse, Window] | None = None

    @property
    def listed(self) -> list[tuple[Pulse, Window]]:
        return [placed for placed in (self.hard, self.gentle, self.at_limit) if placed is not None]


def judge_recordings(origin: Sequence[Path], limit: float | None) -> tuple[Probed, ProbePlan, Imported]:
    """The same as a live probe: what was found, what was known, and everything that was recorded.

    ``origin`` is the folder of a probe, or two recordings: of the workload, then of the pulses.

    Raises:
        UsageError: it is neither.
        InputError: it does not exist, or a recording cannot be read, or has no disk.
    """
    quiet, pulsed = _rounds(origin)
    facts = _facts(quiet, pulsed)
    limit = facts.get("iops_limit") if limit is None else limit
    first, second = (import_paths(_files(path), Request()).capture for path in (quiet, pulsed))
    disk = facts.get("disk") or _busiest(second)
    observed = observe(first, disk)
    if observed is None:
        raise _no_disk(quiet)
    placed_pulses = _reported(second, limit) or _counted(second, disk, limit)
    if placed_pulses is None and _busiest(second) is None:
        raise _no_disk(pulsed)
    verdict = _verdict(observed, placed_pulses, (first, second), disk, limit)
    pulses = [] if placed_pulses is None else placed_pulses.listed
    watched = _span(first)
    done = Probed(
        observed,
        tuple(pulse for pulse, _ in pulses),
        verdict,
        _diagnosis(first),
        pulses[0][0].read_pct if pulses else float("nan"),
        (),
        tuple(window for _, window in pulses),
        watched,
        disk,
    )
    target = facts.get("target") or disk or str(pulsed)
    outstanding = pulses[0][0].outstanding if pulses else 0
    probe_plan = ProbePlan(
        str(target), pulsed.absolute(), 0.0, 0.0, limit, outstanding, None, observed=quiet.absolute()
    )
    return done, probe_plan, import_paths([*_files(quiet), *_files(pulsed)], Request())


def _verdict(
    observed: Observed,
    placed_pulses: _LimitEvidence | None,
    captures: tuple[Capture, Capture],
    disk: str | None,
    limit: float | None,
) -> ProbeVerdict:
    if placed_pulses is None:
        return undecided(
            f"no {PLATEAU_SAMPLES} samples in a row of the second recording are at one rate, so it holds no pulse",
            ("record while pulses run, or let leadline probe make them",),
        )
    hard = placed_pulses.hard[0]
    unlike = unlike_rounds(observed, hard, captures[1], disk)
    if _overlap(*captures):
        unlike = (*unlike, "both recordings are of the same time, so the workload ran beside the pulses")
    gentle, at_limit = (
        None if placed is None else placed[0] for placed in (placed_pulses.gentle, placed_pulses.at_limit)
    )
    return judge(observed, gentle, at_limit, hard, limit, unlike)


def _rounds(origin: Sequence[Path]) -> tuple[Path, Path]:
    if len(origin) == 2:
        return origin[0], origin[1]
    if len(origin) == 1 and all((origin[0] / name).is_dir() for name in _ROUNDS):
        return origin[0] / _ROUNDS[0], origin[0] / _ROUNDS[1]
    if len(origin) == 1 and not origin[0].exists():
        raise InputError(
            str(origin[0]), found="no such folder", expected="the folder of a probe", advice="Check the path."
        )
    raise UsageError(
        "--from",
        found=f"{len(origin)} recording{'' if len(origin) == 1 else 's'}",
        expected="the folder of a probe, or two: of the workload, then of the pulses",
        advice="leadline probe --from iostat-1.json --from iostat-2.json",
    )


def _files(path: Path) -> list[Path]:
    """What a round holds besides the tool's job files and messages; any other recording itself."""
    if path.is_dir() and path.name in _ROUNDS:
        return sorted([*path.glob("linux.txt"), *path.glob("*.json")])
    return [path]


def _facts(quiet: Path, pulsed: Path) -> dict[str, Any]:
    """What a probe wrote down beside its recordings; nothing where there is none."""
    path = pulsed.parent / FACTS
    if quiet.parent != pulsed.parent or not path.is_file():
        return {}
    try:
        facts = json.loads(path.read_text(encoding="utf-8"))
        limit = facts["iops_limit"]
        return {
            "target": str(facts["target"]),
            "disk": None if facts["disk"] is None else str(facts["disk"]),
            "iops_limit": None if limit is None else float(limit),
        }
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(
            str(path), found=f"no facts of a probe ({error})", expected="target, disk and limit", advice="Remove it."
        ) from error


def _no_disk(path: Path) -> InputError:
    return InputError(
        str(path),
        found="no disk",
        expected="a recording of iostat -x",
        advice="Record it: iostat -x -t -o JSON 1",
    )


def _busiest(capture: Capture) -> str | None:
    observed = observe(capture, None)
    return None if observed is None else observed.disk


def _diagnosis(capture: Capture) -> Diagnosis | None:
    try:
        return diagnose(capture)
    except LeadlineError:
        return None


def _span(capture: Capture) -> Window | None:
    starts = [source.start_ns for source in capture.sources if source.start_ns is not None]
    ends = [source.end_ns for source in capture.sources if source.end_ns is not None]
    return Window(min(starts), max(ends)) if starts and ends else None


def _overlap(quiet: Capture, pulsed: Capture) -> bool:
    one, other = _span(quiet), _span(pulsed)
    return one is not None and other is not None and one.start_ns < other.end_ns and other.start_ns < one.end_ns


def _reported(capture: Capture, limit: float | None) -> _LimitEvidence | None:
    """The pulses a load tool reported; None when it reported none without a rate."""
    placed_pulses = []
    for number, source in enumerate(capture.sources):
        results = [result for result in capture.results if result.source.partition(":")[0] == source.name]
        run_capture = Capture(
            [group for group in capture.groups if group.source == number], capture.sources, results=results
        )
        started = [result.start_ns for result in results if result.start_ns is not None]
        asked: dict[str, Any] = results[0].workload if results else {}
        pulse = pulse_of(run_capture, None, _whole(asked, "iodepth") * _whole(asked, "numjobs")) if started else None
        if pulse is not None:
            offered = _offered(results, pulse)
            end = min(started) + round(max(result.duration_s for result in results) * 1e9)
            placed_pulses.append((replace(pulse, offered_per_s=offered), Window(min(started), end)))
    hard = max(
        (placed for placed in placed_pulses if placed[0].offered_per_s is None),
        key=lambda placed: placed[0].per_s,
        default=None,
    )
    if hard is None:
        return None
    paced = [placed for placed in placed_pulses if placed[0].offered_per_s is not None]
    at_limit = next((placed for placed in paced if limit and abs(_pace(placed) - limit) <= NAMED_SHARE * limit), None)
    gentle = min((placed for placed in paced if placed is not at_limit), key=_pace, default=None)
    return _LimitEvidence(hard, gentle, at_limit)


def _pace(placed: tuple[Pulse, Window]) -> float:
    return placed[0].offered_per_s or 0.0


def _whole(options: dict[str, Any], name: str) -> int:
    text = str(options.get(name, 1))
    return int(text) if text.isdecimal() else 1


def _offered(results: Sequence[Result], pulse: Pulse) -> float | None:
    """The rate fio was told to keep; what came out where its option cannot be read; None for as hard as possible."""
    total = 0.0
    for result in results:
        for name, size in (("rate", pulse.size_bytes), ("rate_iops", 1.0)):
            words = [word for word in str(result.workload.get(name, "")).split(",") if word]
            if not words:
                continue
            if not all(word.isdecimal() for word in words):
                return pulse.per_s
            total += sum(float(word) for word in words) / size * _whole(result.workload, "numjobs")
    return total or None


def _counted(capture: Capture, disk: str | None, limit: float | None) -> _LimitEvidence | None:
    """The pulses in the counters of a disk: its highest steady rate, and the longest steady one well below."""
    line = None if disk is None else disk_line(capture, disk)
    if line is None:
        return None
    runs = _plateaus(line.iops)
    hard = max(runs, key=lambda stretch: float(line.iops[stretch].mean()), default=None)
    if hard is None:
        return None
    top = float(line.iops[hard].mean())
    below = [stretch for stretch in runs if GENTLE_MIN * top <= float(line.iops[stretch].mean()) <= GENTLE_MAX * top]
    below = [stretch for stretch in below if np.isfinite(line.await_ms[stretch]).any()]
    at_limit = None
    if limit is not None:
        near = (1.0 - DELIVERED_SHARE) * limit
        at_limit = next((stretch for stretch in runs if abs(float(line.iops[stretch].mean()) - limit) <= near), None)
    gentle = max(
        (stretch for stretch in below if stretch is not at_limit),
        key=lambda stretch: stretch.stop - stretch.start,
        default=None,
    )
    return _LimitEvidence(
        _of(line, hard, paced=False),
        None if gentle is None else _of(line, gentle, paced=True),
        None if at_limit is None or at_limit is hard else _of(line, at_limit, paced=True),
    )


def _plateaus(rate: Floats) -> list[slice]:
    """Spans of samples whose rates are within a tenth of their mean, each as long as it goes."""
    stretches, begin = [], 0
    while begin < len(rate):
        end = begin
        while end < len(rate) and _is_level(rate[begin : end + 1]):
            end += 1
        if end - begin >= PLATEAU_SAMPLES:
            stretches.append(slice(begin, end))
        begin = max(end, begin + 1)
    return stretches


def _is_level(rates: Floats) -> bool:
    mean = float(rates.mean())
    return mean > 0 and float(np.abs(rates - mean).max()) <= PLATEAU_SPREAD * mean


def _of(line: DiskLine, stretch: slice, *, paced: bool) -> tuple[Pulse, Window]:
    rates, waits, times = line.iops[stretch], line.await_ms[stretch], line.times_ns[stretch]
    timed = np.isfinite(waits)
    per_s = float(rates.mean())
    mean = float(np.average(waits[timed], weights=rates[timed])) if timed.any() else float("nan")
    outstanding = max(round(per_s * mean / 1000.0), 1) if timed.any() else 1  # Little's law: the counters tell no other
    cv = 100.0 * float(rates.std()) / per_s
    pulse = Pulse(per_s if paced else None, per_s, mean, float("nan"), cv, outstanding)
    step = int(times[1] - times[0])
    return pulse, Window(int(times[0]) - step, int(times[-1]))
