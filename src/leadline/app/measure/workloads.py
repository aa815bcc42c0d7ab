"""Use case: the workload of a name: a shipped one, a workload file, or another tool's job file, translated."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from textwrap import wrap
from typing import Any, get_args

import yaml

from leadline.benchmarks import fio
from leadline.benchmarks._fio import dax
from leadline.core.contracts.benchmark import LoadPlan, Place, Step
from leadline.core.contracts.load_target import Target
from leadline.core.model.errors import UsageError
from leadline.core.model.workload import IoSettings, Workload, find_workload, profiles
from leadline.core.system.opened import printable
from leadline.formats.iometer.configurations import configuration_text
from leadline.formats.job_files import translate
from leadline.formats.translation import Fate, Translation

MIB = 1024**2
NOTES_SHOWN = 8
BY_SSH = "Set load.ssh_user: vdbench is started over SSH, not by fio's server. See docs/guides/fleet.md."
COLUMNS = 80


def workload_of(name: str) -> Workload:
    """The workload of a name, for every verb that takes one; what a translation does not give is in its notes.

    Raises:
        UsageError: neither a shipped workload nor a file has that name.
        InputError: the file is no workload and cannot be translated; with line and column.
    """
    return translation_of(name).workload


def translation_of(name: str) -> Translation:
    """The workload of a name and what became of each line, where another tool's file was translated.

    Args:
        name: a shipped workload; a file; FILE#NAME for a run of a vdbench file or the phase of a job of a fio file.

    Raises:
        UsageError: neither a shipped workload nor a file has that name.
        InputError: the file is no workload and cannot be translated; with line and column.
    """
    file, _, pick = ("", "", "") if Path(name).is_file() else name.rpartition("#")
    path = Path(file or name)
    if name in profiles() or not path.is_file():
        return Translation(find_workload(name))
    translation = translate(path, pick)
    if translation is not None:
        return translation
    if pick:
        raise UsageError(
            name,
            found=f"#{pick[:40]} after a workload file",
            expected="a job file of fio, vdbench or Iometer before the #",
            advice="A workload file is one workload: name it alone.",
        )
    return Translation(find_workload(str(path)))


def require_fio(workload: Workload, advice: str) -> None:
    """Refuse a workload for a target that fio alone can load.

    Raises:
        UsageError: another tool carries the workload out.
    """
    if workload.kind != "io" or workload.tool not in (None, fio.META.program):
        raise UsageError(
            f"workload {workload.name}",
            found=f"kind {workload.kind}, tool {workload.tool or 'its own'}",
            expected="I/O by fio, which loads this target",
            advice=advice,
        )


def driven_by(workload: Workload, tool: str | None) -> Workload:
    """The workload with another tool that makes its load; with None as it is.

    Raises:
        UsageError: it is no I/O, or there is no such tool of I/O.
    """
    if tool is None:
        return workload
    if workload.kind != "io":
        raise UsageError(
            f"--tool {tool[:40]}",
            found=f"a workload of kind {workload.kind}",
            expected="a workload of I/O",
            advice="Leave it out. The tool of a database is set in the workload file, by database.tool.",
        )
    tools = get_args(IoSettings.model_fields["tool"].annotation)
    if tool not in tools:
        raise UsageError(
            f"--tool {tool[:40]}",
            found="no tool that loads disks",
            expected=f"one of {', '.join(tools)}",
            advice="`leadline bench run --help` shows an example.",
        )
    plain = workload.plain()
    return Workload.model_validate({**plain, "io_settings": {**plain.get("io_settings", {}), "tool": tool}})


def notes_in_short(workload: Workload) -> list[str]:
    """What a translated workload does not give, a line each, for a plan; of many the first."""
    shown = list(workload.notes[:NOTES_SHOWN])
    rest = len(workload.notes) - len(shown)
    return [*shown, f"and {rest} more: `leadline bench translate` lists them"] if rest else shown


def translation_text(translation: Translation) -> str:
    """The workload file of a translation; what is not as in the original stands before it as comments."""
    changed = [note for note in translation.notes if note.fate is not Fate.KEPT]
    head = [
        f"{translation.source}: {len(translation.notes) - len(changed)} options kept, {len(changed)} not or not quite:"
    ]
    head += [f"  {note.sentence()}" for note in changed]
    if translation.choices:
        head.append(f"It holds more; after the file's name, #NAME chooses: {', '.join(translation.choices)}")
    return workload_text(translation.workload.model_copy(update={"notes": ()}), head if translation.notes else ())


def workload_text(workload: Workload, comments: Sequence[str] = ()) -> str:
    """A workload file, sizes as people write them, comments before it."""
    plain = {"leadline_workload": 1, **workload.plain()}
    if "io" in plain:
        plain["io"] = [_readable(stream) for stream in plain["io"]]
    if "working_set" in plain.get("io_settings", {}):
        plain["io_settings"]["working_set"] = _short(plain["io_settings"]["working_set"])
    head = [part for line in comments for part in _comment(line)]
    return "\n".join([*head, yaml.safe_dump(plain, sort_keys=False, allow_unicode=True, width=COLUMNS)])


def _comment(line: str) -> list[str]:
    indent = " " * (len(line) - len(line.lstrip()))
    return wrap(line, COLUMNS, initial_indent="# ", subsequent_indent=f"# {indent}  ", break_on_hyphens=False)


def _readable(stream: dict[str, Any]) -> dict[str, Any]:
    readable = dict(stream)
    if "block" in readable:
        sizes = {_short(int(size)): _plain(float(share)) for size, share in readable["block"].items()}
        readable["block"] = next(iter(sizes)) if len(sizes) == 1 else sizes
    if readable.get("working_set") is not None:
        readable["working_set"] = _short(int(readable["working_set"]))
    return readable


def _plain(value: float) -> float | int:
    return int(value) if value == int(value) else value


def _short(size_bytes: int) -> str | int:
    for letter, unit in (("g", 1024**3), ("m", MIB), ("k", 1024)):
        if size_bytes % unit == 0:
            return f"{size_bytes // unit}{letter}"
    return size_bytes


def iometer_text(workload: Workload, target: str = "") -> str:
    """The Iometer configuration file of a workload, for a Windows machine; ``target`` is a disk as Iometer names it.

    Raises:
        UsageError: the workload is no I/O, or has what Iometer cannot do.
    """
    return configuration_text(workload, target)


def fio_job_text(workload: Workload, target: str = "", seed: int = 1) -> str:
    """The fio job file of one round, for a machine where nothing but fio may run.

    Args:
        workload: I/O streams.
        target: a folder or device of that machine; the folder fio is started in when empty.
        seed: of the load.

    Raises:
        UsageError: the workload is no I/O, which fio does not do.
    """
    if workload.kind != "io":
        raise UsageError(
            f"workload {workload.name}", found=f"kind {workload.kind}", expected="io", advice="fio does I/O only."
        )
    places = {}
    for stream in workload.io:
        size = -(-workload.working_set_bytes(stream) // fio.ALIGN) * fio.ALIGN
        file = f"leadline-bench-{fio.plain_name(stream.name)}.dat"
        is_whole = "://" in target or target.startswith("/dev/")
        path = target if is_whole else f"{target.rstrip('/')}/{file}" if target else file
        if dax.is_named(path):
            size = dax.DaxDevice(sys.maxsize, dax.USUAL_ALIGN_BYTES).working_set_bytes(size)
        places[stream.name] = Place(path, size, is_made=not is_whole, engine=dax.ENGINE if dax.is_named(path) else "")
    plan = LoadPlan(workload, Target(target), places, engine=workload.io_settings.engine_elsewhere())
    timing = workload.timing
    does = "writes to" if any(stream.read_pct < 100.0 for stream in workload.io) else "reads"
    text = fio.job_file(plan, Step("round-1", timing.measure_s, seed))  # refuses a path that would be no one line
    paths = sorted({place.path for place in places.values()})
    head = [
        f"; {workload.name}: one round of {timing.measure_s:g} s; Leadline measures {timing.rounds}.",
        "; Start it with: fio --output-format=json+ FILE",
        *(f"; It {does} {printable(path)}" for path in paths),
        "; Leadline fills the files with random data before, and measures when the load is",
        f"; steady: ramp_time={timing.warm_up_s:g}s does about that.",
    ]
    return "\n".join([*head, "", text])
