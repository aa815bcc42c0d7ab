"""One job of a fio job file as a stream of a workload; every option leaves a note of what became of it.

Source: fio HOWTO, Job file parameters; fio's own defaults: rw=read, bs=4k, iodepth=1, ioengine=psync, direct=0. That a
single ``rate_iops`` holds for reads and for writes each, and what ``thinktime`` counts, was measured with fio 3.33.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from leadline.formats.fio.jobs import FioJob, Option
from leadline.formats.fio.numbers import NotANumberError, per_direction, percent_of, plain_number, seconds, span
from leadline.formats.fio.options import ASYNCHRONOUS, NO_DISK, OTHERS, SYNCHRONOUS, UNKNOWN
from leadline.formats.translation import JOBS_MAX, OIO_MAX, Fate, Notes, block_mix, block_range, wrong

BLOCK = 4096  # Source: HOWTO, blocksize
BLOCK_MAX = 2**30
RWMIX = 50.0  # Source: HOWTO, rwmixread
_WAYS = {"read": 100.0, "write": 0.0, "rw": None, "readwrite": None}
_SHARED = ("filename", "uri", "rbdname")
Value = TypeVar("Value")


@dataclass(slots=True)
class TranslatedJob:
    """What a job became: a stream, what it asks for all streams, and its times in seconds."""

    stream: dict[str, Any] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)
    runtime_s: float | None = None
    ramp_s: float | None = None
    dropped: str = ""


def read_stream(job: FioJob, notes: Notes) -> TranslatedJob:
    """The stream of a job, or why there is none.

    Raises:
        InputError: a value is none that fio takes; with line and column.
    """
    return _JobReader(job, notes).read()


def _percents(text: str) -> tuple[float, float]:
    read, write = (float(plain_number(part)) if part else 100.0 for part in per_direction(text))
    if not (0 <= read <= 100 and 0 <= write <= 100):
        raise NotANumberError(text)
    return read, write


def _split(text: str, kb_base: int) -> dict[int, float]:
    """Shares by size of ``4k/60:64k/40``; those left out divide the rest evenly; the largest takes what is missing."""
    shares: dict[int, float] = {}
    open_sizes = []
    for part in text.split(":"):
        size, mark, share = part.partition("/")
        size_bytes = plain_number(size, kb_base)
        if mark and share.strip():
            shares[size_bytes] = shares.get(size_bytes, 0.0) + plain_number(share)
        else:
            open_sizes.append(size_bytes)
    rest = 100.0 - sum(shares.values())
    if rest < 0:
        raise NotANumberError(text)
    for size_bytes in open_sizes:
        shares[size_bytes] = shares.get(size_bytes, 0.0) + rest / len(open_sizes)
    if not open_sizes and rest > 0:
        shares[max(shares, key=lambda size_bytes: shares[size_bytes])] += rest
    return shares


def _largest(text: str, kb_base: int) -> int:
    """The larger end of a range of sizes, or the size."""
    return span(text, kb_base)[1] if re.search(r"[^-:][-:]", text) else plain_number(text, kb_base)


def _per_s(mix: dict[int, float], *, by_count: bool, poisson: bool) -> float:
    """Requests per second that a rate of one offers, in requests or in bytes.

    Source: fio 3.33, measured, and thread_options: rates are kept in bytes per second of the smallest size; a Poisson
    process divides by that size, a linear one waits for the bytes that were really done.
    """
    least, mean = min(mix), sum(size * share for size, share in mix.items()) / sum(mix.values())
    done = least if poisson else mean
    return least / done if by_count else 1.0 / done


class _JobReader:
    """Reads the options of one job; each leaves a note of what became of it."""

    def __init__(self, job: FioJob, notes: Notes) -> None:
        self.job = job
        self.notes = notes
        self.kb_base = 1024
        self.draft = TranslatedJob()
        self.done: set[str] = set()
        self.sizes: Option | None = None
        self.mixes: list[dict[int, float]] = [{BLOCK: 100.0}, {BLOCK: 100.0}]  # of reads and of writes
        self.is_listed = True

    def read(self) -> TranslatedJob:
        """The job as a stream."""
        self.kb_base = self._int("kb_base", 1024, quiet=True)
        self._dropped()
        self._directions()
        self._sizes_asked()
        self._depth()
        self._working_set()
        self._rates()
        self._blocks()
        self._pauses()
        self._flushes()
        self._settings()
        self._times()
        for name, option in self.job.options.items():
            if name not in self.done and not self.notes.has(option.at):
                fate, text = OTHERS.get(name, UNKNOWN)
                self.notes.add(option.at, fate, text)
        return self.draft

    def _take(self, name: str) -> Option | None:
        self.done.add(name)
        return self.job.options.get(name)

    def _note(self, option: Option, fate: Fate, text: str) -> None:
        self.notes.add(option.at, fate, text)

    def _parsed(self, option: Option, read: Callable[[str], Value], expected: str) -> Value:
        try:
            return read(option.value)
        except NotANumberError as error:
            raise wrong(option.where, f"{option.written}={option.value[:40]}", expected) from error

    def _number(self, option: Option) -> int:
        return self._parsed(option, lambda text: plain_number(text, self.kb_base), "a whole number, as 16, 8k or 4g")

    def _int(self, name: str, otherwise: int, *, quiet: bool = False) -> int:
        option = self.job.options.get(name) if quiet else self._take(name)
        return otherwise if option is None else self._number(option)

    def _flag(self, name: str) -> bool | None:
        """Whether a switch is on; None when it is not there."""
        option = self._take(name)
        return None if option is None else not option.value or self._number(option) != 0

    def _seconds(self, option: Option, unit_s: float = 1.0) -> float:
        duration_s = self._parsed(option, lambda text: seconds(text, unit_s), "a whole time, as 30s, 500us or 10m")
        if duration_s < 0:
            raise wrong(option.where, f"{option.written}={option.value[:40]}", "a time that is not negative")
        return duration_s

    def _dropped(self) -> None:
        log, engine, rw = (self.job.options.get(name) for name in ("read_iolog", "ioengine", "rw"))
        if log is not None:
            self.draft.dropped = "replays an I/O log"
        elif engine is not None and engine.value in NO_DISK:
            self.draft.dropped = f"ioengine={engine.value} does no reads and writes of a disk"
        elif rw is not None and "trim" in rw.value:
            self.draft.dropped = "trims are no part of a workload"

    def _directions(self) -> None:
        rw = self._take("rw")
        word, _, every = ("read" if rw is None else rw.value).partition(":")
        if self.draft.dropped:
            self.draft.stream["read_pct"] = 100.0
            return
        kind = word.removeprefix("rand")
        if kind not in _WAYS or (word.startswith("rand") and kind == "readwrite"):
            raise wrong(rw.where if rw else "", f"rw={word[:40]}", "read, write, rw, randread, randwrite or randrw")
        share = _WAYS[kind]
        if share is None:
            share = self._mix()
        self.draft.stream |= {"read_pct": share, "random_pct": 100.0 if word.startswith("rand") else 0.0}
        if rw is not None:
            self._note(rw, *self._sequencer(word, every))
        self._randomness(word)

    def _mix(self) -> float:
        """The read share of a mixed load: the later of rwmixread and rwmixwrite."""
        given = [o for name, o in self.job.options.items() if name in ("rwmixread", "rwmixwrite")]
        share = float(RWMIX)
        for option in sorted(given, key=lambda o: o.line):
            self.done.add(option.name)
            value = self._number(option)
            if not 0 <= value <= 100:
                raise wrong(option.where, f"{option.written}={option.value[:40]}", "0 to 100")
            share = float(value if option.name == "rwmixread" else 100 - value)
            self._note(option, Fate.KEPT, f"read_pct: {share:g}")
        return share

    def _sequencer(self, word: str, every: str) -> tuple[Fate, str]:
        share = self.draft.stream["read_pct"]
        text = f"read_pct: {share:g}, {'random' if word.startswith('rand') else 'sequential'}"
        if not every:
            return Fate.KEPT, text
        if not word.startswith("rand"):
            return Fate.NEAR, f"{text}; without the gaps of {every[:20]}"
        try:
            count = plain_number(every, self.kb_base)
        except NotANumberError:
            count = 1
        self.draft.stream["random_pct"] = 100.0 / max(count, 1)
        return Fate.NEAR, f"{text}; every {max(count, 1)}th request at a new place on average"

    def _randomness(self, word: str) -> None:
        option = self._take("percentage_random")
        if option is not None:
            read, write = self._parsed(option, _percents, "0 to 100")
            if not word.startswith("rand"):
                self._note(option, Fate.KEPT, "no effect: the load is sequential")
            else:
                share = self.draft.stream["read_pct"] / 100.0
                self.draft.stream["random_pct"] = read * share + write * (1.0 - share)
                same = read == write or share in (0.0, 1.0)
                text = f"random_pct: {self.draft.stream['random_pct']:g}"
                self._note(option, Fate.KEPT if same else Fate.NEAR, text if same else f"{text} in both directions")
        spread = self._take("random_distribution")
        if spread is not None:
            text = "requests are anywhere in the working set with the same probability: no hot part"
            uniform = spread.value == "random"
            self._note(spread, Fate.KEPT if uniform else Fate.LOST, "uniform" if uniform else text)

    def _sizes_asked(self) -> None:
        given = [self._take(name) for name in ("bs", "bsrange", "bssplit")]
        option = next((candidate for candidate in reversed(given) if candidate is not None), None)
        for other in given:
            if other is not None and other is not option and option is not None:
                self._note(other, Fate.KEPT, f"no effect: {option.written} is given too")
        if option is not None:
            self.sizes = option
            mixes = [self._sizes(option, text) for text in per_direction(option.value)]
            self.mixes = [mix for mix, _ in mixes]
            self.is_listed = all(listed for _, listed in mixes)

    def _blocks(self) -> None:
        """One mix of sizes of both directions, weighted by the share of each."""
        share, mixes, option = self.draft.stream["read_pct"] / 100.0, self.mixes, self.sizes
        both: dict[int, float] = {}
        for mix, weight in zip(mixes, (share, 1.0 - share), strict=True):
            for size, part in mix.items():
                both[size] = both.get(size, 0.0) + part * weight
        mix, whole = block_mix(both)
        self.draft.stream["block"] = mix
        if option is None:
            return
        text = "block: " + ", ".join(f"{size} {part:g} %" for size, part in list(mix.items())[:6])
        text += ", …" if len(mix) > 6 else ""
        if mixes[0] != mixes[1] and 0.0 < share < 1.0:
            text += "; the same mix for reads and writes"
        elif self.is_listed and whole:
            self._note(option, Fate.KEPT, text)
            return
        text += "" if whole else "; rounded up to 512 bytes"
        self._note(option, Fate.NEAR, text if self.is_listed else f"{text}; {len(mix)} sizes of the range")

    def _sizes(self, option: Option, text: str) -> tuple[dict[int, float], bool]:
        """Shares by size of one direction, and whether all sizes are in them."""
        if not text:
            return {BLOCK: 100.0}, True
        try:
            if option.name == "bs":
                shares, listed = {plain_number(text, self.kb_base): 100.0}, True
            elif option.name == "bsrange":
                least, most = span(text, self.kb_base)
                shares, listed = block_range(least, most, least)
            else:
                shares, listed = _split(text, self.kb_base), True
        except NotANumberError as error:
            raise wrong(
                option.where, f"{option.written}={option.value[:60]}", "sizes as 8k, shares as 8k/60"
            ) from error
        if any(not 0 < size <= 2**30 for size in shares) or not shares:
            raise wrong(option.where, f"{option.written}={option.value[:60]}", "sizes of 1 byte to 1 GiB")
        return shares, listed

    def _depth(self) -> None:
        engine, depth = self._take("ioengine"), self._take("iodepth")
        jobs = min(max(self._int("numjobs", 1), 1), JOBS_MAX)
        numjobs = self.job.options.get("numjobs")
        if numjobs is not None:
            self._note(numjobs, Fate.KEPT if self._number(numjobs) == jobs else Fate.NEAR, f"jobs: {jobs}")
        name = "psync" if engine is None else engine.value
        if engine is not None:
            known = name in SYNCHRONOUS or name in ASYNCHRONOUS
            text = (
                "chosen by what is there: io_uring, libaio or psync"
                if known
                else "the target's kind chooses the engine"
            )
            self._note(engine, Fate.NEAR if known else Fate.LOST, text)
        asked = 1 if depth is None else self._number(depth)
        if asked < 1 and depth is not None:
            raise wrong(depth.where, f"{depth.written}={depth.value[:40]}", "1 or more")
        oio = 1 if name in SYNCHRONOUS else min(asked, OIO_MAX)
        if depth is not None:
            text = f"oio: {oio}" + (f": ioengine={name} has one at a time" if oio == 1 < asked else "")
            self._note(depth, Fate.KEPT if asked <= OIO_MAX else Fate.NEAR, text)
        self.draft.stream |= {"oio": oio, "jobs": jobs}

    def _working_set(self) -> None:
        size, filesize = self._take("size"), self._take("filesize")
        option = filesize or size
        if option is None or percent_of(option.value) is not None:
            at = option.at if option else (self.job.file, self.job.line, f"[{self.job.name}]")
            text = "a share of what is there" if option else "no size: fio takes all that is there"
            self.notes.add(at, Fate.LOST, f"{text}; here 1 GiB, or what --set-size says")
            return
        region = self._parsed(option, lambda text: _largest(text, self.kb_base), "a size, as 512m or 10g")
        if region <= 0:
            raise wrong(option.where, f"{option.written}={option.value[:40]}", "a size above 0")
        if option is filesize:
            region *= max(self._int("nrfiles", 1, quiet=True), 1)
            if size is not None:
                self._note(size, Fate.LOST, "an amount to do: the working set is filesize")
        jobs = self.draft.stream["jobs"]
        shared = any(name in self.job.options for name in _SHARED)
        whole = region if shared else region * jobs
        self.draft.stream["working_set"] = whole
        if whole != region:
            self._note(option, Fate.NEAR, f"working_set: {whole}: one file of all {jobs} jobs instead of {jobs} files")
        else:
            self._note(option, Fate.KEPT, f"working_set: {whole}")

    def _rates(self) -> None:
        by_bytes, by_count, process = (self._take(name) for name in ("rate", "rate_iops", "rate_process"))
        option = by_count or by_bytes
        if process is not None:
            self._note(process, Fate.KEPT, "arrivals" if option else "no effect: there is no rate")
        if option is None:
            return
        if option is not by_bytes and by_bytes is not None:
            self._note(by_bytes, Fate.LOST, f"{option.written} is given too")
        parts = self._parsed(option, self._each_direction, "rates, as 200 or 1m,500k")
        is_poisson = process is not None and process.value == "poisson"
        share, jobs = self.draft.stream["read_pct"], self.draft.stream["jobs"]
        read, write = (
            jobs * part * _per_s(mix, by_count=option is by_count, poisson=is_poisson) if on else 0.0
            for part, mix, on in zip(parts, self.mixes, (share > 0, share < 100), strict=True)
        )
        if read or write:
            arrivals = "poisson" if is_poisson else "even"
            self.draft.stream |= {"rate_iops": {"read": read, "write": write}, "arrivals": arrivals}
        text = f"rate_iops: read {read:g}, write {write:g} of all jobs"
        single = all(len(mix) == 1 for mix in self.mixes)
        exact = single or (option is by_count and is_poisson)
        self._note(option, Fate.KEPT if exact else Fate.NEAR, text if exact else f"{text}, as fio counts mixed sizes")
        if read and write:
            self._shared_by_rates(100.0 * read / (read + write))

    def _shared_by_rates(self, share: float) -> None:
        """Where each direction has its rate, the rates are the read share, whatever rwmixread says."""
        self.draft.stream["read_pct"] = share
        for name in ("rwmixread", "rwmixwrite"):
            mix = self.job.options.get(name)
            if mix is not None:
                self._note(mix, Fate.KEPT, f"the rates decide: {share:g}")

    def _each_direction(self, text: str) -> tuple[int, int]:
        read, write = (max(plain_number(part, self.kb_base), 0) if part else 0 for part in per_direction(text))
        return read, write

    def _pauses(self) -> None:
        think, busy, blocks = (self._take(name) for name in ("thinktime", "thinktime_iotime", "thinktime_blocks"))
        if think is None:
            for option in (busy, blocks):
                if option is not None:
                    self._note(option, Fate.KEPT, "no effect without thinktime")
            return
        pause_s = self._seconds(think, 1e-6)
        busy_s = 0.0 if busy is None else self._seconds(busy)
        count = 1 if blocks is None else max(self._number(blocks), 1)
        if pause_s <= 0:
            self._note(think, Fate.KEPT, "none")
        elif busy is not None and busy_s > 0:
            self.draft.stream["burst"] = {"on_s": busy_s, "off_s": pause_s}
            self._note(think, Fate.KEPT, f"burst.off_s: {pause_s:g}")
            self._note(busy, Fate.KEPT, f"burst.on_s: {busy_s:g}")
        else:
            self.draft.stream["think_time_s"] = pause_s / count
            text = f"think_time_s: {pause_s / count:g}"
            self._note(think, Fate.KEPT if count == 1 else Fate.NEAR, text)
        if blocks is not None:
            spread = count > 1 and "think_time_s" in self.draft.stream
            text = f"the pause after {count} requests is spread over them" if spread else "pauses go by time"
            self._note(blocks, Fate.NEAR if spread else Fate.KEPT if count == 1 else Fate.LOST, text)

    def _flushes(self) -> None:
        for name in ("fdatasync", "fsync", "sync"):
            option = self._take(name)
            if option is None:
                continue
            every = 1 if name == "sync" and option.value in ("sync", "dsync") else 0
            if name != "sync" or option.value.isdecimal():
                every = self._number(option)
            if every < 1 or self.draft.stream["read_pct"] == 100.0:
                self._note(option, Fate.KEPT, "no effect: nothing is flushed")
                continue
            every = 1 if name == "sync" else every
            self.draft.stream.setdefault("sync_every", every)
            exact = name == "fdatasync"
            text = f"sync_every: {every}" + ("" if exact else ", by fdatasync")
            self._note(option, Fate.KEPT if exact else Fate.NEAR, text)

    def _settings(self) -> None:
        direct, buffered = self._flag("direct"), self._flag("buffered")
        is_buffered = not direct if direct is not None else buffered is not False
        self.draft.settings["buffered"] = is_buffered
        for name in ("direct", "buffered"):
            option = self.job.options.get(name)
            if option is not None:
                self._note(option, Fate.KEPT, f"buffered: {str(is_buffered).lower()}")
        self._verify()
        for name, key in (("buffer_compress_percentage", "compress_pct"), ("dedupe_percentage", "dedupe_pct")):
            option = self._take(name)
            if option is not None:
                value = min(max(self._number(option), 0), 100)
                self.draft.settings[key] = float(value)
                self._note(option, Fate.KEPT, f"{key}: {value}")
        zero = self.job.options.get("zero_buffers")
        if zero is not None and self._flag("zero_buffers"):
            self.draft.settings["compress_pct"] = 100.0
            self._note(zero, Fate.NEAR, "compress_pct: 100")

    def _verify(self) -> None:
        verify, checks = self._take("verify"), self._flag("do_verify")
        on = verify is not None and verify.value not in ("0", "null") and checks is not False
        self.draft.settings["verify"] = on
        text = f"verify: {str(on).lower()}"
        if verify is not None:
            exact = not on or verify.value.startswith("crc32c")
            self._note(verify, Fate.KEPT if exact else Fate.NEAR, text if exact else f"{text}, by crc32c")
        if checks is not None:
            self._note(self.job.options["do_verify"], Fate.KEPT, text)

    def _times(self) -> None:
        runtime, ramp = self._take("runtime"), self._take("ramp_time")
        if runtime is not None:
            self.draft.runtime_s = self._seconds(runtime) or None
            text = f"timing: one round of {self.draft.runtime_s or 0:g} s"
            enough = self.draft.runtime_s is not None and self.draft.runtime_s >= 1
            self._note(runtime, Fate.KEPT if enough else Fate.NEAR, text if enough else "rounds of at least 1 s")
        if ramp is not None:
            self.draft.ramp_s = self._seconds(ramp)
            self._note(ramp, Fate.NEAR, f"warm_up_s: {self.draft.ramp_s:g}, and over as soon as the load is steady")
