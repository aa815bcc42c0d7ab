"""The kernel's counters of NFS mounts: ``/proc/self/mountstats``, one copy or several.

Reads:
    Copies of ``/proc/self/mountstats`` of Linux 2.6.17 on (statvers 1.0 and 1.1), one after another in one file.

Sample:
    .. code-block:: text

        device nap:/export/pg mounted on /var/lib/pgsql with fstype nfs4 statvers=1.1
                age:    86400
                per-op statistics
                        READ: 120 120 0 24960 985440 5 258 270 0

Lost:
    Mounts that are no NFS, operations but reads and writes, events and the transport. One copy, and the first of
    several, is an average since the mount. A copy that is not whole is left out.

Units:
    Counts, bytes and milliseconds since the mount; the age in seconds tells how far two copies are apart. The last copy
    is taken to be as old as the file.

Sources:
    Linux source, net/sunrpc/stats.c (``rpc_clnt_show_stats``) and fs/nfs/super.c; nfsiostat(8).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

import numpy as np

from leadline.core.contracts.importer import ImporterMeta, Request
from leadline.core.io.source import Source
from leadline.core.model.capture import Capture, CaptureBuilder
from leadline.core.model.vocabulary import Layer
from leadline.formats.loadtool import ELAPSED_S_MAX, NAN, bad_line
from leadline.formats.nfs import COLUMNS, FIELDS, WAYS, scheme_of
from leadline.formats.tables import SampleTable, emit

META = ImporterMeta(
    tool="mountstats",
    marks=("per-op statistics",),
    layers=(Layer.STORAGE_PATH, Layer.GUEST),
    fields=FIELDS,
    record="for i in $(seq 60); do cat /proc/self/mountstats; sleep 10; done > mountstats.txt",
)
_DEVICE = re.compile(
    r"\s{0,8}device (?P<export>.{1,400}) mounted on (?P<place>/.{0,400}) with fstype (?P<type>\S+)(?: .*)?"
)
_AGE = re.compile(r"\s*age:\s*(\d{1,10})\s*")
_OPERATION = re.compile(r"\s*(?P<name>[A-Z][A-Z0-9_]{1,30}): (?P<counts>\d{1,20}(?: \d{1,20}){7,9})\s*")
_DETAIL = re.compile(
    r"\s*(?:opts|caps|nfsv4|sec|events|bytes|xprt|impl_id|fsc|LAYOUT\w*|pnfs|RPC iostats version|per-op statistics|"
    r"no device mounted)\b.*|\s*\d+:\s.*|\s*NULL: .*|\s*"
)
# Places of an operation's counts.
_OPS, _SENT, _BYTES_OUT, _BYTES_IN, _QUEUE, _RTT, _EXE = 0, 1, 3, 4, 5, 6, 7


@dataclass
class _Mount:
    """One mount in one copy."""

    place: str
    line: int
    age_s: float = NAN
    counts: dict[str, list[float]] = field(default_factory=dict)


def sniff(source: Source) -> int:
    """Sure by the line of an NFS mount and the counters of operations."""
    lines = source.head_text.splitlines()
    is_nfs = any((match := _DEVICE.fullmatch(line)) and match["type"].startswith("nfs") for line in lines)
    return 93 if is_nfs and any(_OPERATION.fullmatch(line) for line in lines) else 0


def read(source: Source, request: Request) -> Capture:
    """Series of rates, throughput and times per mount.

    Raises:
        InputError: no whole NFS mount, or a line that is none of the kernel's.
    """
    builder = CaptureBuilder(source.name, "mountstats", META.tool)
    mounts = [one for one in _mounts(source) if one.age_s > 0 and "READ" in one.counts and "WRITE" in one.counts]
    if not mounts:
        raise bad_line(source.name, 0, "no whole NFS mount", "a mount with its age, READ and WRITE")
    table = SampleTable("mount", COLUMNS)
    last: dict[str, _Mount] = {}
    elapsed_s: list[float] = []
    for mount in mounts:
        before = last.get(mount.place)
        if before is not None and not _follows(mount, before):
            builder.warn("mounted-again", "a mount was mounted again, or two copies are of the same second: left out")
            if mount.age_s < before.age_s:
                last[mount.place] = mount
            continue
        seconds = mount.age_s - (before.age_s if before else 0.0)
        table.add(0, mount.place, _row(mount, before, seconds))
        last[mount.place] = mount
        if len(table.moments) > len(elapsed_s):
            step_s = seconds if elapsed_s and before is not None else 1.0
            elapsed_s.append(elapsed_s[-1] + step_s if elapsed_s else 0.0)
    since_end_s = np.array(elapsed_s) - elapsed_s[-1]
    times = source.mtime_ns + np.round(since_end_s * 1e9).astype(np.int64)
    builder.warn("no-times", "copies have no times: the last is taken to be as old as the file")
    emit(table, times, scheme_of("mountstats"), builder, request, since_boot=True)
    return builder.build(clock_known=False)


def _mounts(source: Source) -> list[_Mount]:
    mounts: list[_Mount] = []
    is_nfs = False
    for index, line in enumerate(source.lines()):
        if device := _DEVICE.fullmatch(line):
            is_nfs = device["type"] in ("nfs", "nfs4")
            if is_nfs:
                mounts.append(_Mount(device["place"], index))
        elif is_nfs and (age := _AGE.fullmatch(line)):
            mounts[-1].age_s = float(age[1]) if float(age[1]) <= ELAPSED_S_MAX else NAN
        elif is_nfs and (operation := _OPERATION.fullmatch(line)):
            mounts[-1].counts[operation["name"]] = [float(word) for word in operation["counts"].split()]
        elif not _DETAIL.fullmatch(line):
            raise bad_line(source.name, index, line, "a line of /proc/self/mountstats")
    return mounts


def _follows(mount: _Mount, before: _Mount) -> bool:
    """Whether a copy is a later one of the same mount."""
    return mount.age_s > before.age_s and all(
        now >= then
        for way in ("READ", "WRITE")
        for now, then in zip(mount.counts[way], before.counts[way], strict=False)
    )


def _row(mount: _Mount, before: _Mount | None, seconds: float) -> list[float]:
    """The values of a copy, since another or since the mount; times without a request are 0, as nfsiostat has them."""
    cells: list[list[float]] = []
    sent_count = ops_count = 0.0
    for way in WAYS:
        now = mount.counts[way.upper()]
        then = before.counts[way.upper()] if before else [0.0] * len(now)
        delta = [a - b for a, b in zip(now, then, strict=False)]
        ops = delta[_OPS]
        ops_count, sent_count = ops_count + ops, sent_count + delta[_SENT]
        kib = (delta[_BYTES_OUT] + delta[_BYTES_IN]) / 1024
        each = [delta[place] / ops if ops > 0 else 0.0 for place in (_RTT, _EXE, _QUEUE)]
        cells.append([ops / seconds, kib / seconds, NAN, *each])
    again_pct = max(sent_count - ops_count, 0.0) / ops_count * 100 if ops_count > 0 else NAN
    for way_cells in cells:
        way_cells[2] = again_pct
    return [value for way_cells in cells for value in way_cells]
