"""Heads of ``top`` as old versions and other systems print them: the time, the load, shares of CPU and memory.

procps 2 and 3.2 (``Cpu(s):  1.0%us``, ``CPU states:``), Solaris, FreeBSD and OpenBSD. Names are those of procps today.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from leadline.formats.sysstat.text import clock_of

_NUMBER = r"(?<!\d)(\d{1,9}+(?:\.\d{1,9}+)?)"
_LOADS = rf"load averages?: {{1,6}}{_NUMBER},? {{1,6}}{_NUMBER},? {{1,6}}{_NUMBER}"
_OLD = re.compile(rf" {{0,3}}(\d{{1,2}}:\d\d(?::\d\d)?) ?([ap]m)? {{1,4}}up .{{1,60}}{_LOADS}\s*", re.IGNORECASE)
_UNIX = re.compile(rf"(?:last pid: {{1,8}}\d{{1,9}}[;,]? {{1,8}})?{_LOADS}[;,]?(?:.{{0,120}})\s(\d\d:\d\d:\d\d)\s*")
_CPU = re.compile(r" {0,3}%?(?:Cpu\(s\) {0,3}:|CPU states:|CPU: )")
_ONE_CPU = re.compile(r" {0,3}%?(?:Cpu\d{1,4} {0,4}:|CPU ?\d{1,4}(?: states)?:)")
_SHARE = re.compile(
    rf"{_NUMBER} ?%? ?"
    r"(us(?:er)?|sys(?:tem)?|sy|kernel|nice|ni|idle|id|iowait|wa|interrupt|intr|irq|hi|softirq|si|steal|st)\b"
)
_NAMES = {
    "user": "us",
    "system": "sy",
    "sys": "sy",
    "kernel": "sy",
    "nice": "ni",
    "idle": "id",
    "iowait": "wa",
    "interrupt": "hi",
    "intr": "hi",
    "irq": "hi",
    "softirq": "si",
    "steal": "st",
}
_TASKS = re.compile(r" {0,3}(\d{1,7}) (?:processes|threads):")
_RUNNING = re.compile(r"(\d{1,7}) (?:running|on cpu|on processor)\b")
_MEMORY = re.compile(r" {0,3}(Mem|Memory|Swap|ARC|Kernel|Real): ")
_SIZE = re.compile(rf"{_NUMBER}([KMGT]) (free|used)\b(?! swap)", re.IGNORECASE)
_KIB = {"K": 1.0, "M": 1024.0, "G": 1024.0**2, "T": 1024.0**3}


@dataclass(frozen=True, slots=True)
class TopHead:
    """The first line of a report: nanoseconds since midnight, and the load."""

    time_of_day_ns: int
    loads: dict[str, float]


def head_of(line: str) -> TopHead | None:
    """The first line of a report of an old version or another system; None for any other line.

    >>> head_of(" 10:14pm  up 12 days,  3:33,  2 users,  load average: 0.07, 0.02, 0.00").loads["load 1"]
    0.07
    """
    old, unix = _OLD.fullmatch(line[:300]), _UNIX.fullmatch(line[:300])
    if old is not None:
        seconds = ":00" if old[1].count(":") == 1 else ""
        clock, loads = f"{old[1]:0>5}{seconds} {(old[2] or '').upper()}", old.groups()[2:]
    elif unix is not None:
        clock, loads = unix[4], unix.groups()[:3]
    else:
        return None
    time_of_day = clock_of(f"{clock.strip()} ")
    if time_of_day is None:
        return None
    named = dict(zip(("load 1", "load 5", "load 15"), map(float, loads), strict=True))
    return TopHead(time_of_day[0], named)


def cpu_shares(line: str) -> dict[str, float] | None:
    """Shares of all CPUs in a line; None where it is not the line of them."""
    return _shares(line) if _CPU.match(line) else None


def one_cpu_shares(line: str) -> dict[str, float] | None:
    """Shares of one CPU in a line; None where it is not the line of one."""
    return _shares(line) if _ONE_CPU.match(line) else None


def _shares(line: str) -> dict[str, float]:
    return {_NAMES.get(name, name): float(share) for share, name in _SHARE.findall(line)}


def old_amounts(line: str) -> dict[str, float] | None:
    """Counts of tasks and KiB of memory in a line; None where it tells of neither."""
    tasks = _TASKS.match(line)
    if tasks is not None:
        running = _RUNNING.search(line)
        return {"Tasks total": float(tasks[1])} | ({"Tasks running": float(running[1])} if running else {})
    memory = _MEMORY.match(line)
    if memory is None:
        return None
    kind = {"Memory": "Mem", "Real": "Mem"}.get(memory[1], memory[1])
    sizes = {f"{kind} {name.lower()}": float(size) * _KIB[unit.upper()] for size, unit, name in _SIZE.findall(line)}
    return {name: size for name, size in sizes.items() if name in {"Mem free", "Swap used"}}
