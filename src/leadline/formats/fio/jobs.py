"""fio's job files as jobs with their options, each with its line; what they mean is `fio_streams`'s business.

Source: fio HOWTO, Job file format and Environment variables. A value ends at the first ``;`` or ``#``. Options of a
[global] section hold for the jobs below it. ``include`` is looked for here and beside the file that has it; what is
included has no sections.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from pathlib import Path

from leadline.formats.translation import Written, read_text, wrong

WHAT = "a fio job file"
INCLUDE_DEPTH_MAX = 8
JOB_COUNT_MAX = 1024
LINE_MAX = 4096  # Source: fio init.c reads lines into 4096 bytes
_SECTION = re.compile(r"\[([^\]]+)\]")
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]*")
_VARIABLE = re.compile(r"\$\{([^}]*)\}")

# Source: fio --cmdhelp=all and options.c, .alias
ALIASES = {
    "readwrite": "rw",
    "blocksize": "bs",
    "blocksize_range": "bsrange",
    "blockalign": "ba",
    "blocksize_unaligned": "bs_unaligned",
    "io_limit": "io_size",
    "timeout": "runtime",
    "wait_for_previous": "stonewall",
    "ss": "steadystate",
    "ss_dur": "steadystate_duration",
    "ss_ramp": "steadystate_ramp_time",
    "fill_fs": "fill_device",
    "ratemin": "rate_min",
    "ratecycle": "rate_cycle",
    "iodepth_batch_submit": "iodepth_batch",
    "startdelay": "start_delay",
    "threads": "thread",
}


@dataclass(frozen=True, slots=True)
class Option(Written):
    """An option: its name as written and as fio calls it, its value with variables replaced, and where it stands."""

    value: str


@dataclass(slots=True)
class FioJob:
    """A job: every option that holds for it by name, the last one given; and those given in its own section."""

    name: str
    file: str
    line: int
    options: dict[str, Option] = field(default_factory=dict)
    explicit_options: list[Option] = field(default_factory=list)


@dataclass(slots=True)
class JobFile:
    """The jobs of a file, and the options of its [global] sections."""

    jobs: list[FioJob]
    shared: list[Option]


def read_jobs(path: Path) -> JobFile:
    """The jobs of a file.

    Raises:
        InputError: it is no job file; with line and column.
    """
    shared: list[Option] = []
    defaults: dict[str, Option] = {}
    jobs: list[FioJob] = []
    job: FioJob | None = None
    began = False
    for number, line in enumerate(_lines(path), start=1):
        text = _stripped(line)
        if not text:
            continue
        match = _SECTION.match(text)
        if match is not None:
            began = True
            job = None
            if match[1] != "global":
                job = FioJob(match[1], str(path), number, dict(defaults))
                jobs.append(job)
            continue
        if not began:
            raise wrong(f"{path}:{number}:1", "an option before the first section", f"{WHAT}: [global] or [job] first")
        for option in _options(path, number, line, INCLUDE_DEPTH_MAX):
            (job.options if job else defaults)[option.name] = option
            (job.explicit_options if job else shared).append(option)
        if len(jobs) > JOB_COUNT_MAX:
            raise wrong(f"{path}:{number}:1", f"more than {JOB_COUNT_MAX} jobs", WHAT)
    if not jobs:
        raise wrong(str(path), "no job", f"{WHAT} with a section besides [global]")
    return JobFile(jobs, shared)


def _lines(path: Path) -> list[str]:
    return read_text(path, WHAT).split("\n")


def _stripped(line: str) -> str:
    return re.split(r"[;#]", line, maxsplit=1)[0].strip()


def _options(path: Path, number: int, line: str, depth: int) -> list[Option]:
    """The option of a line, or those of the file it includes."""
    text = _stripped(line)
    where = f"{path}:{number}:{len(line) - len(line.lstrip()) + 1}"
    if len(line) > LINE_MAX:
        raise wrong(where, f"a line of {len(line)} characters", f"lines of at most {LINE_MAX}")
    words = text.split(None, 1)
    if words[0] == "include" and len(words) == 2 and "=" not in words[0]:
        return _included(path, where, words[1], depth)
    name, mark, value = (part.strip() for part in text.partition("="))
    if not _NAME.fullmatch(name):
        raise wrong(where, "neither a section, an option nor a comment", "OPTION=VALUE")
    column = line.find("=") + 2 if mark else len(line) - len(line.lstrip()) + 1
    replaced = _VARIABLE.sub(lambda match: os.environ.get(match[1], ""), value) if "${" in value else value
    if mark and not replaced:
        raise wrong(f"{path}:{number}:{column}", f"{name} without a value", "OPTION=VALUE; a variable may be unset")
    return [Option(str(path), number, column, name, ALIASES.get(name, name), replaced)]


def _included(path: Path, where: str, name: str, depth: int) -> list[Option]:
    if depth == 0:
        raise wrong(where, "files that include each other", f"at most {INCLUDE_DEPTH_MAX} levels of include")
    file = next((place for place in (Path(name), path.parent / name) if place.is_file()), None)
    if file is None:
        raise wrong(where, f"include {name}: no such file", "a file here or beside the job file")
    options: list[Option] = []
    for number, line in enumerate(_lines(file), start=1):
        text = _stripped(line)
        if text.startswith("["):
            raise wrong(f"{file}:{number}:1", "a section in an included file", "options only")
        if text:
            options += _options(file, number, line, depth - 1)
    return options
