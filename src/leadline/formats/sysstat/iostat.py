"""Reports of iostat between reading and capture: what text and JSON have in common, their times, what they become."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from leadline.core.contracts.importer import UNNAMED_GUEST, ImporterMeta, Request
from leadline.core.io.clock import synthetic_times
from leadline.core.io.source import Source
from leadline.core.model.capture import CaptureBuilder, SeriesGroup, usual_interval_s
from leadline.core.model.entities import Entity
from leadline.core.model.errors import InputError
from leadline.core.model.metrics import RAW_PREFIX
from leadline.core.model.metrics import metric as metric_of
from leadline.core.model.units import factor, several
from leadline.core.model.vocabulary import EntityKind
from leadline.formats.stamps import StampReader, parse_stamp
from leadline.formats.sysstat.text import Banner, dates
from leadline.formats.tables import spread

STAMPED_MIN = 0.5  # Judgement: of a run's reports; with fewer times it is a run without
Matrix = NDArray[np.floating[Any]]

_STATISTICS = re.compile(r'"statistics"\s*:\s*\[(?P<blank>\s*\n[ \t]*\n)?')
_NAMES = {"rrqm": "%rrqm", "wrqm": "%wrqm", "drqm": "%drqm", "util": "%util"}
_CALL = re.compile(r"^[^\n]{0,100}[$#>] ?(?:sudo )?(iostat [^\n|>]{1,100})", re.MULTILINE)
_INTERVAL_MAX_S = 3600
_BETWEEN = re.compile(r"[\s,]*")
_COMMA = re.compile(r'(": *-?\d+),(\d+)(?=\s*[,}])')


def called_interval_s(source: Source) -> float | None:
    """The interval in the command line above a pasted recording; None where none is there, or calls differ.

    >>> from pathlib import Path
    >>> called_interval_s(Source("x", Path("x"), command="sudo iostat -x -p sda 5 3 | tee x"))
    5.0
    """
    calls = [source.command] if source.command else _CALL.findall(source.head_text)
    numbers = {next((word for word in call.split() if word.isdecimal()), "") for call in calls}
    if len(numbers) != 1:
        return None
    number = numbers.pop()
    return float(number) if number and 0 < int(number) <= _INTERVAL_MAX_S else None


@dataclass(frozen=True, slots=True)
class IostatRun:
    """One run of iostat: index of its first report, its banner and the date in it, if the first is since boot."""

    first: int
    banner: Banner | None
    day_text: str
    since_boot: bool


@dataclass(slots=True)
class Reports:
    """What a recording holds, before it means anything.

    Attributes:
        stamps: per report [n], its time as printed, "" for none.
        runs: in order.
        devices: names [d].
        cpu: per column of the CPU report, values [1, n]; NaN is not printed.
        disks: per column of the device report, values [d, n]; NaN is not printed.
        derived_cpu: values [1, n] of canonical metrics computed from the CPU report.
    """

    stamps: list[str]
    runs: list[IostatRun]
    devices: list[str]
    cpu: dict[str, Matrix]
    disks: dict[str, Matrix]
    derived_cpu: dict[str, Matrix] = field(default_factory=dict)

    def spans(self) -> Iterator[tuple[IostatRun, slice]]:
        """Runs that have reports, with where these are."""
        ends = [run.first for run in self.runs[1:]] + [len(self.stamps)]
        for run, end in zip(self.runs, ends, strict=True):
            if end > run.first:
                yield run, slice(run.first, end)


@dataclass(slots=True)
class Emitter:
    """Gives the reports of one recording to a capture."""

    meta: ImporterMeta
    source: Source
    request: Request
    builder: CaptureBuilder
    clock_known: bool = True

    def note_guests(self, reports: Reports) -> None:
        """Record what banners say of the guest."""
        for run in reports.runs:
            if run.banner is not None:
                release = f"{run.banner.system} {run.banner.release}"
                cpus = run.banner.cpu_count
                self.builder.inventory.add(run.banner.guest, self.builder.info.name, cpu_count=cpus, os_release=release)

    def times(self, reports: Reports, interval_s: float | None) -> NDArray[np.int64]:
        """UTC nanoseconds [n] of all reports; runs without times among runs with times are 0, all without are guessed.

        Raises:
            InputError: a printed time is none.
        """
        spans = [reports.stamps[span] for _, span in reports.spans()]
        if all(sum(map(bool, stamps)) < STAMPED_MIN * len(stamps) for stamps in spans):  # what looks like one is damage
            torn = [stamp for stamp in reports.stamps if stamp]
            if torn:
                message = f"left out: lines that are no whole row, the first {torn[0][:40]!r}"
                self.builder.warn("left-out", message, len(torn))
            self.clock_known = False
            called_s = None if interval_s else called_interval_s(self.source)
            length = interval_s or called_s or 1.0
            how = "from totals and rates" if interval_s else "by the command above" if called_s else "assumed"
            self.builder.warn(
                "no-times",
                f"no times (record with -t): reports are {length:g} s apart ({how}) up to the file's last change",
            )
            return synthetic_times(len(reports.stamps), length, self.source.mtime_ns)
        self._forget_damaged(reports)
        day_texts = [run.day_text for run in reports.runs]
        reader = StampReader.of(reports.stamps, day_texts, self.source, self.request, self.builder)
        times = np.zeros(len(reports.stamps), dtype=np.int64)
        for run, span in reports.spans():
            stamps = reports.stamps[span]
            stamped = [number for number, stamp in enumerate(stamps) if stamp]
            if len(stamped) < STAMPED_MIN * len(stamps):
                self.builder.warn("no-times", "a run without times among runs with times was left out")
                continue
            printed = reader.times_ns([stamps[number] for number in stamped], run.day_text)
            if len(stamped) < len(stamps):
                missing = several(len(stamps) - len(stamped), "report")
                self.builder.warn("no-time", f"{missing} without a time: placed between those before and after")
                between = np.interp(np.arange(len(stamps)), stamped, printed - printed[0])
                printed = printed[0] + np.rint(between).astype(np.int64)
            times[span] = printed
        self.clock_known = reader.known
        return times

    def _forget_damaged(self, reports: Reports) -> None:
        """Blank the times that are torn, where most are whole."""
        usual = Counter(map(len, reports.stamps)).most_common(1)[0][0]
        short = [number for number, stamp in enumerate(reports.stamps) if 0 < len(stamp) < usual - 2]
        torn = [number for number in short if parse_stamp(reports.stamps[number]) is None]
        if torn and len(torn) < (1 - STAMPED_MIN) * len(reports.stamps):
            first = reports.stamps[torn[0]]
            self.builder.warn("left-out", f"left out: times that cannot be read, the first {first[:40]!r}", len(torn))
            for number in torn:
                reports.stamps[number] = ""

    def emit(self, reports: Reports, times: NDArray[np.int64]) -> None:
        """Add every column that is wanted, run by run; gives up the arrays as it goes."""
        named = [
            *((name, values, False) for name, values in reports.derived_cpu.items()),
            *((self._metric(name, values), values, False) for name, values in reports.cpu.items()),
            *((self._metric(name, values), values, True) for name, values in reports.disks.items()),
        ]
        for columns in (reports.derived_cpu, reports.cpu, reports.disks):
            columns.clear()
        named.reverse()
        spans = [(run, span) for run, span in reports.spans() if times[span.start]]
        ordered = [self._ordered(times[span], run.since_boot) for run, span in spans]
        entities = [self._entities(run, reports.devices) for run, _ in spans]
        while named:
            metric, values, of_disks = named.pop()
            if metric is None or not self.request.wants(metric):
                continue
            for (run, span), (moments, order), (guest, disks) in zip(spans, ordered, entities, strict=True):
                part = values[:, span] if order is None else values[:, span][:, order]
                members = disks if of_disks else [guest]
                first = run.since_boot and order is None
                step = usual_interval_s(moments)
                self._add(SeriesGroup(metric, members, moments, part, step, since_boot=first))

    def _metric(self, name: str, values: Matrix) -> str | None:
        """The metric a column becomes, its values brought to the metric's unit in place; None when not wanted."""
        known = self.meta.fields.get(name)
        if known is not None:
            scale = factor(known.unit, metric_of(known.metric).unit)
            if scale != 1.0:
                values *= scale
            return known.metric
        return f"{RAW_PREFIX}{self.meta.tool}.{name}" if self.request.metrics is None else None

    def _entities(self, run: IostatRun, devices: list[str]) -> tuple[Entity, list[Entity]]:
        guest = run.banner.guest if run.banner is not None else UNNAMED_GUEST
        return guest, [Entity(EntityKind.BLOCK_DEVICE, name, guest) for name in devices]

    def _ordered(self, times: NDArray[np.int64], since_boot: bool) -> tuple[NDArray[np.int64], NDArray[np.intp] | None]:
        """Times ascending and distinct, and the order to bring values to, None when they are in it.

        A first report since boot is left out where it would not be the first any more.
        """
        back_count = int(np.count_nonzero(np.diff(times) < 0))
        if not back_count:
            return spread(times), None
        self.builder.warn(
            "clock-back", "the clock went back while recording; samples are in the order of their times", back_count
        )
        order = np.argsort(times, kind="stable")
        order = order[order != 0] if since_boot else order
        return spread(times[order]), order

    def _add(self, group: SeriesGroup) -> None:
        """Add a group without series that were never measured."""
        measured = [row for row, values in enumerate(group.values) if not np.isnan(values).all()]
        if len(measured) == len(group.entities):
            self.builder.add(group)
        elif measured:
            self.builder.add(group.take(measured))


def read_json(source: Source, builder: CaptureBuilder, wanted: set[str] | None) -> Reports:
    """The reports of ``iostat -o JSON``, one document or several in a row; a cut last report is left out, and said.

    Raises:
        InputError: it is damaged before its last report, or holds none.
    """
    text = source.text()
    reader = _JsonReader(source, builder, _COMMA.sub(r"\1.\2", text) if _COMMA.search(text) else text, wanted)
    end = 0
    for match in _STATISTICS.finditer(reader.text):
        if match.start() >= end:
            reader.begin(reader.text[end : match.start()], since_boot=match["blank"] is None)
            end = reader.reports(match.end())
    if not reader.stamps:
        raise reader.error(len(reader.text), "no complete report")
    return reader.finish()


@dataclass(slots=True)
class _JsonReader:
    """State of reading documents report by report."""

    source: Source
    builder: CaptureBuilder
    text: str
    wanted: set[str] | None
    stamps: list[str] = field(default_factory=list)
    runs: list[IostatRun] = field(default_factory=list)
    cpu_rows: list[tuple[int, int, dict[str, float]]] = field(default_factory=list)
    disk_rows: list[tuple[int, int, dict[str, float]]] = field(default_factory=list)
    devices: dict[str, int] = field(default_factory=dict)

    def error(self, position: int, problem: str) -> InputError:
        """The error for what stands at a position."""
        line = self.text.count("\n", 0, position) + 1
        return InputError(
            f"{self.source.name}:{line}",
            found=problem,
            expected="a report as `iostat -o JSON` writes it",
            advice="Record it again, or cut the damaged report out.",
        )

    def begin(self, head: str, *, since_boot: bool) -> None:
        """Begin a run with what stands before its reports."""

        def text_of(key: str) -> str:
            match = re.search(rf'"{key}"\s*:\s*"?([^",\n}}]*)', head)
            return match[1].strip() if match else ""

        day, host, cpus = text_of("date"), text_of("nodename"), text_of("number-of-cpus")
        count = int(cpus) if cpus.isascii() and cpus.isdigit() and len(cpus) < 7 else None
        banner = Banner(text_of("sysname") or "Linux", text_of("release"), host, dates(day), None, count)
        self.runs.append(IostatRun(len(self.stamps), banner, day, since_boot))

    def reports(self, position: int) -> int:
        """Read the reports of one run; where they end."""
        decoder = json.JSONDecoder()
        while True:
            position = cast("re.Match[str]", _BETWEEN.match(self.text, position)).end()
            if self.text[position : position + 1] in {"]", ""}:
                return position
            try:
                report, end = decoder.raw_decode(self.text, position)
            except (ValueError, RecursionError) as error:
                at = getattr(error, "pos", position)
                if "\n" in self.text[at:].strip():
                    raise self.error(at, f"JSON that breaks ({error})") from error
                self.builder.warn("cut-report", "the last report was cut while writing and was left out")
                return len(self.text)
            try:
                self._report(report)
            except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
                raise self.error(position, f"a report whose {type(error).__name__} is at {error}") from error
            position = end

    def _report(self, report: Mapping[str, Any]) -> None:
        index = len(self.stamps)
        cpu, disks = report.get("avg-cpu"), report.get("disk", [])
        cpu_row = None if cpu is None else self._numbers({f"%{name}": value for name, value in cpu.items()})
        rows = []
        for entry in disks:
            name = str(entry["disk_device"])
            if name.startswith(" "):
                self.builder.warn("group-rows", "Sums of device groups (-g) were left out: they repeat their devices.")
                continue
            values = {_NAMES.get(key, key): value for key, value in entry.items() if key != "disk_device"}
            rows.append((name, self._numbers(values)))
        self.stamps.append(str(report.get("timestamp", "")))
        if cpu_row is not None:
            self.cpu_rows.append((index, 0, cpu_row))
        self.disk_rows.extend((index, self.devices.setdefault(name, len(self.devices)), row) for name, row in rows)

    def _numbers(self, values: dict[str, Any]) -> dict[str, float]:
        return {name: float(value) for name, value in values.items() if self.wanted is None or name in self.wanted}

    def finish(self) -> Reports:
        """The reports as columns."""
        count = len(self.stamps)
        cpu, disks = _columns(self.cpu_rows, 1, count), _columns(self.disk_rows, len(self.devices), count)
        return Reports(self.stamps, self.runs, list(self.devices), cpu, disks)


def _columns(rows: list[tuple[int, int, dict[str, float]]], devices: int, reports: int) -> dict[str, Matrix]:
    """Rows of (report, device, values by name) as a matrix [devices, reports] per name; NaN where there is no row."""
    columns: dict[str, Matrix] = {}
    for report, device, values in rows:
        for name, value in values.items():
            if name not in columns:
                columns[name] = np.full((devices, reports), np.nan)
            columns[name][device, report] = value
    return columns
