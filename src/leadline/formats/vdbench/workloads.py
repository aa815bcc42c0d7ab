"""vdbench's parameter files as workloads: a run (``rd``) is a workload, its workload definitions are the streams.

Source: Vdbench Users Guide 5.04.07, RD parameters, and General parameters. A run that goes through several values
(``forthreads``, ``forxfersize``, ``iorate=(…)``) is translated with the first of each.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from leadline.formats.translation import Fate, Notes, Translation, slug, unique, workload_from, wrong
from leadline.formats.vdbench.options import OTHERS, UNKNOWN
from leadline.formats.vdbench.parameters import WHAT, Definition, Parameter, ParameterFile, read_parameters
from leadline.formats.vdbench.streams import Part, TranslatedDefinition, read_stream

SOURCE = "vdbench parameter file"
ELAPSED_S = 30.0  # Source: RD parameters, elapsed
_ON = ("yes", "y", "on", "read_after_write", "")


def translate_vdbench(path: Path, pick: str = "") -> Translation:
    """The workload of a run of a parameter file: of the one named ``pick``, or the first that is load on a disk.

    Raises:
        InputError: it is no parameter file, has no such run, or nothing of it is load on a disk; with line and column.
    """
    read = read_parameters(path)
    notes = Notes()
    run = _run(path, read, pick)
    loads = _loads(path, read, run)
    rate = _rate(run, notes)
    shares = _shares(loads)
    disks = [_disks(read, run, load) for load in loads]
    together: dict[str, float] = {}
    for share, load_disks in zip(shares, disks, strict=True):
        for disk in load_disks:
            together[disk.name] = together.get(disk.name, 0.0) + share
    drafts = [
        (load, read_stream(load, Part(run, load_disks, share, together, rate), notes))
        for load, load_disks, share in zip(loads, disks, shares, strict=True)
    ]
    good = [(load, stream) for load, stream in drafts if not stream.dropped]
    if not good:
        load, stream = drafts[0]
        raise wrong(f"{load.file}:{load.line}:1", f"{load.kind}={load.name}: {stream.dropped}", "reads and writes")
    for load, stream in drafts:
        if stream.dropped:
            notes.add(load.at, Fate.LOST, stream.dropped)
    names = unique(slug(load.name, load.kind) for load, _ in good)
    plain: dict[str, Any] = {
        "about": f"Translated from {path.name}, run {run.name}.",
        "source": SOURCE,
        "io": [{"name": name, **stream.stream} for name, (_, stream) in zip(names, good, strict=True)],
        "io_settings": _settings(read, run, good, notes),
        "timing": _timing(run, notes),
    }
    _rest(path, read, run, loads, notes)
    all_notes = notes.all()
    plain["notes"] = [note.sentence() for note in all_notes if note.fate is not Fate.KEPT]
    runs = [definition.name for definition in read.of("rd")]
    workload = workload_from(path, f"{path.stem}-{run.name}" if len(runs) > 1 else path.stem, plain, WHAT)
    return Translation(workload, all_notes, SOURCE, tuple(runs) if len(runs) > 1 else ())


def _run(path: Path, read: ParameterFile, pick: str) -> Definition:
    runs = read.of("rd")
    if not runs:
        raise wrong(str(path), "no run (rd=)", f"{WHAT} with an rd= after its wd= or fwd=")
    if pick:
        chosen = next((run for run in runs if run.name == pick), None)
        if chosen is None:
            names = ", ".join(run.name for run in runs)
            raise wrong(f"{path}#{pick}", "no run of that name", f"one of {names[:200]}", "Name a run after the #.")
        runs = [chosen]
    usable = next((run for run in runs if not _useless(run)), None)
    if usable is None:
        run = runs[0]
        advice = "`leadline trace replay` takes traces." if "replay" in run.parameters else "Translate another file."
        raise wrong(f"{run.file}:{run.line}:1", f"rd={run.name}: {_useless(run)}", "a run that loads a disk", advice)
    return usable


def _useless(run: Definition) -> str:
    """Why a run is no load, or nothing."""
    option = run.parameters.get("format")
    if "replay" in run.parameters:
        return "replays a trace"
    if option is not None and any(value.lower() in ("only", "clean") for value in option.values):
        return "makes or removes files only"
    return ""


def _loads(path: Path, read: ParameterFile, run: Definition) -> list[Definition]:
    """The workload definitions of a run."""
    kind = "fwd" if "fwd" in run.parameters or not read.of("wd") else "wd"
    known = [definition for definition in read.of(kind) if definition.name != "format"]
    if not known:
        raise wrong(f"{run.file}:{run.line}:1", f"rd={run.name} has no workload", f"{WHAT} with a wd= or fwd=")
    return _named(known, run.parameters.get(kind), str(path))


def _disks(read: ParameterFile, run: Definition, load: Definition) -> tuple[Definition, ...]:
    kind = "fsd" if load.kind == "fwd" else "sd"
    known = read.of(kind)
    return tuple(_named(known, run.parameters.get(kind) or load.parameters.get(kind), load.file)) if known else ()


def _named(known: list[Definition], option: Parameter | None, file: str) -> list[Definition]:
    """Return the definitions a parameter names, as ``sd1``, ``sd*`` or ``sd1-sd4``; all without the parameter."""
    if option is None:
        return known
    named: list[Definition] = []
    for text in option.values:
        first, mark, last = text.partition("-")
        names = [definition.name for definition in known]
        if mark and first in names and last in names:
            chosen = known[names.index(first) : names.index(last) + 1]
        else:
            chosen = [definition for definition in known if fnmatchcase(definition.name, text)]
        if not chosen:
            listed = ", ".join(names)[:160]
            raise wrong(option.where, f"{option.written}={text[:40]}: nothing of that name", f"one of {listed}")
        named += [definition for definition in chosen if definition not in named]
    if not named:
        raise wrong(option.where, f"{option.written}= without a name", f"names of {file}")
    return named


def _shares(loads: list[Definition]) -> list[float]:
    """The part of all requests each has: its skew; what is left is divided evenly among those without."""
    given = [load.parameters["skew"].number() if "skew" in load.parameters else 0.0 for load in loads]
    for load, share in zip(loads, given, strict=True):
        if not 0 <= share <= 100 or sum(given) > 100.5:
            raise load.parameters["skew"].wrong("shares of 0 to 100, at most 100 in all")
    without = given.count(0.0)
    rest = max(100.0 - sum(given), 0.0)
    filled = [share or rest / without for share in given] if without else given
    total = sum(filled)
    return [share / total for share in filled]


def _rate(run: Definition, notes: Notes) -> float | None:
    """Requests per second of a run; None when as fast as it goes."""
    option = run.parameters.get("fwdrate") or run.parameters.get("iorate")
    if option is None or option.text == "max":
        if option is not None:
            is_first = len(option.values) > 1
            text = "as fast as it goes" + ("; the first of several: each is a separate run" if is_first else "")
            notes.add(option.at, Fate.NEAR if is_first else Fate.KEPT, text)
        return None
    if option.text == "curve":
        text = "as fast as it goes: a curve's other points are separate runs"
        notes.add(option.at, Fate.NEAR, text)
        if "curve" in run.parameters:
            notes.add(run.parameters["curve"].at, Fate.LOST, "its points are separate runs")
        return None
    rate = replace(option, values=tuple(value for value in option.values if value.lower() != "max")).number()
    if rate <= 0:
        raise option.wrong("a rate above 0, max or curve")
    rest = f"; the first of {len(option.values)}: each is a separate run" if len(option.values) > 1 else ""
    notes.add(option.at, Fate.NEAR if rest else Fate.KEPT, f"rate_iops: {rate:g} in all{rest}")
    return rate


def _settings(
    read: ParameterFile, run: Definition, drafts: list[tuple[Definition, TranslatedDefinition]], notes: Notes
) -> dict[str, Any]:
    """Return the settings all streams share; the page cache is used only if every definition uses it."""
    settings: dict[str, Any] = {"buffered": all(draft.buffered for _, draft in drafts)}
    for load, draft in drafts:
        if draft.buffered != settings["buffered"]:
            notes.add(load.at, Fate.NEAR, "buffered: false as in other workloads: one setting of all")
    general = {option.name: option for option in read.general}
    ratios: dict[str, Callable[[str], Parameter | None]] = {
        "compress_pct": lambda name: run.parameters.get(f"for{name}") or run.parameters.get(name) or general.get(name),
        "dedupe_pct": general.get,
    }
    for key, name in (("compress_pct", "compratio"), ("dedupe_pct", "dedupratio")):
        option = ratios[key](name)
        if option is not None:
            ratio = option.number()
            if ratio < 1:
                raise option.wrong("a ratio of 1 or more")
            settings[key] = round(100.0 * (1.0 - 1.0 / ratio), 2)
            notes.add(option.at, Fate.NEAR, f"{key}: {settings[key]:g}")
    checks = general.get("validate")
    if checks is not None:
        settings["verify"] = checks.text in _ON
        notes.add(checks.at, Fate.NEAR, f"verify: {str(settings['verify']).lower()}, by crc32c")
    return settings


def _timing(run: Definition, notes: Notes) -> dict[str, Any]:
    elapsed, warmup = run.parameters.get("elapsed"), run.parameters.get("warmup")
    asked_s = ELAPSED_S if elapsed is None else elapsed.number()
    timing: dict[str, Any] = {"measure_s": max(asked_s, 1.0), "rounds": 1}
    if elapsed is not None:
        notes.add(elapsed.at, Fate.KEPT if asked_s >= 1 else Fate.NEAR, f"timing: one round of {max(asked_s, 1):g} s")
    if warmup is not None:
        timing["warm_up_s"] = warmup.number()
        if timing["warm_up_s"] < 0:
            raise warmup.wrong("a time that is not negative")
        text = f"warm_up_s: {timing['warm_up_s']:g}, and over as soon as the load is steady"
        notes.add(warmup.at, Fate.NEAR, text)
    return timing


def _rest(path: Path, read: ParameterFile, run: Definition, loads: list[Definition], notes: Notes) -> None:
    """Note the parameters that have no effect on the workload."""
    for definition in read.of("rd"):
        if definition is not run:
            notes.add(definition.at, Fate.LOST, f"another run: {path.name}#{definition.name} runs it")
    for definition in [*read.of("wd"), *read.of("fwd")]:
        if definition not in loads and definition.name != "format":
            notes.add(definition.at, Fate.LOST, f"not part of run {run.name}")
    machines = [definition for definition in read.definitions if definition.kind == "hd"]
    if len(machines) > 1:
        notes.add(machines[0].at, Fate.LOST, f"{len(machines)} machines: `leadline bench hosts` loads many")
    used = [run, *loads, *read.of("sd"), *read.of("fsd"), *read.defaults]
    for option in [*read.general, *(option for definition in used for option in definition.explicit_parameters)]:
        if not notes.has(option.at):
            is_choice = option.name in ("sd", "wd", "fsd", "fwd")
            notes.add(option.at, *((Fate.KEPT, "chooses") if is_choice else OTHERS.get(option.name, UNKNOWN)))
