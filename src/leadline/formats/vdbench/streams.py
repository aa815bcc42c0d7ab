"""One workload definition of a vdbench parameter file (``wd`` or ``fwd``) as a stream; every parameter leaves a note.

Source: Vdbench Users Guide 5.04.07, SD, WD, FSD, FWD and RD parameters; their defaults: rdpct=100, seekpct=100,
xfersize=4k (128k of files), threads=8 of a disk and 1 of a file workload, arrivals exponential.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from leadline.formats.translation import OIO_MAX, Fate, Notes, block_mix, block_range
from leadline.formats.vdbench.options import NO_DISK
from leadline.formats.vdbench.parameters import Definition, Parameter

BLOCK, FILE_BLOCK = 4096, 128 * 1024
BLOCK_MAX = 2**30
DISK_THREADS, FILE_THREADS = 8, 1
PERCENT_MAX = 200.0  # Source: WD parameters, range: larger numbers are bytes
SIZE_MAX = 2.0**62
_DIRECT = ("o_direct", "directio", "direct")
_SYNC = ("o_sync", "o_dsync")
# Devices that no page cache is before, whatever the flags.
_RAW = ("/dev/rdsk/", "/dev/rmt/", "/dev/rhdisk", "/dev/rdisk", "\\\\.\\")


@dataclass(frozen=True, slots=True)
class Part:
    """What a workload definition has to do with the others of its run.

    Attributes:
        run: the run it is part of.
        disks: the ``sd`` or ``fsd`` it works on.
        share: of all requests, 0 to 1.
        loads: how many definitions share each of the disks, by name, as the sum of their shares.
        rate: requests per second of the run in all; None when as fast as it goes.
    """

    run: Definition
    disks: tuple[Definition, ...]
    share: float
    loads: dict[str, float]
    rate: float | None


@dataclass(slots=True)
class TranslatedDefinition:
    """What a definition became: a stream, whether the page cache is used, or why it is left out."""

    stream: dict[str, Any]
    buffered: bool = False
    dropped: str = ""


def read_stream(load: Definition, part: Part, notes: Notes) -> TranslatedDefinition:
    """The stream of a definition.

    Raises:
        InputError: a value is none that vdbench takes; with line and column.
    """
    return _Reader(load, part, notes).read()


class _Reader:
    """Reads the parameters of one definition and of its run; each leaves a note of what became of it."""

    def __init__(self, load: Definition, part: Part, notes: Notes) -> None:
        self.load = load
        self.part = part
        self.notes = notes
        self.draft = TranslatedDefinition({})
        self.is_files = load.kind == "fwd"

    def read(self) -> TranslatedDefinition:
        """The definition as a stream."""
        self._operation()
        if not self.draft.dropped:
            self._directions()
            self._places()
            self._blocks()
            self._depth()
            self._working_set()
            self._rates()
            self._flags()
        return self.draft

    def _note(self, option: Parameter, fate: Fate, text: str) -> None:
        self.notes.add(option.at, fate, text)

    def _pick(self, *names: str) -> Parameter | None:
        """Return a parameter by any of its names; that of the run counts before that of the definition."""
        run_parameters = self.part.run.parameters
        given = [
            run_parameters[spelling]
            for name in names
            for spelling in (f"for{name}", name)
            if spelling in run_parameters
        ]
        given += [self.load.parameters[name] for name in names if name in self.load.parameters]
        for other in given[1:]:
            self._note(other, Fate.KEPT, f"no effect: {given[0].written} of line {given[0].line} holds")
        return given[0] if given else None

    def _first(self, option: Parameter) -> tuple[float, str]:
        """The first of its numbers, and what to say of the others: each would be a separate run."""
        numbers = option.numbers()
        rest = "" if len(numbers) < 2 else f"; the first of {len(numbers)}: each value is a separate run"
        return option.number(), rest

    def _percent(self, option: Parameter) -> tuple[float, str]:
        value, rest = self._first(option)
        if not 0 <= value <= 100:
            raise option.wrong("0 to 100")
        return value, rest

    def _operation(self) -> None:
        option = self._pick("operations", "operation") if self.is_files else None
        self.draft.stream["read_pct"] = 100.0
        if option is None:
            return
        words = [value.lower() for value in option.values]
        asked = [word for word in words if word in ("read", "write")]
        unknown = [word for word in words if word not in (*NO_DISK, "read", "write")]
        if unknown or not words:
            raise option.wrong("an operation, as read or write")
        if not asked:
            self.draft.dropped = f"{option.written}={words[0]} does no reads and writes"
            self._note(option, Fate.LOST, "no reads and writes of files")
            return
        self.draft.stream["read_pct"] = 100.0 if asked[0] == "read" else 0.0
        text = f"read_pct: {self.draft.stream['read_pct']:g}"
        rest = f"; the first of {len(words)}: each value is a separate run" if len(words) > 1 else ""
        self._note(option, Fate.NEAR if rest else Fate.KEPT, text + rest)

    def _directions(self) -> None:
        reads, writes = self._pick("rdpct", "readpct"), self._pick("wrpct", "writepct")
        option = reads or writes
        if option is None:
            return
        value, rest = self._percent(option)
        share = value if reads is not None else 100.0 - value
        self.draft.stream["read_pct"] = share
        self._note(option, Fate.NEAR if rest else Fate.KEPT, f"read_pct: {share:g}{rest}")
        if reads is not None and writes is not None:
            self._note(writes, Fate.KEPT, f"no effect: {reads.written} is given too")

    def _places(self) -> None:
        option = self._pick("fileio") if self.is_files else self._pick("seekpct")
        self.draft.stream["random_pct"] = 0.0 if self.is_files else 100.0
        if option is None:
            return
        word, rest = option.text, ""
        if word.startswith("rand"):
            share = 100.0
        elif word.startswith("seq"):
            share = 0.0
        elif word == "eof":
            share, rest = 0.0, "; begins again at the end instead of stopping there"
        elif self.is_files:
            raise option.wrong("random or sequential")
        else:
            share, rest = self._percent(option)
        self.draft.stream["random_pct"] = share
        self._note(option, Fate.NEAR if rest else Fate.KEPT, f"random_pct: {share:g}{rest}")

    def _blocks(self) -> None:
        option = self._pick("xfersizes", "xfersize")
        if option is None:
            self.draft.stream["block"] = {FILE_BLOCK if self.is_files else BLOCK: 100.0}
            return
        numbers = option.numbers()
        rest, listed = "", True
        if option.name.startswith("for") or len(numbers) == 1:
            value, rest = self._first(option)
            shares = {int(value): 100.0}
        elif len(numbers) == 3 and numbers[2] > 100:
            least, most, step = (int(number) for number in numbers)
            if not 0 < least <= most <= BLOCK_MAX:
                raise option.wrong("a range that rises: (least,most,step)")
            shares, listed = block_range(least, most, step)
        else:
            shares = self._shares(option, numbers)
        if not shares or any(not 0 < size <= BLOCK_MAX for size in shares):
            raise option.wrong("sizes of 1 byte to 1 GiB")
        mix, whole = block_mix(shares)
        self.draft.stream["block"] = mix
        text = "block: " + ", ".join(f"{size} {part:g} %" for size, part in list(mix.items())[:6])
        text += (", …" if len(mix) > 6 else "") + rest
        text += ("" if whole else "; rounded up to 512 bytes") + ("" if listed else f"; {len(mix)} sizes of the range")
        self._note(option, Fate.KEPT if whole and listed and not rest else Fate.NEAR, text)

    def _shares(self, option: Parameter, numbers: list[float]) -> dict[int, float]:
        if len(numbers) % 2 or abs(sum(numbers[1::2]) - 100.0) > 1.0:
            raise option.wrong("a size, (size,share,…) whose shares are 100 in all, or (least,most,step)")
        shares: dict[int, float] = {}
        for size, share in zip(numbers[::2], numbers[1::2], strict=True):
            shares[int(size)] = shares.get(int(size), 0.0) + share
        return {size: share for size, share in shares.items() if share > 0}

    def _depth(self) -> None:
        option = self._pick("threads")
        if self.is_files:
            self._threads(FILE_THREADS if option is None else self._first(option)[0], option, 1)
            return
        of_disks = [disk.parameters["threads"] for disk in self.part.disks if "threads" in disk.parameters]
        for threads in of_disks:
            if option is not None:
                self._note(threads, Fate.KEPT, f"no effect: {option.written} of line {option.line} holds")
        total = 0.0
        for disk in self.part.disks:
            asked = option or disk.parameters.get("threads")
            each = DISK_THREADS if asked is None else self._first(asked)[0]
            together = self.part.loads.get(disk.name, self.part.share) or 1.0
            total += each * disk_count(disk) * self.part.share / together
        self._threads(total or DISK_THREADS, option or (of_disks[0] if of_disks else None), len(self.part.disks))
        for threads in of_disks:
            if option is None:
                rest = self._first(threads)[1]
                self._note(threads, Fate.NEAR if rest else Fate.KEPT, f"part of oio{rest}")

    def _threads(self, asked: float, option: Parameter | None, disk_count: int) -> None:
        if asked < 0:
            raise (option.wrong("1 or more") if option is not None else ValueError(asked))
        oio = min(max(round(asked), 1), OIO_MAX)
        self.draft.stream["oio"] = oio
        if option is not None:
            rest = self._first(option)[1]
            text = f"oio: {oio}" + (f" of {disk_count} disks together" if disk_count > 1 else "") + rest
            self._note(option, Fate.NEAR if rest or asked > OIO_MAX else Fate.KEPT, text)

    def _working_set(self) -> None:
        sizes = [fsd_bytes(disk, self.notes) if self.is_files else sd_bytes(disk) for disk in self.part.disks]
        known = [size for size in sizes if size is not None]
        ranges = [
            given for given in (self._pick("range"), *(d.parameters.get("range") for d in self.part.disks)) if given
        ]
        if not sizes or len(known) < len(sizes):
            where = self.part.disks[0].at if self.part.disks else self.load.at
            self.notes.add(where, Fate.LOST, "no size: vdbench takes all that is there; here 1 GiB, or --set-size")
            for option in ranges:
                self._note(option, Fate.LOST, "a part of a size that is not known")
            return
        whole = sum(known)
        if ranges:
            whole = self._ranged(ranges[0], whole)
            for option in ranges[1:]:
                self._note(option, Fate.LOST, f"the range of line {ranges[0].line} holds")
        if not 0 < whole <= SIZE_MAX:
            raise self.part.disks[0].wrong("sizes above 0 whose sum is below 4 EiB")
        self.draft.stream["working_set"] = int(whole)
        many = f" of {len(sizes)} disks together" if len(sizes) > 1 else ""
        for disk in self.part.disks:
            for name in ("size", "sizes", "workingsetsize", "wss", "totalsize", "total_size"):
                if name in disk.parameters:
                    self._note(disk.parameters[name], Fate.KEPT, f"working_set: {int(whole)}{many}")

    def _ranged(self, option: Parameter, whole: float) -> float:
        numbers = option.numbers()
        if len(numbers) != 2 or not 0 <= numbers[0] < numbers[1]:
            raise option.wrong("(from,to) in percent or bytes")
        least, most = numbers
        size = whole * (most - least) / 100.0 if most <= PERCENT_MAX else most - least
        self._note(option, Fate.NEAR, f"working_set: {int(size)}, from the start of the target instead of {least:g}")
        return size

    def _rates(self) -> None:
        asked = self.load.parameters.get("iorate") or self.load.parameters.get("fwdrate")
        total = self.part.rate
        rate = None if total is None else total * self.part.share
        if asked is not None:
            rate = None if asked.text == "max" else asked.number()
            self._note(asked, Fate.KEPT, "as fast as it goes" if rate is None else f"rate_iops: {rate:g}")
        if rate is not None and rate > 0:
            share = self.draft.stream["read_pct"] / 100.0
            self.draft.stream["rate_iops"] = {"read": rate * share, "write": rate * (1.0 - share)}
            self.draft.stream["arrivals"] = self._arrivals()
        skew = self.load.parameters.get("skew")
        if skew is not None:
            text = f"rate_iops: {rate:g}" if rate else "a share of the outstanding I/O: streams are not held to shares"
            small = any(0 < part < 1 for part in self.draft.stream.get("rate_iops", {}).values())
            text += "; fio offers one a second or more in each direction" if small else ""
            exact = not small and (rate or self.part.share == 1.0)
            self._note(skew, Fate.KEPT if exact else Fate.NEAR, text)

    def _arrivals(self) -> str:
        option = self.part.run.parameters.get("distribution")
        is_even = option is not None and option.text.startswith(("det", "uni", "d", "u"))
        if option is not None:
            exact = not option.text.startswith("u")
            text = f"arrivals: {'even' if is_even else 'poisson'}"
            self._note(option, Fate.KEPT if exact else Fate.NEAR, text)
        return "even" if is_even else "poisson"

    def _flags(self) -> None:
        disks = self.part.disks
        given = [self._pick("openflags"), *(disk.parameters.get("openflags") for disk in disks)]
        option = next((openflags for openflags in given if openflags is not None), None)
        words = [] if option is None else [value.lower() for value in option.values]
        luns = [disk.parameters[name].text for disk in disks for name in ("lun",) if name in disk.parameters]
        is_raw = bool(luns) and all(lun.startswith(_RAW) for lun in luns)
        self.draft.buffered = not is_raw and not any(word in _DIRECT for word in words)
        synced = any(word in _SYNC for word in words) and self.draft.stream["read_pct"] < 100.0
        if synced:
            self.draft.stream["sync_every"] = 1
        known = all(word in (*_DIRECT, *_SYNC) for word in words)
        text = f"buffered: {str(self.draft.buffered).lower()}" + ("; sync_every: 1, by fdatasync" if synced else "")
        for openflags in given:
            if openflags is not None:
                self._note(openflags, Fate.NEAR if synced or not known else Fate.KEPT, text)


def disk_count(disk: Definition) -> int:
    """How many disks a definition with ``count=(first,count)`` stands for."""
    option = disk.parameters.get("count")
    if option is None or disk.kind != "sd":
        return 1
    numbers = option.numbers()
    if len(numbers) != 2 or not 1 <= numbers[1] <= OIO_MAX:
        raise option.wrong("(first,count)")
    return int(numbers[1])


def sd_bytes(disk: Definition) -> float | None:
    """The size of a storage definition; None where all that is there is used."""
    option = disk.parameters.get("size")
    return None if option is None else option.number() * disk_count(disk)


def fsd_bytes(disk: Definition, notes: Notes) -> float | None:
    """Bytes of the files of a file system definition, or of its working set; None where it gives no sizes."""
    parameters = disk.parameters
    used = [parameters[name] for name in ("workingsetsize", "wss", "totalsize", "total_size") if name in parameters]
    if used:
        return min(option.number() for option in used)
    sizes, files = parameters.get("sizes"), parameters.get("files")
    if sizes is None or files is None:
        return None
    numbers = sizes.numbers()
    parts = [(numbers[0], 100.0)] if len(numbers) == 1 else list(zip(numbers[::2], numbers[1::2], strict=False))
    mean = sum(size * share for size, share in parts) / 100.0
    depth, width = (parameters[name].number() if name in parameters else 1.0 for name in ("depth", "width"))
    if not (0 < depth <= 64 and 0 < width <= 1e6):
        raise (parameters.get("depth") or sizes).wrong("a depth of 1 to 64 and a width of 1 to a million")
    levels = range(1, int(depth) + 1)
    folders = width ** int(depth)
    option = parameters.get("distribution")
    if option is not None:
        notes.add(option.at, Fate.KEPT, "part of working_set")
        folders = sum(width**level for level in levels) if option.text == "all" else folders
    total_bytes = mean * files.number() * folders
    if not 0 < total_bytes <= SIZE_MAX:
        raise sizes.wrong("files of less than 4 EiB in all")
    return total_bytes
