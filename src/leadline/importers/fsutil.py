"""fsutil: the size of the clusters that a Windows volume is formatted with.

Reads:
    Text of ``fsutil fsinfo ntfsinfo D:`` and ``refsinfo``, of one volume or of several in one file. They become the
    settings ``allocation_unit_bytes``, ``filesystem`` and ``size_gib`` of the guest's drives. The drive is the one of
    the command line above the text, or of a line that holds its letter alone.

Sample:
    .. code-block:: text

        NTFS Volume Serial Number :        0xc42ce3112ce2fcf4
        NTFS Version      :                3.1
        Total Clusters    :                  946,447  (3.6 GB)
        Bytes Per Sector  :                512
        Bytes Per Physical Sector :        512
        Bytes Per Cluster :                4096

Lost:
    Sectors, the master file table, TRIM, free clusters. The text does not name its computer, and without a command or a
    letter above it not even its drive.

Units:
    Bytes; the number of clusters is hexadecimal up to Windows Server 2016 and decimal with separators after it.

Sources:
    Microsoft, Windows commands: fsutil fsinfo. Outputs of Windows 7 to Server 2022 in public notes of others. The
    message table of fsutil in ReactOS (which lines there are).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from leadline.core.contracts.importer import UNNAMED_GUEST, ImporterMeta, Request
from leadline.core.io.source import Source
from leadline.core.model.capture import Capture, CaptureBuilder
from leadline.core.model.entities import Entity
from leadline.core.model.errors import InputError
from leadline.core.model.vocabulary import EntityKind, Layer

META = ImporterMeta(
    tool="fsutil",
    marks=("bytes per cluster", "ntfs volume serial", "ntfsinfo", "refsinfo", "mft"),
    layers=(Layer.GUEST,),
    record="powershell -c \"'D:','E:' | % { $_; fsutil fsinfo ntfsinfo $_ } > volumes.txt\"",
)

_LINE = re.compile(r"\s{0,16}([A-Za-z][A-Za-z0-9 ]{2,60}?)\s{0,60}:\s{0,60}(\S.{0,120})")
_CALL = re.compile(r"\b(?:ntfs|refs)info\s{1,8}\"?([A-Za-z]):", re.IGNORECASE)
_LETTER = re.compile(r"\s{0,16}(?:drive |volume )?([A-Za-z]):\\?\s{0,16}:?\s{0,8}", re.IGNORECASE)
_WHOLE = re.compile(r"(\d{1,9})(?:\s.{0,60})?")
_COUNT = re.compile(
    r"(0x[0-9a-fA-F]{1,16}|\d{1,3}(?:[.,' \u00a0\u202f]\d{3}){1,5}|\d{1,18})(?:\s{1,8}\(.{0,40})?\s{0,8}"
)
_SIZES = frozenset(1 << power for power in range(9, 22))  # 512 bytes to 2 MiB, all that Windows formats with
_CLUSTER = "bytes per cluster"
_OTHER_LANGUAGE_MIN = 3  # lines that name NTFS or its master file table, as they do in any language
_UNNAMED_DRIVE = "volume"
_GIB = 2**30


def sniff(source: Source) -> int:
    """Sure by the line of the clusters beside that of the sectors; by shape where the words are of another language."""
    lines = source.head_text.splitlines()
    names = {entry[0] for line in lines if (entry := _entry(line)) is not None}
    if _CLUSTER in names and names & {"bytes per sector", "bytes per physical sector", "total clusters"}:
        return 95
    others = [line.casefold() for line in lines if ":" in line and re.search(r"ntfs|mft", line[:80], re.IGNORECASE)]
    is_ntfs = any("ntfs" in line and ": " in line and " 0x" in line for line in others)
    return 60 if is_ntfs and len(others) >= _OTHER_LANGUAGE_MIN else 0


def read(source: Source, request: Request) -> Capture:
    """A capture of facts only: the clusters of each volume.

    Raises:
        InputError: no line gives the size of a cluster.
    """
    del request
    builder = CaptureBuilder(source.name, "fsutil", META.tool)
    call = _CALL.search(source.command)
    volumes = list(_volumes(source.text(), call[1].upper() if call else ""))
    if not volumes:
        raise InputError(
            source.name,
            found="no line with the size of a cluster",
            expected="the English output of fsutil fsinfo ntfsinfo, with the line Bytes Per Cluster",
            advice=f"Record it under an English Windows display language: {META.record}",
        )
    guest = builder.inventory.add(UNNAMED_GUEST, source.name)
    for letter, filesystem, cluster, count in volumes:
        drive = Entity(EntityKind.BLOCK_DEVICE, f"{letter}:" if letter else _UNNAMED_DRIVE, guest)
        builder.inventory.add(drive, source.name, filesystem=filesystem, allocation_unit_bytes=cluster)
        if count:
            builder.inventory.add(drive, source.name, size_gib=cluster * count / _GIB)
    builder.warn("no-guest", "the text does not name its computer: taken as one called guest")
    if any(not letter for letter, *_ in volumes):
        builder.warn("no-drive", "no line names the drive: taken as one called volume; write its letter (D:) above it")
    return builder.build()


def _volumes(text: str, letter: str) -> Iterator[tuple[str, str, int, int]]:
    """Of each volume: letter, file system, bytes of a cluster, clusters (0: not printed)."""
    filesystem, cluster, count = "ntfs", 0, 0
    for line in text.splitlines():
        heading = _CALL.search(line[:400]) or _LETTER.fullmatch(line[:80])
        entry = _entry(line)
        begins = entry is not None and entry[0].endswith("volume serial number")
        if (heading or begins) and cluster:
            yield letter, filesystem, cluster, count
            letter, filesystem, cluster, count = "", "ntfs", 0, 0
        if heading:
            letter = heading[1].upper()
        elif entry is not None and begins:
            filesystem = "refs" if entry[0].startswith("refs") else "ntfs"
        elif entry is not None and entry[0] == "total clusters":
            count = _count(entry[1])
        elif entry is not None and entry[0] == _CLUSTER:
            whole = _WHOLE.fullmatch(entry[1].strip())
            cluster = int(whole[1]) if whole and int(whole[1]) in _SIZES else 0
    if cluster:
        yield letter, filesystem, cluster, count


def _entry(line: str) -> tuple[str, str] | None:
    """The name of a line in lower case, and its value."""
    match = _LINE.fullmatch(line)
    return (match[1].strip().casefold(), match[2]) if match else None


def _count(text: str) -> int:
    """A number as fsutil prints it: hexadecimal, or decimal with separators; 0 where it is none."""
    match = _COUNT.fullmatch(text)
    if match is None:
        return 0
    return int(match[1], 16) if match[1].startswith("0x") else int(re.sub(r"\D", "", match[1]))
