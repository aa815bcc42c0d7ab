"""Iometer's configuration files (.icf) as workloads and back: an access specification is a workload.

A line that begins with an apostrophe is a heading, the lines below it are its values. A test runs one access
specification after the other on all workers, so that each is one run.

Source: Iometer User's Guide 2003.12.16, "Access Specifications Tab" and "Test Setup Tab"; Iometer sources, SaveConfig
of AccessSpecList.cpp.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from leadline.core.model.errors import UsageError
from leadline.core.model.workload import Stream, Workload
from leadline.formats.translation import (
    JOBS_MAX,
    OIO_MAX,
    SECTOR,
    Fate,
    Notes,
    Translation,
    block_mix,
    read_text,
    slug,
    workload_from,
    wrong,
)

WHAT = "an Iometer configuration file"
SOURCE = "Iometer configuration file"
SHARE_SLACK = 0.5  # Judgement: Iometer keeps whole percents
RULE = "=" * 63
_MARK = re.compile(r"^'(?:ACCESS SPECIFICATIONS|TEST SETUP) ={3,}", re.MULTILINE)
_SPECIFICATION = "access specification name,default assignment"
_LINES = "size,% of size,% reads,% random,delay,burst,align,reply"


@dataclass(frozen=True, slots=True)
class SpecificationLine:
    """A line of an access specification; delay in ms before each burst of requests, align and sizes in bytes."""

    line: int
    size: int
    share: float
    read_pct: float
    random_pct: float
    delay_ms: float
    burst: int
    align: int
    reply: int


@dataclass(slots=True)
class AccessSpecification:
    """An access specification: its name, the line it stands in, and its lines."""

    name: str
    line: int
    lines: list[SpecificationLine] = field(default_factory=list)


@dataclass(slots=True)
class IometerWorker:
    """A worker: requests outstanding at each of its targets, sectors it uses (0: all), its specifications."""

    line: int
    oio: int = 1
    sectors: int = 0
    specifications: list[str] = field(default_factory=list)
    targets: int = 0
    is_disk: bool = True


@dataclass(slots=True)
class IometerConfiguration:
    """What a configuration file holds."""

    path: Path
    specifications: list[AccessSpecification] = field(default_factory=list)
    workers: list[IometerWorker] = field(default_factory=list)
    run_s: float = 0.0
    ramp_s: float = 0.0
    test_type: tuple[int, str] = (0, "NORMAL")
    setup_lines: dict[str, int] = field(default_factory=dict)


def is_configuration(text: str) -> bool:
    """Whether a text is a configuration file."""
    return _MARK.search(text) is not None


def translate_iometer(path: Path, pick: str = "") -> Translation:
    """The workload of an access specification: of the one named ``pick``, else of the first a worker runs.

    Raises:
        InputError: the file has no such specification, or a number in it is none; with its line.
    """
    read = _read(path)
    chosen = _chosen(read, pick)
    workers = [worker for worker in read.workers if worker.is_disk and chosen.name in worker.specifications]
    notes = Notes()
    stream = {"name": slug(chosen.name, "io"), **_requests(path, chosen, notes), **_depth(path, workers, notes)}
    timing: dict[str, Any] = {"measure_s": max(read.run_s, 1.0), "rounds": 1} if read.run_s else {}
    if read.run_s:
        at = (str(path), read.setup_lines["run time"], "Run Time")
        notes.add(at, Fate.KEPT, f"timing: one round of {timing['measure_s']:g} s")
        timing["warm_up_s"] = read.ramp_s
    if read.ramp_s:
        at = (str(path), read.setup_lines["ramp up time (s)"], "Ramp Up Time")
        notes.add(at, Fate.NEAR, f"warm_up_s: {read.ramp_s:g}, and over as soon as the load is steady")
    if read.test_type[1] != "NORMAL":
        text = f"{read.test_type[1]}: each step is a separate run"
        notes.add((str(path), read.test_type[0], "Test Type"), Fate.LOST, text)
    names = [specification.name for specification in read.specifications]
    plain = {
        "about": f"Translated from {path.name}, access specification {chosen.name}.",
        "source": SOURCE,
        "io": [stream],
        "timing": timing,
        "notes": [note.sentence() for note in notes.all() if note.fate is not Fate.KEPT],
    }
    workload = workload_from(path, f"{path.stem}-{chosen.name}" if len(names) > 1 else path.stem, plain, WHAT)
    return Translation(workload, notes.all(), SOURCE, tuple(names) if len(names) > 1 else ())


def _chosen(read: IometerConfiguration, pick: str) -> AccessSpecification:
    known = {specification.name: specification for specification in read.specifications if specification.lines}
    if not known:
        raise wrong(str(read.path), "no access specification", f"{WHAT} with one")
    if pick and pick not in known:
        listed = ", ".join(known)
        raise wrong(f"{read.path}#{pick}", "no access specification of that name", f"one of {listed[:200]}")
    assigned = [name for worker in read.workers for name in worker.specifications if name in known]
    return known[pick or next(iter(assigned), next(iter(known)))]


def _requests(path: Path, chosen: AccessSpecification, notes: Notes) -> dict[str, Any]:
    """Sizes, directions and pauses of a specification; of several lines the means, weighted by their shares."""
    lines = [line for line in chosen.lines if line.share > 0]
    total = sum(line.share for line in lines)
    if abs(total - 100.0) > SHARE_SLACK:
        raise wrong(f"{path}:{chosen.line}:1", f"{chosen.name}: shares of {total:g} % in all", "shares of 100 % in all")
    at = (str(path), chosen.line, chosen.name)
    shares: dict[int, float] = {}
    for line in lines:
        shares[line.size] = shares.get(line.size, 0.0) + line.share
    block, is_exact = block_mix(shares)
    read_pct, random_pct = (
        sum(getattr(line, name) * line.share for line in lines) / total for name in ("read_pct", "random_pct")
    )
    is_even = len({(line.read_pct, line.random_pct) for line in lines}) == 1
    notes.add(at, Fate.KEPT if is_exact else Fate.NEAR, "block" if is_exact else "block: multiples of 512 bytes")
    text = f"read_pct: {read_pct:g}, random_pct: {random_pct:g}"
    notes.add(at, Fate.KEPT if is_even else Fate.NEAR, text if is_even else f"{text} for every size: the means")
    requests: dict[str, Any] = {"block": block, "read_pct": round(read_pct, 4), "random_pct": round(random_pct, 4)}
    for line in lines:
        where = (str(path), line.line, f"{line.size} bytes")
        if line.align not in (line.size,):
            text = f"align {line.align}: requests begin at multiples of their size"
            notes.add(where, Fate.NEAR, text)
        if line.reply:
            notes.add(where, Fate.LOST, "reply: of networks only")
        if line.delay_ms:
            text = "delay: the mean pause after each request of a job, not of bursts"
            notes.add(where, Fate.NEAR, text)
    pause_s = sum(line.delay_ms / 1000.0 / max(line.burst, 1) * line.share for line in lines) / total
    return requests | ({"think_time_s": pause_s} if pause_s else {})


def _depth(path: Path, workers: list[IometerWorker], notes: Notes) -> dict[str, Any]:
    """Requests outstanding, jobs and working set of the workers that run a specification."""
    if not workers:
        return {}
    oio = max(worker.oio * max(worker.targets, 1) for worker in workers)
    depth: dict[str, Any] = {"oio": min(oio, OIO_MAX), "jobs": min(len(workers), JOBS_MAX)}
    for worker in workers:
        at = (str(path), worker.line, "Worker")
        is_even = worker.oio * max(worker.targets, 1) == oio
        notes.add(at, Fate.KEPT if is_even else Fate.NEAR, f"oio: {oio}, a job" + ("" if is_even else " as the others"))
        if worker.targets > 1:
            notes.add(at, Fate.NEAR, f"its {worker.targets} targets become one, with the requests of all")
    sectors = max(worker.sectors for worker in workers)
    at = (str(path), workers[0].line, "Disk maximum size")
    if sectors:
        notes.add(at, Fate.KEPT, f"working_set: {sectors * SECTOR} bytes")
        return depth | {"working_set": sectors * SECTOR}
    notes.add(at, Fate.LOST, "the whole disk: working_set is 1 GiB, or what --set-size says")
    return depth


def _read(path: Path) -> IometerConfiguration:
    read = IometerConfiguration(path)
    for number, heading, text in _values(read_text(path, WHAT)):
        where = f"{path}:{number}:1"
        read.setup_lines.setdefault(heading, number)
        cells = [cell.strip() for cell in text.split(",")]
        if heading == _SPECIFICATION:
            read.specifications.append(AccessSpecification(text.rpartition(",")[0].strip() or text, number))
        elif heading == _LINES and read.specifications:
            numbers = _numbers(where, cells, 8)
            if numbers[0] < 1:
                raise wrong(where, f"a size of {numbers[0]}", "a size above 0")
            if not all(0 <= number <= 100 for number in numbers[1:4]):
                raise wrong(where, text[:60], "shares of 0 to 100")
            read.specifications[-1].lines.append(SpecificationLine(number, *numbers))
        elif heading == "worker":
            read.workers.append(IometerWorker(number))
        elif heading == "test type":
            read.test_type = (number, text[:40])
        elif heading == "run time":
            hours, minutes, seconds = _numbers(where, text.split(), 3)
            read.run_s = hours * 3600.0 + minutes * 60.0 + seconds
        elif heading == "ramp up time (s)":
            read.ramp_s = float(_numbers(where, cells, 1)[0])
        elif read.workers:
            _take_worker(read.workers[-1], heading, text, where)
    return read


def _take_worker(worker: IometerWorker, heading: str, text: str, where: str) -> None:
    if heading == "worker type":
        worker.is_disk = text.upper() == "DISK"
    elif heading.startswith("number of outstanding ios"):
        worker.oio = max(_numbers(where, text.split(","), 1)[0], 1)
    elif heading.startswith("disk maximum size"):
        worker.sectors = _numbers(where, text.split(","), 1)[0]
    elif heading == "assigned access specs":
        worker.specifications.append(text)
    elif heading == "target":
        worker.targets += 1


def _values(text: str) -> Iterator[tuple[int, str, str]]:
    """Every line that is a value: its number, the heading it stands under in lower case, and itself."""
    heading = ""
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("'"):
            # What begins with a tab says what the columns of the heading before are.
            heading = heading if line.startswith("'\t") else line[1:].strip().lower()
        elif line.strip():
            yield number, heading, line.strip()


def _numbers(where: str, cells: list[str], count: int) -> list[int]:
    """The first numbers of a line.

    Raises:
        InputError: there are fewer, or one is no whole number of up to 15 digits.
    """
    numbers = [cell.strip() for cell in cells[:count]]
    if len(numbers) < count or not all(re.fullmatch(r"\d{1,15}", number) for number in numbers):
        raise wrong(where, ",".join(cells)[:60], f"{count} whole numbers")
    return [int(number) for number in numbers]


def configuration_text(workload: Workload, target: str = "") -> str:
    """The configuration file of a workload: a worker for each job, an access specification for each stream.

    Args:
        workload: I/O streams.
        target: a disk as Iometer names it; none when empty: choose it in Iometer.

    Raises:
        UsageError: the workload is no I/O, or has what Iometer cannot do.
    """
    if workload.kind != "io":
        raise UsageError(
            f"workload {workload.name}", found=f"kind {workload.kind}", expected="io", advice="Iometer does I/O only."
        )
    for stream in workload.io:
        lacking = [name for name in ("rate_iops", "burst", "sync_every") if getattr(stream, name)]
        if lacking:
            raise UsageError(
                f"stream {stream.name}",
                found=f"{lacking[0]}, which Iometer cannot do",
                expected="streams without rate_iops, burst and sync_every",
                advice="Take --to fio.",
            )
    hours, rest = divmod(max(round(workload.timing.measure_s), 1), 3600)
    minutes, seconds = divmod(rest, 60)
    lines = ["Version 1.1.0", f"'TEST SETUP {RULE}", "'Test Description", f"\t{workload.name}", "'Run Time"]
    lines += ["'\thours      minutes    seconds", f"\t{hours}          {minutes}          {seconds}"]
    lines += ["'Ramp Up Time (s)", f"\t{round(workload.timing.warm_up_s)}", "'Default Disk Workers to Spawn", "\t0"]
    lines += ["'Default Network Workers to Spawn", "\t0", "'Record Results", "\tALL", "'Worker Cycling"]
    lines += ["'\tstart      step       step type", "\t1          1          LINEAR", "'Disk Cycling"]
    lines += ["'\tstart      step       step type", "\t1          1          LINEAR", "'Queue Depth Cycling"]
    lines += ["'\tstart      end        step       step type", "\t1          32         2          EXPONENTIAL"]
    lines += ["'Test Type", "\tNORMAL", "'END test setup", f"'ACCESS SPECIFICATIONS {RULE}"]
    for stream in workload.io:
        lines += [f"'{_SPECIFICATION.capitalize()}", f"\t{stream.name},NONE", f"'{_LINES}", *_specification(stream)]
    lines += ["'END access specifications", f"'MANAGER LIST {RULE}", "'Manager ID, manager name", "\t1,"]
    lines += ["'Manager network address", "\t"]
    workers = [stream for stream in workload.io for _ in range(stream.jobs)]
    for number, stream in enumerate(workers, 1):
        lines += _worker(number, stream, workload.working_set_bytes(stream) // SECTOR, target)
    return "\n".join([*lines, "'End manager", "'END manager list", "Version 1.1.0", ""])


def _specification(stream: Stream) -> list[str]:
    """Lines of an access specification; shares are whole percents that add up to 100.

    Raises:
        UsageError: a size would have no share.
    """
    sizes = sorted(stream.block, key=lambda size: stream.block[size] % 1, reverse=True)
    shares = {size: int(stream.block[size]) for size in sizes}
    for size in sizes[: 100 - sum(shares.values())]:
        shares[size] += 1
    if min(shares.values()) < 1:
        raise UsageError(
            f"stream {stream.name}",
            found="a size with less than 1 % of the requests",
            expected="whole percents, which Iometer has",
            advice="Leave the size out of the block mix.",
        )
    delay = round(stream.think_time_s * 1000.0)
    ways = f"{round(stream.read_pct)},{round(stream.random_pct)},{delay},1"
    return [f"\t{size},{share},{ways},{size},0" for size, share in sorted(shares.items())]


def _worker(number: int, stream: Stream, sectors: int, target: str) -> list[str]:
    lines = ["'Worker", f"\tWorker {number}", "'Worker type", "\tDISK", "'Default target settings for worker"]
    lines += [
        "'Number of outstanding IOs,test connection rate,transactions per connection,use fixed seed,fixed seed value"
    ]
    lines += [f"\t{stream.oio},DISABLED,1,DISABLED,0", "'Disk maximum size,starting sector,Data pattern"]
    lines += [f"\t{sectors},0,0", "'End default target settings for worker", "'Assigned access specs"]
    lines += [f"\t{stream.name}", "'End assigned access specs", "'Target assignments"]
    lines += ["'Target", f"\t{target}", "'Target type", "\tDISK", "'End target"] if target else []
    return [*lines, "'End target assignments", "'End worker"]
