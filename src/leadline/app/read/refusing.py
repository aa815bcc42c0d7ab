"""What is said of a file that no importer reads: what it looks like, which tool's output is nearest, what to record."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from leadline.core.io.source import HEAD_BYTES, Source, is_text
from leadline.core.model.errors import InputError
from leadline.core.model.units import several

HEAD_LINES = 60
NAMES_MIN, SHARE_MIN = 3, 0.25  # Judgement: of a line's words that are names of a tool's columns
_WORD = re.compile(r"[%\w][\w%/.-]*")


@dataclass(frozen=True, slots=True)
class Nearby:
    """What is known of an importer for a refusal: its tool, the command that records, the names of its columns."""

    tool: str
    record: str
    names: frozenset[str]


@dataclass(frozen=True, slots=True)
class _Foreign:
    """A kind of file that people have at hand and that is read in another form.

    Attributes:
        is_: what it is, after "this is".
        advice: what to record or type instead.
        pattern: found in the first 64 KiB as text.
        magic: its first bytes.
        ending: of its name.
    """

    is_: str
    advice: str
    pattern: str = ""
    magic: bytes = b""
    ending: str = ""

    def is_kind_of(self, source: Source, text: str) -> bool:
        """Whether a file is of this kind: by each of the signs that there are."""
        if self.ending and not source.name.casefold().endswith(self.ending):
            return False
        if self.magic and not source.head.startswith(self.magic):
            return False
        return not self.pattern or re.search(self.pattern, text, re.MULTILINE) is not None


_TRACE = "Read it with `leadline trace characterise FILE`: a trace tells the workload, not how slow it was."
_FOREIGN = (
    _Foreign("perfmon's binary log", "Convert it on Windows: relog FILE.blg -f csv -o perfmon.csv", ending=".blg"),
    _Foreign(
        "an event trace of Windows", "Record perfmon's counters: typeperf -cf counters.txt -o perf.csv", ending=".etl"
    ),
    _Foreign(
        "SQL Server's extended events",
        "Save the waits as CSV: SELECT * FROM sys.dm_os_wait_stats, twice, minutes apart.",
        ending=".xel",
    ),
    _Foreign("a capture of packets", "Record the connections: ss -tinm, twice.", magic=b"\xd4\xc3\xb2\xa1"),
    _Foreign("a capture of packets", "Record the connections: ss -tinm, twice.", magic=b"\x0a\x0d\x0d\x0a"),
    _Foreign(
        "an archive of PCP",
        "Convert it where PCP is: pmrep -a ARCHIVE -o csv -t 1s :vmstat > pcp.csv, or pcp -a ARCHIVE dstat --output.",
        magic=b"\x00\x00\x00\x84\x50\x05\x26",
    ),
    _Foreign("raw data of perf", "Record what waits: vmstat -t 1, iostat -dxt 1.", magic=b"PERFILE"),
    _Foreign(
        "objects of PowerShell (Export-Clixml)",
        "Export them as CSV: Get-Stat ... | Export-Csv stat.csv -NoTypeInformation",
        pattern=r"<Objs Version=\"[\d.]+\" xmlns=\"http://schemas\.microsoft\.com/powershell",
    ),
    _Foreign(
        "a vmstat table with a column for the time, as Exadata's collectors write it",
        "Keep the collector's whole file with its `zzz` lines, or record it: vmstat -t -w 1",
        pattern=r"^[^\S\n]*+(?:Time|TIME|HH:MM:SS)\s+r\s+b\s+swpd\s+free",
    ),
    _Foreign(
        "a table of pgbench-tools, one row per time and metric",
        "Give what it was made of: iostat.log or vmstat.log in the folder of the run, or its latency_1s.csv",
        pattern=r"^\"?collected\"?,\"?value\"?,\"?metric\"?",
    ),
    _Foreign("a block trace", _TRACE, pattern=r"^\d{15,20},\w+,\d+,(?:Read|Write),\d+,\d+(?:,\d+)?\s*$"),
    _Foreign("a block trace", _TRACE, pattern=r"^\d+,[RW],\d+,\d+,\d{10,16}\s*$"),
    _Foreign("a block trace", _TRACE, pattern=r"^\d+,\d+,\d+,[rwRW],\d+(?:\.\d+)?\s*$"),
    _Foreign(
        "a plan of a query",
        "Record what the sessions wait for meanwhile: leadline collect postgresql, or the server's log.",
        pattern=r"^[^\S\n]*+(?:QUERY PLAN|.*\(cost=\d+\.\d+\.\.\d+\.\d+ rows=\d+ width=\d+\))",
    ),
    _Foreign(
        "system calls of strace",
        "Record what waits: iostat -dxt 1, and pidstat -d 1 for the program.",
        pattern=r"^(?:\[pid\s+\d+\] |\d+\s+)?(?:[\d:.]{8,20} )?(?:futex|read|pread64|fsync|epoll_wait|write)\(.*\) = ",
    ),
    _Foreign(
        "a page of pgBadger",
        "Name the log it was made of: leadline diagnose postgresql.log",
        pattern=r"<title>pgBadger",
    ),
    _Foreign(
        "settings of PostgreSQL",
        'Save them as a table: psql -c "COPY (SELECT * FROM pg_settings) TO STDOUT CSV HEADER" > pg_settings.csv',
        pattern=r"^[^\S\n]*+shared_buffers\s*=\s*\S+",
    ),
)


def refusal(source: Source, known: Mapping[str, Nearby]) -> InputError:
    """The error for a file nobody can read.

    Args:
        source: the file.
        known: what is known of each importer.
    """
    text = source.head_text if is_text(source.head) else ""
    foreign = next((kind for kind in _FOREIGN if kind.is_kind_of(source, text)), None)
    kinds = f"a recording of one of {len(known)} kinds"
    if foreign is not None:
        looks = f"{source.beginning()}: this is {foreign.is_}" if text else f"this is {foreign.is_}"
        return InputError(source.name, found=looks, expected=kinds, advice=foreign.advice)
    near = nearest(text, known)
    if near is not None:
        line, names, tool = near
        shown = ", ".join(names[:4])
        near_to = f"nearest to {tool.tool}: line {line} names {several(len(names), 'column')} of it ({shown})"
        return InputError(
            source.name,
            found=near_to,
            expected=f"what {tool.tool} writes",
            advice=f"Record it as: {tool.record}",
        )
    return InputError(
        source.name,
        found=source.beginning(),
        expected=kinds,
        advice="`leadline explain importers` lists them and the commands that record them.",
    )


def nearest(text: str, known: Mapping[str, Nearby]) -> tuple[int, list[str], Nearby] | None:
    """The line that reads most like a heading of a tool that records, its names, and the tool; None where none does."""
    best: tuple[float, int, list[str], Nearby] | None = None
    for number, line in enumerate(text[:HEAD_BYTES].splitlines()[:HEAD_LINES], start=1):
        words = list(dict.fromkeys(_WORD.findall(line)))
        if len(words) < NAMES_MIN:
            continue
        for tool in known.values():
            names = [word for word in words if word in tool.names]
            if len(names) < NAMES_MIN or len(names) < SHARE_MIN * len(words) or not tool.record:
                continue
            score = len(names) + len(names) / len(words)
            if best is None or score > best[0]:
                best = score, number, names, tool
    return None if best is None else best[1:]
