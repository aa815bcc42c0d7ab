"""fio's job files as workloads: a job is a stream; jobs divided by stonewall or wait_for are phases, one at a time.

Source: fio HOWTO, Job file parameters, stonewall, wait_for.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from leadline.formats.fio.jobs import WHAT, FioJob, JobFile, read_jobs
from leadline.formats.fio.streams import TranslatedJob, read_stream
from leadline.formats.translation import Fate, Notes, Translation, slug, unique, workload_from, wrong

SOURCE = "fio job file"


def translate_fio(path: Path, pick: str = "") -> Translation:
    """The workload of a job file; ``pick`` names a job of the phase that is wanted, the first phase otherwise.

    Raises:
        InputError: it is no job file, has no such job, or nothing of it is load on a disk; with line and column.
    """
    read = read_jobs(path)
    notes = Notes()
    phases = _phases(read.jobs, notes)
    chosen = _chosen(path, phases, pick)
    drafts = [(job, read_stream(job, notes)) for job in chosen]
    good = [(job, draft) for job, draft in drafts if not draft.dropped]
    if not good:
        job, draft = drafts[0]
        advice = "`leadline trace replay` takes I/O logs." if "log" in draft.dropped else "Translate another file."
        raise wrong(f"{path}:{job.line}:1", f"[{job.name}]: {draft.dropped}", "reads and writes of a disk", advice)
    for job, draft in drafts:
        if draft.dropped:
            notes.add((str(path), job.line, f"[{job.name}]"), Fate.LOST, draft.dropped)
    for phase in phases:
        if phase is not chosen:
            for job in phase:
                where = f"another phase: {path.name}#{job.name} runs it"
                notes.add((str(path), job.line, f"[{job.name}]"), Fate.LOST, where)
    names = unique(slug(job.name, "job") for job, _ in good)
    plain: dict[str, Any] = {
        "about": f"Translated from {path.name}{f' #{pick}' if pick else ''}.",
        "source": SOURCE,
        "io": [{"name": name, **draft.stream} for name, (_, draft) in zip(names, good, strict=True)],
        "io_settings": _settings(good, notes),
        "timing": _timing(good, notes),
    }
    _given_again(read, chosen, notes)
    all_notes = notes.all()
    plain["notes"] = [note.sentence() for note in all_notes if note.fate is not Fate.KEPT]
    workload = workload_from(path, f"{path.stem}-{pick}" if pick else path.stem, plain, WHAT)
    choices = tuple(phase[0].name for phase in phases) if len(phases) > 1 else ()
    return Translation(workload, all_notes, SOURCE, choices)


def _phases(jobs: list[FioJob], notes: Notes) -> list[list[FioJob]]:
    """Jobs that run together, in the order of their turns."""
    turn, turns = 0, list[int]()
    for index, job in enumerate(jobs):
        wall = job.options.get("stonewall")
        if wall is not None and wall.value != "0":
            turn = max(turns) + 1 if turns else 0
            notes.add(wall.at, Fate.KEPT, "begins a phase; phases are separate runs")
        job_turn = turn
        wait = job.options.get("wait_for")
        if wait is not None:
            earlier = [turns[before] for before in range(index) if jobs[before].name == wait.value]
            job_turn = max(job_turn, earlier[-1] + 1) if earlier else job_turn
            notes.add(wait.at, Fate.KEPT if earlier else Fate.LOST, "a later phase" if earlier else "no such job above")
        turns.append(job_turn)
    return [
        [job for job, job_turn in zip(jobs, turns, strict=True) if job_turn == number] for number in sorted(set(turns))
    ]


def _chosen(path: Path, phases: list[list[FioJob]], pick: str) -> list[FioJob]:
    if not pick:
        return phases[0]
    for phase in phases:
        if any(job.name == pick for job in phase):
            return phase
    names = ", ".join(job.name for phase in phases for job in phase)
    raise wrong(f"{path}#{pick}", "no job of that name", f"one of {names[:200]}", "Name a job after the #.")


def _settings(drafts: list[tuple[FioJob, TranslatedJob]], notes: Notes) -> dict[str, Any]:
    """Return the settings all streams share: buffered only if all jobs are, verify if any does, else the largest."""
    settings: dict[str, Any] = {}
    choose: dict[str, Callable[[list[Any]], Any]] = {
        "buffered": all,
        "verify": any,
        "compress_pct": max,
        "dedupe_pct": max,
    }
    for key, best in choose.items():
        values = [draft.settings.get(key, 0) for _, draft in drafts]
        settings[key] = best(values)
        for job, draft in drafts:
            if draft.settings.get(key, 0) != settings[key]:
                where = (job.file, job.line, f"[{job.name}]")
                notes.add(where, Fate.NEAR, f"{key}: {str(settings[key]).lower()} as in other jobs: one setting of all")
    return settings


def _timing(drafts: list[tuple[FioJob, TranslatedJob]], notes: Notes) -> dict[str, Any]:
    """One round of the longest runtime; the rounds of a workload where none is given."""
    times = [draft.runtime_s for _, draft in drafts if draft.runtime_s is not None]
    ramps = [draft.ramp_s for _, draft in drafts if draft.ramp_s is not None]
    timing: dict[str, Any] = {"warm_up_s": max(ramps)} if ramps else {}
    longest = max([*times, 1.0]) if times else None
    if longest is not None:
        timing |= {"measure_s": longest, "rounds": 1}
    for job, draft in drafts:
        where = (job.file, job.line, f"[{job.name}]")
        if draft.runtime_s is None:
            length = "3 rounds of 30 s" if longest is None else f"a round of {longest:g} s"
            notes.add(where, Fate.NEAR, f"no runtime: {length} instead of once over its size")
        elif longest is not None and draft.runtime_s < longest and longest > 1.0:
            notes.add(where, Fate.NEAR, f"runs for {longest:g} s like the others, not for {draft.runtime_s:g} s")
    return timing


def _given_again(read: JobFile, chosen: list[FioJob], notes: Notes) -> None:
    """Note the lines that nothing came of, since a later line says it again or no job of this phase has it."""
    for option in [*read.shared, *(option for job in chosen for option in job.explicit_options)]:
        if not notes.has(option.at):
            notes.add(option.at, Fate.KEPT, "no effect here: given again below")
