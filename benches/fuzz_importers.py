"""Every importer against damaged recordings: one error of ours or a whole capture.

`input_of` makes an input of a seed and a number, `check` judges it: tests/importers/test_fuzz.py does so for some
inputs of each importer, and this program for as many as wanted.

``python -m benches.fuzz_importers --count 200000 --seed 1 [--importer NAME] [--start N] [--keep FOLDER]`` reads the
inputs N to N + COUNT of the seed, in turn for each importer, in a child: whatever takes 10 s of CPU or 1 GB, ends the
process, raises anything but an error of ours, or makes a capture that breaks its own rules is a fault. Seeds are the
project's recordings and those of tests/importers/seeds; ``benches.mutations`` changes them. A fault is kept once, made
as small as it goes, under a name that tells how to run it again. To go on after a stop, give ``--start`` the number it
printed last.

It prints how many inputs were accepted, which tells how deep they went, and exits with 1 when there are faults.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import select
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from random import Random
from typing import cast

import numpy as np

from benches.mutations import mutated
from leadline.app.read.importing import capture_of, importers_for, recognise
from leadline.core.contracts.discovery import load_units
from leadline.core.contracts.importer import Importer, Request
from leadline.core.io.source import Source
from leadline.core.model.capture import Capture
from leadline.core.model.errors import LeadlineError
from leadline.core.model.metrics import metrics

TESTS = Path(__file__).resolve().parents[1] / "tests"
SEED_FOLDERS = (TESTS / "fixtures", TESTS / "importers" / "seeds")
SEED_BYTES_MAX = 40_000
INPUT_BYTES_MAX = 4_000_000
SECONDS_MAX = 10
MEMORY_BYTES_MAX = 1 << 30
SHRINK_SECONDS = 15
INPUTS_OF_CHILD = 5000  # what importers remember of each input would add up
# Importers whose captures keep more than the rest: times that never repeat, and
# finite values, known metrics, whole results.
RISING = frozenset(
    "bsd-iostat iostat meminfo mpstat nmon pg-stat pidstat psi sar top vm-stat vmstat zpool-iostat".split()
)
LOAD_TOOLS = frozenset(
    "hammerdb iperf3 pgbench pgbench-log pgbench-tools sockperf sysbench vdbench vdbench-histogram".split()
)


class OverTimeError(BaseException):
    """An input took too long. Not an Exception, so that no importer takes it for damage."""


@cache
def all_seeds() -> dict[str, tuple[tuple[str, bytes], ...]]:
    """The names and bytes of the small recordings that each importer recognises."""
    importers = load_units("importer")
    found: dict[str, list[tuple[str, bytes]]] = {name: [] for name in importers}
    for path in sorted(path for folder in SEED_FOLDERS for path in folder.rglob("*")):
        if path.is_file() and path.stat().st_size <= SEED_BYTES_MAX:
            source = Source(str(path), path)
            known = recognise(source, importers_for(source))
            if known is not None and not path.read_bytes().startswith(b"\x96\xd5"):
                found[known[0]].append((path.name, path.read_bytes()))
    return {name: tuple(seeds) for name, seeds in found.items()}


def input_of(name: str, seed: int, index: int) -> tuple[str, bytes]:
    """File name and bytes of one input for an importer: a function of the seed and the number."""
    rng = Random(f"{seed}:{name}:{index}")
    seeds = all_seeds()[name]
    file_name, whole = rng.choice(seeds)
    return file_name, mutated(whole, [other for _, other in seeds], rng)[:INPUT_BYTES_MAX]


def check(importer: Importer, source: Source) -> bool:
    """Whether an importer accepts a file; AssertionError when its error or its capture breaks the rules of either."""
    unit = importer.sniff.__module__.rpartition(".")[2].replace("_", "-")
    assert 0 <= importer.sniff(source) <= 100
    try:
        capture = capture_of(importer, source, Request())
    except LeadlineError as error:
        assert error.where.startswith((source.name, "the time "))
        assert error.found
        assert error.expected
        assert error.advice
        assert "\n" not in str(error)
        return False
    assert isinstance(capture, Capture)
    assert len(capture.sources) == 1
    for group in capture.groups:
        assert group.values.shape == (len(group.entities), len(group.times_ns))
        assert group.times_ns.dtype == np.int64
        assert (np.diff(group.times_ns) >= (unit in RISING)).all()
        if unit in LOAD_TOOLS:
            assert not np.isinf(group.values).any()
            assert group.metric.startswith("raw.") or group.metric in metrics()
    if unit in LOAD_TOOLS:
        assert all(result.operations or result.error_count for result in capture.results)
    return True


@dataclass(slots=True)
class Tally:
    """What came of the inputs: per importer how many, how many accepted; faults by place, and how often each."""

    inputs: Counter[str] = field(default_factory=Counter)
    accepted: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)

    @property
    def accepted_pct(self) -> float:
        """The share of inputs that became a capture, percent."""
        return 100 * self.accepted.total() / max(self.inputs.total(), 1)


def fuzz(names: list[str], numbers: range, seed: int, keep: Path) -> Tally:
    """Read the inputs of these numbers, importers in turn; the children's ends are faults, too."""
    tally = Tally()
    all_seeds()
    began = shown = time.monotonic()
    following = numbers.start
    while following < numbers.stop:
        batch = range(following, min(following + INPUTS_OF_CHILD, numbers.stop))
        known = {fault.partition(": ")[2] for fault in tally.faults}
        for verdict in _verdicts(names, batch, seed, keep, known):
            name = names[following % len(names)]
            tally.inputs[name] += 1
            tally.accepted[name] += verdict == "accepted"
            if verdict not in ("accepted", "refused"):
                tally.faults[f"{name}: {verdict}"] += 1
                if tally.faults[f"{name}: {verdict}"] == 1:
                    index = following // len(names)
                    again = f"--importer {name} --seed {seed} --start {index} --count 1"
                    sys.stderr.write(f"fault in {name}: {verdict}\n  again: {again}\n")
            following += 1
            if time.monotonic() - shown > 5:
                shown = time.monotonic()
                rate = tally.inputs.total() / (shown - began)
                faults = len(tally.faults)
                sys.stderr.write(f"{following} of {numbers.stop}, {rate:.0f} a second, {faults} faults\n")
    return tally


def _verdicts(names: list[str], numbers: range, seed: int, keep: Path, known: set[str]) -> Iterator[str]:
    """One verdict per number from a child process, until it has done all or an input ended it."""
    receiving, sending = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(receiving)
        with suppress(BaseException):
            for verdict in _work(names, numbers, seed, keep, known):
                os.write(sending, json.dumps(verdict).encode() + b"\n")
        os._exit(0)
    os.close(sending)
    done = 0
    ending = "ended without a word"
    with os.fdopen(receiving, "rb", buffering=0) as stream:
        pending = b""
        while select.select([stream], [], [], 3 * SECONDS_MAX + SHRINK_SECONDS)[0]:
            piece = stream.read(65536)
            if not piece:
                break
            *lines, pending = (pending + piece).split(b"\n")
            for line in lines:
                done += 1
                yield json.loads(line)
        else:
            os.kill(child, signal.SIGKILL)
            ending = f"did not end after {3 * SECONDS_MAX + SHRINK_SECONDS} s"
    _, status = os.waitpid(child, 0)
    if done < len(numbers):
        if os.WIFSIGNALED(status) and not ending.startswith("did"):
            ending = f"ended by signal {os.WTERMSIG(status)}"
        number = numbers[done]
        name = names[number % len(names)]
        _keep(keep, name, f"{seed}-{number // len(names)}", *input_of(name, seed, number // len(names)))
        yield f"the process {ending}"


def _work(names: list[str], numbers: range, seed: int, keep: Path, known: set[str]) -> Iterator[str]:
    """The child: reads each input under limits of time and memory; its verdict. Known faults are not kept again."""
    warnings.simplefilter("error")
    importers = load_units("importer")
    # More than is allowed, so that what takes too much is measured, and what takes all does not take the machine.
    limit = _status_bytes("VmSize") + 4 * MEMORY_BYTES_MAX
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    signal.signal(signal.SIGPROF, _over_time)
    with tempfile.TemporaryDirectory(dir=_memory_folder()) as folder:
        for number in numbers:
            name, index = names[number % len(names)], number // len(names)
            importer = cast("Importer", importers[name])
            file_name, content = input_of(name, seed, index)
            path = Path(folder) / file_name
            verdict = _verdict(importer, path, content)
            if verdict not in {"accepted", "refused", *known}:
                known.add(verdict)
                small = _shrunk(content, lambda data: _verdict(importer, path, data) == verdict)  # noqa: B023
                _keep(keep, name, f"{seed}-{index}", file_name, small)
            yield verdict


def _verdict(importer: Importer, path: Path, content: bytes) -> str:
    """Accepted, refused, or the fault in words."""
    path.write_bytes(content)
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # the peak begins anew
    before = _status_bytes("VmRSS")
    signal.setitimer(signal.ITIMER_PROF, SECONDS_MAX)
    try:
        verdict = "accepted" if check(importer, Source(path.name, path)) else "refused"
    except OverTimeError:
        return f"takes more than {SECONDS_MAX} s of CPU"
    except BaseException as error:  # a panic of a Rust library is no Exception
        place = traceback.extract_tb(error.__traceback__)[-1]
        return f"{type(error).__name__} in {Path(place.filename).name}, {place.name}: {place.line}"
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        path.unlink(missing_ok=True)
    if _status_bytes("VmHWM") - before > MEMORY_BYTES_MAX:
        return f"takes more than {MEMORY_BYTES_MAX >> 20} MiB"
    return verdict


def _over_time(_signal: int, _frame: object) -> None:
    raise OverTimeError


def _status_bytes(key: str) -> int:
    """A size of this process from the kernel, bytes."""
    with Path("/proc/self/status").open(encoding="ascii", errors="replace") as stream:
        return next(int(line.split()[1]) * 1024 for line in stream if line.startswith(f"{key}:"))


def _memory_folder() -> Path | None:
    """Where files are in memory; None where there is no such folder."""
    shared = Path("/dev/shm")
    return shared if os.access(shared, os.W_OK) else None


def _shrunk(content: bytes, is_same: Callable[[bytes], bool]) -> bytes:
    """The content without the lines, then the bytes, that the fault does not need, as far as the time goes."""
    until = time.monotonic() + SHRINK_SECONDS
    for pieces in (content.splitlines(keepends=True), None):
        parts = [content[i : i + 1] for i in range(len(content))] if pieces is None else pieces
        step = max(len(parts) // 2, 1)
        while step and time.monotonic() < until:
            at = 0
            while at < len(parts) and time.monotonic() < until:
                less = parts[:at] + parts[at + step :]
                if is_same(b"".join(less)):
                    parts = less
                else:
                    at += step
            step //= 2
        content = b"".join(parts)
    return content


def _keep(folder: Path, name: str, number: str, file_name: str, content: bytes) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}-{number}-{file_name}").write_bytes(content)


def _print(tally: Tally, seconds: float) -> None:
    print("importer              inputs  accepted")
    for name, count in sorted(tally.inputs.items()):
        print(f"{name:20} {count:7}  {100 * tally.accepted[name] / count:7.1f}%")
    total = tally.inputs.total()
    print(f"{'all':20} {total:7}  {tally.accepted_pct:7.1f}%   {total / seconds:.0f} inputs a second")
    for fault, count in tally.faults.most_common():
        print(f"{count} times: {fault}")
    print(f"{len(tally.faults)} faults")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--count", type=int, default=200_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--start", type=int, default=0)
    parser.add_argument("--importer", choices=sorted(load_units("importer")))
    parser.add_argument("--keep", type=Path, default=Path("fuzz/artifacts"))
    options = parser.parse_args()
    names = [options.importer] if options.importer else sorted(load_units("importer"))
    began = time.monotonic()
    tally = fuzz(names, range(options.start, options.start + options.count), options.seed, options.keep)
    _print(tally, time.monotonic() - began)
    return 1 if tally.faults else 0


if __name__ == "__main__":
    sys.exit(main())
