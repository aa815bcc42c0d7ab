"""The files of an archive of Performance Co-Pilot, and their export through pmrep."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable
from pathlib import Path

from leadline.core.io.source import Source
from leadline.core.model.errors import InputError, LimitError, ToolError
from leadline.core.system.processes import ToolLimits, run_limited

RECORD = (
    "pmrep -a ARCHIVE -o csv -k -u -5 kernel.all disk.dev mem.util mem.vmstat.pgmajfault swap hinv.ncpu "
    "network.interface network.tcp > pcp.csv"
)
# Judgement: a day every 10 s with a thousand columns.
_LIMITS = ToolLimits(wall_s=300.0, cpu_s=240, memory_bytes=2 << 30, output_bytes=(256 << 20) + 1)
_UNPACKED_FIRST = (".xz", ".gz", ".bz2", ".zst", ".lzma")


def archive_of(source: Source) -> str:
    """The name of an archive without the suffix of its metadata, where its other files lie beside it.

    Raises:
        InputError: they do not, for instance within a tar archive.
    """
    for path in (source.path.resolve(), Path(source.name).resolve()):
        name = str(path)
        for packed in _UNPACKED_FIRST:
            name = name.removesuffix(packed)
        base = name.removesuffix(".meta")
        if base != name and any(path.parent.glob(f"{_escaped(Path(base).name)}.[0-9]*")):
            return base
    raise InputError(
        source.name,
        found="the metadata of a PCP archive, and no NAME.0 beside it",
        expected="NAME.meta, NAME.index and NAME.0 in one folder",
        advice="Unpack the archive into a folder and name the folder, or export it: " + RECORD,
    )


def _escaped(name: str) -> str:
    return re.sub(r"([*?\[])", r"[\1]", name)


def export(base: str, exported: Path, name: str, metrics: Iterable[str]) -> None:
    """Export what is known of an archive to CSV.

    Raises:
        ToolError: PCP is not installed.
        InputError: pmrep does not read it.
        LimitError: it takes more than a recording of a day should.
    """
    programs = [shutil.which(program) for program in ("pminfo", "pmrep")]
    if None in programs:
        raise ToolError(
            name,
            found="an archive of PCP, and pmrep is not installed",
            expected="pmrep of PCP, which knows the format",
            advice=f"apt-get install pcp, or where it was recorded: {RECORD}",
        )
    _run(["pminfo", "-a", base], exported, name)
    present = set(exported.read_text(encoding="utf-8", errors="replace").split())
    wanted = [metric for metric in metrics if metric in present]
    if not wanted:
        raise InputError(
            name,
            found="an archive without metrics of CPU, memory, disks or network",
            expected="what pmlogger records by default",
            advice="Record with pmlogger -c config.default, or export: " + RECORD,
        )
    _run(["pmrep", "-a", base, "-o", "csv", "-k", "-u", "-Z", "UTC", *wanted], exported, name)


def _run(command: list[str], output: Path, name: str) -> None:
    # pmrep is a script of the system's Python: another one in front of it lacks PCP's modules.
    variables = {"LC_ALL": "C", "PATH": "/usr/bin:/bin:/usr/local/bin"}
    done = run_limited(command, output=output, limits=_LIMITS, variables=variables)
    if done.limit is not None:
        raise LimitError(
            name,
            found=f"an archive at which {command[0]} {done.limit}",
            expected="an archive of a day or less",
            advice="Cut out the incident: pmlogextract -S @10:00 -T @11:00 ARCHIVE SMALLER.",
        )
    if done.status:
        raise InputError(
            name,
            found=f"an archive that {command[0]} does not read",
            expected="a whole archive of PCP",
            advice=f"Where it was recorded: {RECORD}",
            said=(done.complaint.splitlines() or ["nothing"])[-1][:200],
        )
