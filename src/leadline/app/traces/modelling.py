"""Use case: the smallest workload file that gives what a trace has, with its distance from the trace.

Candidates are made from the trace's own numbers: all requests as one stream; reads and writes, random and sequential,
or hot and cold ones as two; finer parts as three. Each is turned into requests by a seeded generator, these are
characterised like a trace, and the distances per characteristic are averaged. The smallest is the first number of
streams whose best candidate is within the bound.

A workload says nothing of latencies, which are the target's: those of the trace are drawn from, and not compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from leadline._core import TraceProfile, trace_synthesise
from leadline.app.traces.tracing import DiskTrace
from leadline.core.model.errors import InputError, UsageError
from leadline.core.model.workload import Stream, Workload
from leadline.formats.traces import SAMPLE_KEYS, Step, TraceFiles, choose_disk, find_traces, read_trace

WITHIN = 0.15  # Judgement: mean distance up to which a workload stands for a trace
REQUESTS_MIN = 100  # Judgement: fewer say nothing of a load
SYNTHETIC_MAX = 3_000_000
BLOCKS_MAX = 6
PAUSED_SHARE = 0.2  # Judgement: with less of the time in pauses, a steady rate is the simpler truth
OIO_MAX = 256
OIO_UNKNOWN = 32
MIB = 1024**2
COMPARED = (
    "read size",
    "write size",
    "seek distance",
    "interarrival",
    "outstanding",
    "read share",
    "sequential reads",
    "sequential writes",
    "burstiness",
    "working set",
    "miss ratio",
)
_CLASSES = ("random-read", "random-write", "sequential-read", "sequential-write")


@dataclass(frozen=True, slots=True)
class Candidate:
    """A workload and how far what it gives is from the trace; NaN is not measured in either."""

    workload: Workload
    shape: str
    distances: dict[str, float]

    @property
    def distance(self) -> float:
        """The mean of the distances that could be measured."""
        known = [value for value in self.distances.values() if np.isfinite(value)]
        return float(np.mean(known)) if known else float("nan")

    def to_dict(self) -> dict[str, Any]:
        """Plain data for ``--json``."""
        parts = {"shape": self.shape, "stream_count": len(self.workload.io), "distance": self.distance}
        return {**parts, "distances": self.distances, "workload": self.workload.plain()}


@dataclass(frozen=True, slots=True, eq=False)
class Model:
    """The best candidate for each number of streams, and the one that was chosen."""

    files: TraceFiles
    disk: DiskTrace
    within: float
    candidates: tuple[Candidate, ...]
    notes: tuple[str, ...]

    @property
    def chosen(self) -> Candidate:
        """The smallest within the bound; the nearest when none is."""
        good = [candidate for candidate in self.candidates if candidate.distance <= self.within]
        return good[0] if good else min(self.candidates, key=lambda candidate: candidate.distance)

    @property
    def is_within(self) -> bool:
        """Whether the chosen one is within the bound."""
        return self.chosen.distance <= self.within

    @property
    def sentence(self) -> str:
        """For people."""
        chosen, count = self.chosen, len(self.chosen.workload.io)
        streams = f"{count} stream{'s' if count > 1 else ''} ({chosen.shape})"
        if self.is_within:
            return f"{streams}: mean distance {chosen.distance:.3f}, within {self.within:g}"
        return (
            f"No workload of up to three streams is within {self.within:g}; nearest: {streams} at {chosen.distance:.3f}"
        )

    def text(self) -> str:
        """The workload file, with the distances as comments."""
        head = [f"# Fitted from {self.files.name}, disk {self.disk.name}.", f"# {self.sentence}"]
        for name, value in self.chosen.distances.items():
            head.append(f"#   {name}: {'not measured' if np.isnan(value) else f'{value:.3f}'}")
        plain = {"leadline_workload": 1, **self.chosen.workload.plain()}
        plain["io"] = [_readable(stream) for stream in plain["io"]]
        return "\n".join(head) + "\n" + yaml.safe_dump(plain, sort_keys=False, allow_unicode=True, width=100)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for ``--json``."""
        return {
            "trace": self.files.name,
            "disk": self.disk.name,
            "within": self.within,
            "is_within": self.is_within,
            "sentence": self.sentence,
            "chosen": self.chosen.to_dict(),
            "candidates": [candidate.to_dict() for candidate in self.candidates],
            "notes": list(self.notes),
        }


def fit(
    paths: Sequence[Path], *, disk: str | None = None, within: float = WITHIN, seed: int = 1, step: Step | None = None
) -> Model:
    """Fit workloads of one, two and three streams to one disk of a trace.

    Raises:
        InputError: the trace cannot be read, has too few requests or no times.
        UsageError: it is not clear which trace or disk is meant, or the bound makes no sense.
    """
    if not 0.0 < within <= 1.0:
        raise UsageError("--within", found=f"{within:g}", expected="above 0, at most 1", advice="0.15 is usual.")
    traces, _ = find_traces(paths)
    if len(traces) > 1:
        raise UsageError("model", found=f"{len(traces)} traces", expected="one", advice="Name one of them.")
    index, profile = choose_disk(read_trace(traces[0], step=step), disk)
    disk_trace = DiskTrace(profile)
    if disk_trace.request_count < REQUESTS_MIN or np.isnan(disk_trace.duration_s):
        shortage = f"{disk_trace.request_count} requests" if disk_trace.request_count < REQUESTS_MIN else "no times"
        raise InputError(
            traces[0].name,
            found=shortage,
            expected=f"a trace of {REQUESTS_MIN} requests or more, with times",
            advice="Record for longer.",
        )
    classes = read_trace(traces[0], classes_of=index, step=step)
    parts = {part.name: DiskTrace(part) for part in classes.profiles if DiskTrace(part).request_count}
    maker = _Maker(disk_trace, parts, f"Fitted from {Path(traces[0].name).name}, disk {disk_trace.name}.")
    best: dict[int, Candidate] = {}
    for shape, streams in maker.shapes():
        workload = Workload(name="from-trace", about=maker.about, io=tuple(streams))
        candidate = Candidate(workload, shape, _distances(workload, disk_trace, seed))
        count = len(streams)
        if count not in best or candidate.distance < best[count].distance:
            best[count] = candidate
    notes = []
    if disk_trace.request_count > SYNTHETIC_MAX:
        notes.append(f"distances are of the first {SYNTHETIC_MAX:,} requests the workload gives")
    if np.isnan(disk_trace.quantiles("outstanding_count")["p50"]):
        notes.append(f"the trace has no latencies: outstanding requests are not known, oio is {OIO_UNKNOWN}")
    return Model(traces[0], disk_trace, within, tuple(best[count] for count in sorted(best)), tuple(notes))


@dataclass(frozen=True, slots=True, eq=False)
class _Maker:
    """Makes streams of a trace's classes of requests."""

    whole: DiskTrace
    parts: dict[str, DiskTrace]
    about: str

    def shapes(self) -> list[tuple[str, list[Stream]]]:
        """Return every way to divide the requests into streams: its description and its streams."""
        reads, writes = [c for c in _CLASSES if c.endswith("read")], [c for c in _CLASSES if c.endswith("write")]
        randoms, runs = list(_CLASSES[:2]), list(_CLASSES[2:])
        wanted = {
            "all": {"all": list(_CLASSES)},
            "reads, writes": {"reads": reads, "writes": writes},
            "random, sequential": {"random": randoms, "sequential": runs},
            "random, sequential reads, sequential writes": {
                "random": randoms,
                _CLASSES[2]: runs[:1],
                _CLASSES[3]: runs[1:],
            },
            "sequential, random reads, random writes": {
                "sequential": runs,
                _CLASSES[0]: randoms[:1],
                _CLASSES[1]: randoms[1:],
            },
        }
        candidates = []
        for shape, groups in wanted.items():
            streams = [self._stream(name, classes) for name, classes in groups.items() if self._count(classes)]
            if len(streams) == len(groups):
                candidates.append((shape, streams))
        hot = self._hot_share()
        if hot is not None:
            candidates.append(("hot, cold", self._split(self._stream("all", list(_CLASSES)), *hot)))
            if self._count(randoms) and self._count(runs):
                split = self._split(self._stream("random", randoms), *hot)
                candidates.append(("hot, cold, sequential", [*split, self._stream("sequential", runs)]))
        return candidates

    def _count(self, classes: list[str]) -> int:
        return sum(self.parts[name].request_count for name in classes if name in self.parts)

    def _stream(self, name: str, classes: list[str]) -> Stream:
        parts = {c: self.parts[c] for c in classes if c in self.parts}
        total = sum(part.request_count for part in parts.values())
        reads = sum(part.request_count for c, part in parts.items() if c.endswith("read"))
        randoms = sum(part.request_count for c, part in parts.items() if c.startswith("random"))
        facts, count = self.whole.facts, self.whole.request_count
        used = sum(int(part.facts["working_set_bytes"]) for part in parts.values())
        on_s, burst = self._burst()
        return Stream(
            name=name,
            block=_blocks(list(parts.values())),
            read_pct=round(100.0 * reads / total, 1),
            random_pct=round(100.0 * randoms / total, 1),
            oio=self._outstanding(total / count),
            rate_iops=max(round(total / on_s, 2), 0.01),
            burst=burst,
            working_set=_whole_mib(min(used, int(facts["working_set_bytes"]))),
        )

    def _burst(self) -> tuple[float, dict[str, float] | None]:
        """Seconds the load is on in all, and on and off seconds where pauses are much of the time."""
        facts = self.whole.facts
        off_s, pauses = facts["pause_ns"] / 1e9, int(facts["pause_count"])
        on_s = self.whole.duration_s - off_s
        if pauses < 2 or off_s < PAUSED_SHARE * self.whole.duration_s or on_s <= 0.0:
            return self.whole.duration_s, None
        return on_s, {"on_s": round(max(on_s / (pauses + 1), 1e-3), 3), "off_s": round(off_s / pauses, 3)}

    def _outstanding(self, share: float) -> int:
        """Room for all but one in a hundred of the trace's outstanding requests."""
        most = self.whole.quantiles("outstanding_count")["p99"]
        return OIO_UNKNOWN if np.isnan(most) else int(np.clip(np.ceil(most * max(share, 0.25)), 1, OIO_MAX))

    def _hot_share(self) -> tuple[float, int] | None:
        """The share of uses that stay in a small part of the working set, and its size: where the curve bends most."""
        whole = int(self.whole.facts["working_set_bytes"])
        bend = [((1.0 - ratio) - size / whole, 1.0 - ratio, size) for size, ratio in self.whole.curve() if size < whole]
        if not bend:
            return None
        gain, share, size = max(bend)
        return (share, size) if gain > 0.1 and share < 0.99 else None

    @staticmethod
    def _split(stream: Stream, share: float, size: int) -> list[Stream]:
        """A stream as two: one on a small part that gets most requests, one on the rest."""
        rest = max((stream.working_set or MIB) - size, MIB)
        parts = [("hot", share, size), ("cold", 1.0 - share, rest)]
        streams = []
        for name, part, bytes_ in parts:
            plain = stream.model_dump(mode="json")
            rates = {way: max(round(rate * part, 4), 0.0) for way, rate in plain["rate_iops"].items()}
            streams.append(
                Stream.model_validate({**plain, "name": name, "rate_iops": rates, "working_set": _whole_mib(bytes_)})
            )
        return streams


def _readable(stream: dict[str, Any]) -> dict[str, Any]:
    """Sizes as people write them."""
    sizes = {_short(int(size)): int(share) for size, share in stream.get("block", {8192: 100.0}).items()}
    block = next(iter(sizes)) if len(sizes) == 1 else sizes
    rates = {way: round(float(rate), 2) for way, rate in stream.get("rate_iops", {}).items()}
    return {**stream, "block": block, "rate_iops": rates, "working_set": _short(int(stream["working_set"]))}


def _short(size_bytes: int) -> str | int:
    for letter, unit in (("m", MIB), ("k", 1024)):
        if size_bytes % unit == 0:
            return f"{size_bytes // unit}{letter}"
    return size_bytes


def _whole_mib(size_bytes: float) -> int:
    return max(-(-int(size_bytes) // MIB), 1) * MIB


def _blocks(parts: list[DiskTrace]) -> dict[int, float]:
    """The commonest lengths with whole percentages that add up to 100."""
    counts: dict[int, int] = {}
    for part in parts:
        sizes = part.histogram("io_size_bytes")
        if sizes is not None:
            for low, count in zip(sizes.lower, sizes.counts, strict=True):
                block = max(int(low) // 512, 1) * 512
                counts[block] = counts.get(block, 0) + int(count)
    top = sorted(counts.items(), key=lambda pair: -pair[1])[:BLOCKS_MAX]
    total = sum(count for _, count in top)
    exact = {block: 100.0 * count / total for block, count in top}
    shares = {block: int(share) for block, share in exact.items()}
    for block in sorted(exact, key=lambda b: shares[b] - exact[b])[: 100 - sum(shares.values())]:
        shares[block] += 1  # the largest remainders
    return {block: float(share) for block, share in sorted(shares.items()) if share}


def _distances(workload: Workload, disk_trace: DiskTrace, seed: int) -> dict[str, float]:
    synthetic_profile = synthetic(workload, disk_trace, seed)
    distances = dict(disk_trace.profile.distances(synthetic_profile))
    values = {name: distances[name] for name in COMPARED}
    return {name: float("nan") if value is None else float(value) for name, value in values.items()}


def synthetic(workload: Workload, disk_trace: DiskTrace, seed: int) -> TraceProfile:
    """Return the profile of as many requests of a workload as a trace has; latencies are drawn from the trace."""
    streams = []
    for stream in workload.io:
        rates = stream.rate_iops
        rate = 0.0 if rates is None else rates.read + rates.write
        burst = None if stream.burst is None else (stream.burst.on_s, stream.burst.off_s)
        load = (stream.oio, stream.jobs, rate, burst, workload.working_set_bytes(stream))
        streams.append((list(stream.block.items()), stream.read_pct, stream.random_pct, *load))
    most = min(disk_trace.request_count, SYNTHETIC_MAX)
    return trace_synthesise(streams, disk_trace.duration_s, most, seed, disk_trace.profile, SAMPLE_KEYS)
