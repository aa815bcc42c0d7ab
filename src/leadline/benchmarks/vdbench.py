"""I/O load by vdbench, which the user installs: one stream of a workload, its response times as vdbench counts them.

Measures:
    Operations, throughput and mean and longest response time of one stream on a file or block device, and percentiles
    where vdbench writes ``histogram.html``. ``oio`` times ``jobs`` threads issue one request at a time each. Rates are
    offered with exponential (``poisson``) or even gaps.

Does not:
    Ship vdbench: its licence does not allow it. Burst, pause, flush, verify, bind to processors, or load several
    streams at once; each such key is refused by its name. Take a seed: the requests of two rounds differ by chance.

Warm-up and stopping:
    Files and devices are filled by vdbench itself (``seekpct=eof``). The warm-up is a run of its own, ended by
    vdbench's ``monitor=`` file when the operations per second are steady. Every round is a run of its own; its first
    second is in no average. Ctrl-C ends vdbench and its Java processes. After ``kill -9`` of Leadline they go on until
    the step is over.

Misleads when:
    Java needs the CPU. Buckets of the histogram are wide: a percentile is between two bounds, never computed from
    means. vdbench counts bytes of reads and writes together; each direction gets the share of its requests. All
    threads of a sequential stream share one position. Layers that deduplicate see the data vdbench writes.

Sources:
    Vdbench User Guide 5.04.07: execution parameters ``-f``, ``-o``, ``monitor=``; Storage, Workload and Run
    Definitions; "Sample output". Source of vdbench 5.04.06: ``LunInfoFromHost``, ``Linux.getLinuxSize`` (a device is
    looked up by its name in /proc/partitions), ``Reporter`` (warm-up, ``end_rd``).
"""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

from leadline.benchmarks._vdbench.parameters import (
    END_RUN,
    FILL_S,
    LEAD_S,
    MONITOR,
    VdbenchDisk,
    elapsed_s,
    fill_text,
    only_stream,
    run_text,
    whole_read_pct,
)
from leadline.benchmarks._vdbench.program import failure, is_complete, java_folder, program_path, version_of
from leadline.core.contracts.benchmark import BenchmarkMeta, LoadPlan, Measured, Place, Say, Step
from leadline.core.contracts.honoured import StreamLoad
from leadline.core.contracts.load_target import Target
from leadline.core.model.errors import UsageError
from leadline.core.model.result import Tick, Watch
from leadline.core.model.units import factor
from leadline.core.model.workload import Stream, Workload
from leadline.core.system.following import ToolCommand, follow, started
from leadline.core.system.opened import Identity, printable, require_free
from leadline.core.system.processes import wait
from leadline.core.system.safety import require_space, require_usable, usable
from leadline.formats.vdbench.flatfile import average_of, has_bucket, joined, second_of

__all__ = [
    "LEAD_S",
    "LINK",
    "META",
    "REPORTS",
    "VdbenchDisk",
    "clean",
    "failure",
    "fill_text",
    "is_complete",
    "joined",
    "load_of",
    "measure",
    "only_stream",
    "plan",
    "prepare",
    "run_text",
    "tick_of",
    "version_of",
]

META = BenchmarkMeta(program="vdbench", kind="io")

ALIGN = 1024**2
LINK = "t0"  # the target, as it is known among the open ones
REPORTS = ("flatfile.html", "histogram.html", "summary.html")
_PLAIN_DEVICE = re.compile(r"/dev/[A-Za-z0-9/_.-]{1,200}")
_PLAIN_FOLDER = re.compile(r"[A-Za-z0-9/_.-]{1,400}")
_ODD = re.compile(r"[^A-Za-z0-9._-]")


def plan(workload: Workload, target: Target) -> LoadPlan:
    """A file that is made in a folder, else the file or device that is there.

    Raises:
        UsageError: vdbench cannot do what is asked, or the target would be overwritten but is not named, is in use,
            too small, or does not exist.
        ToolError: vdbench is not installed, or there is not enough space.
    """
    stream = only_stream(workload)
    program_path()
    place = _place(workload, stream, target.of_role(stream.role), target.destroy)
    notes = ["vdbench takes no seed: the requests of two rounds differ by chance"]
    if whole_read_pct(stream) != stream.read_pct:
        notes.append(f"stream {stream.name}: read_pct is {whole_read_pct(stream)} %, as vdbench takes whole percents")
    if place.size_bytes < workload.working_set_bytes(stream):
        notes.append(f"stream {stream.name}: working_set is {place.size_bytes / 2**20:,.0f} MiB, all the target has")
    read_only = not place.is_made and stream.read_pct == 100.0
    return LoadPlan(workload, target, {stream.name: place}, tuple(notes), META.program, read_only)


def _place(workload: Workload, stream: Stream, named: Target, destroy: str | None) -> Place:
    """Where the stream works."""
    if named.is_address:
        raise UsageError(
            printable(named.name),
            found="an export",
            expected="a folder, file or block device, which is all that vdbench opens",
            advice="Run it with fio (--tool fio), or attach the export to this machine.",
        )
    size = -(-workload.working_set_bytes(stream) // ALIGN) * ALIGN
    path = require_usable(named.name)
    if path.is_dir():
        file_path = path / f"leadline-bench-{_ODD.sub('_', stream.name)}.dat"
        require_free(str(path), file_path.name)
        require_space(str(path), size)
        return Place(str(file_path), size, is_made=True, link=LINK, identity=Identity.of(path.stat()))
    existing = usable(path, destroy, writes=stream.read_pct < 100.0)
    there = existing.size_bytes // ALIGN * ALIGN
    if not there:
        raise UsageError(
            printable(named.name),
            found=f"{existing.size_bytes} bytes",
            expected="at least 1 MiB",
            advice="Name a larger target.",
        )
    if existing.is_device and workload.io_settings.buffered:
        raise UsageError(
            "io_settings.buffered",
            found="true, for a device",
            expected="direct I/O, without which vdbench opens no device on Linux",
            advice="Leave buffered out, or run it with fio (--tool fio).",
        )
    place = Place(
        str(path), min(size, there), is_made=False, is_device=existing.is_device, link=LINK, identity=existing.identity
    )
    if place.is_device:
        _device_name(place)
    return place


def prepare(plan: LoadPlan, folder: Path, say: Say) -> None:
    """Have vdbench write every block of the target once.

    Raises:
        ToolError: vdbench is missing or fails.
    """
    (place,) = plan.places.values()
    _reach(plan)
    if plan.read_only:
        return
    say(f"filling {printable(place.path)} with {place.size_bytes / 2**30:.2f} GiB by vdbench")
    load = _command(plan, folder, "fill", fill_text(_disk(plan)))
    with started(load) as (process, look):
        if not wait(process, float(FILL_S), look) or process.returncode:
            raise failure(load.output, place.path)
    if not is_complete(_text_of(load.output)):
        raise failure(load.output, place.path)


def measure(plan: LoadPlan, step: Step, folder: Path, watch: Watch) -> Measured:
    """One run of vdbench.

    Raises:
        ToolError: vdbench is missing or fails.
    """
    (place,) = plan.places.values()
    (stream,) = plan.workload.io
    _reach(plan)
    monitor = plan.targets.folder / MONITOR
    load = _command(plan, folder, step.label, run_text(stream, step, _disk(plan), str(monitor)))
    is_ended = False

    def until_enough(tick: Tick) -> bool:
        nonlocal is_ended
        if not watch(tick) and not is_ended:
            is_ended = True
            monitor.write_text(END_RUN, encoding="ascii")  # its script passes no signal on to Java
        return True

    ticks, _ = follow(load, elapsed_s(step) + LEAD_S, tick_of, until_enough, lambda: failure(load.output, place.path))
    talk = _text_of(load.output)
    files = _kept_reports(plan, folder, step.label)
    average = average_of(_text_of(files[0])) if files else {}
    if not average or not is_complete(talk):
        raise failure(load.output, place.path)
    loads = () if is_ended else (load_of(stream, average),)
    return Measured(files, tuple(ticks), (tuple(load.words),), version_of(talk), is_ended, loads)


def clean(plan: LoadPlan) -> None:
    """Let go of the target, and remove the file that was made."""
    plan.targets.close()


def _reach(plan: LoadPlan) -> None:
    """Open and lock the target, or make the file; a second time is nothing."""
    (place,) = plan.places.values()
    if place.is_made:
        plan.targets.make(place.path, LINK, place.identity, place.size_bytes)
    else:
        plan.targets.open(place.path, LINK, place.identity, writes=not plan.read_only)


def _disk(plan: LoadPlan) -> VdbenchDisk:
    """Return the target as vdbench is given it: no path that a user named.

    Its Java starts other Javas, which inherit no descriptor: a file is therefore opened through this process. A device
    must be named as the kernel names it, or vdbench takes it for a file of no length.
    """
    (place,) = plan.places.values()
    lun = f"/proc/{os.getpid()}/fd/{plan.targets.descriptor(LINK)}"
    if place.is_device:
        lun = _device_name(place)
    return VdbenchDisk(lun, place.size_bytes, plan.workload.io_settings.buffered)


def _device_name(place: Place) -> str:
    """Return the kernel's name of a device.

    Raises:
        UsageError: it is not plain, or leads to another device than was planned.
    """
    real = os.path.realpath(place.path)
    if _PLAIN_DEVICE.fullmatch(real) is None or Identity.of(Path(real).stat()) != place.identity:
        raise UsageError(
            printable(place.path),
            found=f"a device that is now {printable(real)}",
            expected="the device of the plan, with a plain name below /dev",
            advice="Look at the device and start again, or run it with fio (--tool fio).",
        )
    return real


def _command(plan: LoadPlan, folder: Path, label: str, text: str) -> ToolCommand:
    """Return the command of a step; its parameters and what it prints are kept in the folder of the run."""
    private = plan.targets.folder
    if _PLAIN_FOLDER.fullmatch(str(private)) is None:
        raise UsageError(
            "TMPDIR",
            found=printable(str(private.parent)),
            expected="a path of letters, digits and . _ - /, as the script of vdbench cuts others at a blank",
            advice="Set TMPDIR to such a folder, for example /tmp.",
        )
    output = private / label
    shutil.rmtree(output, ignore_errors=True)
    parameters = private / f"{label}.vdbench"
    parameters.write_text(text, encoding="ascii")
    shutil.copyfile(parameters, folder / parameters.name)
    talk = folder / f"{label}.txt"
    talk.unlink(missing_ok=True)
    words = (program_path(), "-f", str(parameters), "-o", str(output))
    return ToolCommand(words, talk, targets=plan.targets, folders=(java_folder(),))


def _kept_reports(plan: LoadPlan, folder: Path, label: str) -> tuple[Path, ...]:
    """Return the flat file of a step and its histogram, where there is one, copied to the folder of the run."""
    kept = folder / label
    kept.mkdir(exist_ok=True)
    for name in REPORTS:
        report = plan.targets.folder / label / name
        if report.is_file():
            shutil.copyfile(report, kept / name)
    flat, histogram = kept / REPORTS[0], kept / REPORTS[1]
    if not flat.is_file():
        return ()
    if histogram.is_file() and not has_bucket(_text_of(histogram)):
        histogram.unlink()
    return (flat, histogram) if histogram.is_file() else (flat,)


def _text_of(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""


def tick_of(line: str) -> Tick | None:
    """Return the measured second that a row of the console is of; None of every other line."""
    second = second_of(line)
    if second is None or second[0] <= LEAD_S:
        return None
    return Tick(float(second[0] - LEAD_S), second[1], second[2])


def load_of(stream: Stream, average: dict[str, float]) -> StreamLoad:
    """Return what vdbench counted of a stream, from the average of its measured seconds."""
    nan = float("nan")
    seconds, rate = average["seconds"], average.get("rate", nan)
    share, size = average.get("read%", nan) / 100.0, average.get("bytes/io", nan)
    reads, writes = rate * share * seconds, rate * (1.0 - share) * seconds
    return StreamLoad(
        stream.name,
        seconds,
        reads=reads,
        writes=writes,
        read_bytes=reads * size,
        write_bytes=writes * size,
        busy_s=rate * seconds * average.get("resp", nan) * factor("ms", "s"),
    )
