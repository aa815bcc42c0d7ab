"""Which file system lies on which disk, how full it is and how it is mounted, as Linux commands print it.

Reads:
    ``lsblk`` (any columns with NAME), ``mount`` (also of macOS, BSD and AIX), ``dmsetup ls --tree``,
    ``multipath -ll``, ``pvs`` and ``lvs``, one or several in one file, and beside them ``df`` (``-h``, ``-T``,
    ``-k``, ``-P``).

Sample:
    .. code-block:: text

        NAME        MAJ:MIN RM  SIZE RO TYPE MOUNTPOINT
        sdb           8:16   0  200G  0 disk
        └─vg-pgdata 253:4    0  200G  0 lvm  /pgdata

Lost:
    The machine's name. File systems that are on no disk (tmpfs, NFS, ZFS), inodes (``df -i``), labels and UUIDs. Which
    path is in which state; they are counted.

Units:
    Letters of sizes are powers of 1024. ``filesystem_free_pct`` is what ordinary users may still fill: 100 less Use%,
    from blocks where they are printed.

Sources:
    util-linux: lsblk(8), mount(8). GNU coreutils: df(1). dmsetup(8), multipath(8), pvs(8), lvs(8).
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from typing import Any

from leadline.core.contracts.importer import ImporterMeta, Request
from leadline.core.io.source import Source
from leadline.core.model.capture import Capture, CaptureBuilder
from leadline.core.model.entities import Entity
from leadline.core.model.errors import InputError
from leadline.core.model.vocabulary import EntityKind, Layer
from leadline.formats.printed import bytes_of
from leadline.importers._block_layout.layout import Layout, device_numbered, mapper_name

META = ImporterMeta(
    tool="lsblk, df and mount",
    marks=("maj:min", "mountpoint", "mounted on", "mounted over", " type ", " dm-", "psize", "lsize", ")\n"),
    layers=(Layer.GUEST,),
    record="(lsblk; df -hT; mount; dmsetup ls --tree; multipath -ll) > block-layout.txt",
)

_LSBLK = re.compile(
    r"^NAME[ \t]+(?:[A-Z:%-]{2,20}[ \t]+){0,20}(?:MAJ:MIN|MOUNTPOINTS?|FSTYPE)\b[^\n]{0,800}$", re.MULTILINE
)
_DF = re.compile(
    r"^Filesystem[ \t]+(Type[ \t]+)?(?:Size|1K-blocks|1024-blocks|1M-blocks|1G-blocks|512-blocks)[ \t]+Used[ \t]+"
    r"Avail(?:able)?[ \t]+(?:Use%|Capacity)[ \t]+Mounted on[ \t]*\r?$",
    re.MULTILINE,
)
_INODES = re.compile(r"Filesystem\s+(?:Type\s+)?Inodes\s.{0,80}")
_DF_ROW = re.compile(
    r"(\S{1,400})\s+(?:([a-z]\w{1,30})\s+)?([\d.,]{1,20}[KMGTPE]?)\s+([\d.,]{1,20}[KMGTPE]?)\s+(-?[\d.,]{1,20}[KMGTPE]?)"
    r"\s+(\d{1,3}%|-)\s+(/.{0,400})"
)
# Linux' own form, that of macOS and BSD, and the rows of AIX' table.
_MOUNT = re.compile(
    r"(?P<device>/dev/\S{1,400}|\S.{0,400}?) on (?P<point>/.{0,400}?) type (?P<kind>[\w.-]{1,40}) "
    r"\((?P<options>.{0,2000})\)(?: \[.{0,80}\])?"
)
_BSD_MOUNT = re.compile(
    r"(?P<device>/dev/\S{1,400}|\S.{0,400}?) on (?P<point>/.{0,400}?) \((?P<kind>[a-z]\w{1,20})"
    r"(?P<options>(?:, [^,()]{1,80}){0,40})\)"
)
_AIX_MOUNT = re.compile(
    r"(?:\S{1,80}| ) +(?P<device>\S{1,400}) +(?P<point>/\S{0,400}) +(?P<kind>[a-z]\w{1,20}) +"
    r"[A-Z]\w\w \d\d \d\d:\d\d +(?P<options>\S{0,2000})"
)
_AIX_MOUNTS = re.compile(r"^ *node +mounted +mounted over +vfs +date +options *$", re.MULTILINE)
_MOUNTS = re.compile(
    r"^\S[^\n]{0,400} on /[^\n]{0,400} (?:type [\w.-]{1,40} \([a-z][^\n]{0,2000}\)"
    r"|\([a-z]\w{1,20}, [a-z][^\n]{0,400}\)$)",
    re.MULTILINE,
)
_TREE = re.compile(r"^\S{1,200}[ \t]+\(\d{1,4}:\d{1,8}\)[^\n]{0,40}\n[ \t]{0,8}[├└`|]", re.MULTILINE)
_TREE_ROW = re.compile(
    r"([ │├└─`|-]{0,80})(\S{0,200})\s+\((\d{1,4}:\d{1,8})\)\s{0,8}(?:=> /dev/\S{1,60})?"
    r"|([ │├└─`|-]{1,80})\((\d{1,4}:\d{1,8})\)"
)
_MAP = re.compile(r"(?:[a-z]{3,10}: )?(\S{1,120}) (?:\([\w.-]{1,120}\) )?(dm-\d{1,5}) \S.{0,80}")
_MAPS = re.compile(
    r"^(?:[a-z]{3,10}: )?\S{1,120} (?:\([\w.-]{1,120}\) )?dm-\d{1,5} [^\n]{0,80}\n[ ]?size=", re.MULTILINE
)
_MAP_SIZE = re.compile(r"\s?size=([\d.]{1,10}[KMGTP]?)\b.{0,200}")
_MAP_GROUP = re.compile(r"[\s|`\\_+-]{1,20}(?:policy=|round-robin|service-time|queue-length).{0,120}")
_MAP_PATH = re.compile(
    r"[\s|`\\_+-]{1,20}[\d#]{1,5}:[\d#]{1,5}:[\d#]{1,5}:[\d#]{1,8}\s+(\S{1,40})\s+\d{1,4}:\d{1,8}\s+(.{1,80})"
)
_PVS = re.compile(r"^[ \t]*PV[ \t]+VG[ \t]+Fmt[ \t]+Attr[ \t]+PSize[ \t]+PFree[ \t]*\r?$", re.MULTILINE)
_LVS = re.compile(r"^[ \t]*LV[ \t]+VG[ \t]+Attr[ \t]+LSize\b[^\n]{0,120}$", re.MULTILINE)
_PV_ROW = re.compile(r"\s*(/dev/\S{1,200})\s+(?:(\S{1,120})\s+)?lvm[12]\s+\S{2,6}\s+<?\S{1,12}\s+<?\S{1,12}\s*")
_LV_ROW = re.compile(r"\s*(\[?[\w.+-]{1,120}\]?)\s+([\w.+-]{1,120})\s+[\w-]{9,10}\s+<?(\d\S{0,11})(?:\s.{0,120})?")
_BRANCH = re.compile(r"[ │├└─`|-]*")
_RULER = re.compile(r"[- ]{10,200}")
_SECTIONS = {"mount": _AIX_MOUNTS, "lsblk": _LSBLK, "df": _DF, "df -i": _INODES, "pvs": _PVS, "lvs": _LVS}
_SURE = (_LSBLK, _MOUNTS, _AIX_MOUNTS, _TREE, _MAPS, _PVS, _LVS)  # any of them tells the commands from others
_PROMPT = re.compile(r"\S[^#$>\n]{0,100}[#$>] ?(?:sudo )?(?:lsblk|df|mount|dmsetup|multipath|pvs|lvs)\b.*")
_BAD_STATES = frozenset({"failed", "faulty", "shaky", "offline"})
_HEAD_LINES = 60
_GIB = float(1 << 30)


def sniff(source: Source) -> int:
    """Sure by the headings of the commands, or by rows that only they print; df alone is read by its own importer."""
    text = "\n".join(source.head_text.splitlines()[:_HEAD_LINES])  # reports of many sections have these further down
    if text.lstrip().startswith("<"):
        return 0
    commands = sum(mark.search(text) is not None for mark in _SURE)
    return (92 if commands > 1 or _DF.search(text) else 85) if commands else 0


def read(source: Source, request: Request) -> Capture:
    """Facts of block devices only.

    Raises:
        InputError: a line is none of the commands', or no file system is on a disk.
    """
    del request
    builder = CaptureBuilder(source.name, "block-layout", META.tool)
    reader = _Listing(source, builder)
    reader.read()
    if not reader.row_count:
        raise reader.error("", "no row of a device")
    for name, states in reader.paths.items():
        builder.inventory.add(
            Entity(EntityKind.DEVICE, name),
            builder.info.name,
            local=False,
            path_count=len(states),
            path_active_count=sum(states),
            path_dead_count=states.count(False),
        )
    reader.layout.into(builder)
    return builder.build()


@dataclass(slots=True)
class _Listing:
    """State of reading line by line."""

    source: Source
    builder: CaptureBuilder
    layout: Layout = field(default_factory=Layout)
    row_count: int = 0
    paths: dict[str, list[bool]] = field(default_factory=dict)
    _section: str = ""
    _columns: list[tuple[str, int, int]] = field(default_factory=list)
    _above: list[tuple[int, str]] = field(default_factory=list)
    _last: str = ""
    _pending: str = ""
    _map: str = ""

    def read(self) -> None:
        """Read the whole file.

        Raises:
            InputError: a line is none of the commands'.
        """
        for number, line in enumerate(self.source.lines(), 1):
            bare = line.rstrip()
            if not bare or _PROMPT.fullmatch(bare):
                continue
            if not (self._heading(bare) or self._anywhere(bare) or self._in_section(bare)):
                raise self.error(f":{number}", f"{bare.strip()[:60]!r}")

    def _heading(self, line: str) -> bool:
        section = next((name for name, pattern in _SECTIONS.items() if pattern.fullmatch(line)), None)
        if section is None:
            return False
        self._section, self._above, self._last, self._pending = section, [], "", ""
        self._columns = [(match[0], *match.span()) for match in re.finditer(r"\S+", line)]
        return True

    def _anywhere(self, line: str) -> bool:
        """Rows that need no heading: of mount, dmsetup and multipath."""
        mounted = _MOUNT.fullmatch(line) or _BSD_MOUNT.fullmatch(line)
        if mounted is not None:
            return self._mount(mounted)
        if (match := _MAP.fullmatch(line)) is not None:
            self._section, self._last = "multipath", match[2]
            self._map = match[1]
            self.paths.setdefault(self._map, [])
            self.layout.rename(match[1], match[2])
            self.row_count += 1
            return True
        return self._section == "multipath" and self._path(line)

    def _mount(self, row: re.Match[str]) -> bool:
        self.row_count += 1
        if row["device"].startswith("/dev/"):
            options = [one for one in map(str.strip, row["options"].split(",")) if one]
            self._mounted(row["device"], row["point"], filesystem=row["kind"], mount_options=options)
        return True

    def _aix_mount(self, line: str) -> bool:
        row = _AIX_MOUNT.fullmatch(line)
        return _RULER.fullmatch(line) is not None or (row is not None and self._mount(row))

    def _path(self, line: str) -> bool:
        device = self.layout.device(self._last)
        if (match := _MAP_SIZE.fullmatch(line)) is not None:
            device.facts["size_gib"] = _gib(match[1])
            return True
        if (match := _MAP_PATH.fullmatch(line)) is not None:
            device.below.append(match[1])
            words = set(match[2].replace("[", " ").replace("]", " ").split())
            self.paths[self._map].append(not words & _BAD_STATES)
            return True
        return _MAP_GROUP.fullmatch(line) is not None

    def _in_section(self, line: str) -> bool:
        takers = {
            "mount": self._aix_mount,
            "lsblk": self._lsblk,
            "df": self._df,
            "df -i": lambda _: True,
            "pvs": self._pvs,
            "lvs": self._lvs,
        }
        taker = takers.get(self._section)
        is_taken = taker is not None and taker(line)
        if not is_taken and _TREE_ROW.fullmatch(line) is not None:
            self._section = "dmsetup"
            is_taken = self._tree(line)
        self.row_count += is_taken
        return is_taken

    def _tree(self, line: str) -> bool:
        match = _TREE_ROW.fullmatch(line)
        if match is None:
            return False
        branch, alias = match[1] or match[4] or "", match[2] or ""
        number = match[3] or match[5]
        name = device_numbered(number, alias) or alias or number
        if alias and name != alias:
            self.layout.rename(alias, name)
        self._place(len(branch), name)
        return True

    def _place(self, depth: int, name: str) -> None:
        """Put a device of a tree printed from the top (dmsetup) below the one that is nearest above it."""
        while self._above and self._above[-1][0] >= depth:
            self._above.pop()
        if self._above:
            self.layout.device(self._above[-1][1]).below.append(name)
        self._above.append((depth, name))

    def _lsblk(self, line: str) -> bool:
        cells = self._cells(line)
        kernel = _BRANCH.sub("", cells.get("NAME", ""), count=1)
        mount = cells.get("MOUNTPOINTS", cells.get("MOUNTPOINT", ""))
        if not kernel:
            return bool(self._last) and mount.startswith(("/", "["))  # further mount points of the device above
        depth = len(line) - len(_BRANCH.sub("", line, count=1))
        is_mapped = cells.get("TYPE", "") in {"lvm", "mpath", "crypt", "dm", "thin"}
        name = (device_numbered(cells.get("MAJ:MIN", ""), kernel) if is_mapped else None) or kernel
        if name != kernel:
            self.layout.rename(kernel, name)
        while self._above and self._above[-1][0] >= depth:
            self._above.pop()
        device = self.layout.device(name)
        if self._above and self._above[-1][1] not in device.below:
            device.below.append(self._above[-1][1])
        self._above.append((depth, name))
        self._last = name
        device.facts |= _lsblk_facts(cells)
        if mount.startswith("/"):
            facts = {"filesystem": cells["FSTYPE"]} if cells.get("FSTYPE") else {}
            self._mounted(name, mount, **facts)
        return True

    def _cells(self, line: str) -> dict[str, str]:
        """The text under each heading; a word between two headings belongs to the one before it."""
        cells: dict[str, list[str]] = {}
        for match in re.finditer(r"\S+", line):
            start, end = match.span()
            under = [name for name, first, past in self._columns if start < past and end > first]
            before = [name for name, first, _ in self._columns if first <= start]
            name = under[0] if under else before[-1] if before else self._columns[0][0]
            cells.setdefault(name, []).append(match[0])
        return {name: " ".join(words) for name, words in cells.items()}

    def _df(self, line: str) -> bool:
        line, self._pending = f"{self._pending} {line.strip()}".strip(), ""
        match = _DF_ROW.fullmatch(line)
        if match is None:
            is_begin = " " not in line and line.startswith("/")  # df breaks the line behind a long name
            self._pending = line if is_begin else ""
            return is_begin
        if match[1].startswith("/dev/"):
            facts: dict[str, Any] = {"filesystem": match[2]} if match[2] else {}
            free = _free_pct(match[4], match[5], match[6])
            if free is not None:
                facts["filesystem_free_pct"] = free
            self._mounted(match[1], match[7], **facts)
        return True

    def _pvs(self, line: str) -> bool:
        return _PV_ROW.fullmatch(line) is not None

    def _lvs(self, line: str) -> bool:
        match = _LV_ROW.fullmatch(line)
        if match is None:
            return False
        if not match[1].startswith("["):
            self.layout.device(mapper_name(match[2], match[1])).facts["size_gib"] = _gib(match[3])
        return True

    def _mounted(self, path: str, point: str, **facts: Any) -> None:  # noqa: ANN401 - settings of any type
        """Say where a device is mounted; of several mount points the shortest counts: others are bound below it."""
        known = self.layout.device(path).facts
        is_kept = "mount" not in known or len(point) <= len(known["mount"])
        options = facts.pop("mount_options", None)
        known |= facts
        if is_kept:
            known["mount"] = point
            known |= {} if options is None else {"mount_options": options}

    def error(self, place: str, problem: str) -> InputError:
        """The error that names a place and what was read there."""
        return InputError(
            f"{self.source.name}{place}",
            found=problem,
            expected="rows of lsblk, df, mount, dmsetup ls --tree, multipath -ll, pvs or lvs",
            advice=f"Record it again: {META.record}",
        )


def _lsblk_facts(cells: dict[str, str]) -> dict[str, Any]:
    facts: dict[str, Any] = {}
    if cells.get("SIZE"):
        facts["size_gib"] = _gib(cells["SIZE"])
    if cells.get("ROTA") in {"0", "1"}:
        facts["rotational"] = cells["ROTA"] == "1"
    if cells.get("SCHED"):
        facts["scheduler"] = cells["SCHED"]
    for column, setting in (("RA", "read_ahead_kib"), ("RQ-SIZE", "nr_requests_count")):
        if cells.get(column, "").isdigit() and len(cells[column]) < 10:
            facts[setting] = int(cells[column])
    return facts


def _gib(text: str) -> float | None:
    """A size as GiB; without a letter it is bytes (``lsblk -b``). None when it is none."""
    size = bytes_of(text.replace(",", ".").upper().removeprefix("<")) / _GIB
    return size if math.isfinite(size) else None


def _free_pct(used: str, available: str, percent: str) -> float | None:
    """What may still be filled: exact from blocks, else 100 less the percentage, which is rounded up."""
    if used.isdigit() and available.isdigit() and len(used) > 3 and int(used) + int(available):
        return round(100.0 * int(available) / (int(used) + int(available)), 2)
    number = percent.removesuffix("%")
    return max(100.0 - int(number), 0.0) if number.isdigit() else None
