"""What the verdict says of the first samples of recorded incidents: ``make bench-cuts``.

Every recording is cut to its first, its middle and the fault's last 1 to 15 samples (seconds), as people post them: all
recorders together, and each alone. Rules on disks ask for 15 s: a "No" to "is it the disk?" from less has no power.
Printed are the answers by length, and every "No" without power. The exit status is 1 when there is one.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from benches.bench_incidents import RECORDED
from benches.incidents.judging import disk_of
from benches.incidents.recordings import Truth, archives, ns_of, read_recording
from benches.incidents.views import NO_HEALTHY, SHORT, views
from leadline.app.diagnose.diagnosing import diagnose
from leadline.core.model.answer import Disk
from leadline.core.model.capture import NS_PER_S, Capture
from leadline.core.model.vocabulary import EntityKind
from leadline.faces.words.answers import disk_sentence
from leadline.faces.words.findings import Quotes

LENGTHS_S = tuple(range(1, 16))
ENOUGH_S = 14.25  # of samples of one disk: 15 s less what a rule allows for


@dataclass(frozen=True, slots=True)
class Cut:
    """What was said of one cut: its length in seconds, whose recording it is, and the answer."""

    name: str
    view: str
    length_s: int
    recorded_s: float
    answer: Disk
    text: str = ""
    is_innocent: bool = False  # the disk is not to blame


def ends_of(truth: Truth, whole: Capture, length_s: int) -> Iterator[tuple[int, int]]:
    """Spans of a length at the start of the recording, in the middle of the fault and at its end."""
    start, end = whole.span_ns() or (0, 0)
    fault = (start, end) if truth.fault is None else (ns_of(truth.fault.start), ns_of(truth.fault.end))
    middle = sum(fault) // 2
    for first in (start, middle, fault[1] - length_s * NS_PER_S):
        yield first, first + length_s * NS_PER_S


def longest_of_disks_s(capture: Capture) -> float:
    """The longest time over which the latency of a disk was recorded."""
    names = ("guest_disk_await_ms", "guest_disk_await_ms_read", "guest_disk_await_ms_write")
    groups = (group for name in names for group in capture.of(name, EntityKind.BLOCK_DEVICE))
    return max((len(g.times_ns) * (g.interval_s if g.interval_s > 0 else 0.0) for g in groups), default=0.0)


def cuts_of(archive: Path, lengths_s: Sequence[int] = LENGTHS_S) -> list[Cut]:
    """The cuts of one recording."""
    with tempfile.TemporaryDirectory(prefix="leadline-bench-") as folder:
        recording = read_recording(archive, Path(folder))
        name = f"{archive.parent.name}/{archive.name.split('.')[0]}"
        cuts = []
        for view in views(recording):
            if view.capture is None or view.name in (NO_HEALTHY, SHORT):
                continue
            for length_s in lengths_s:
                for start_ns, end_ns in ends_of(recording.truth, recording.whole, length_s):
                    capture = view.capture.between(start_ns, end_ns)
                    answer = diagnose(capture).answer
                    text = disk_sentence(answer, Quotes())
                    is_innocent = recording.truth.disk == "no"
                    cuts.append(
                        Cut(name, view.name, length_s, longest_of_disks_s(capture), answer.disk, text, is_innocent)
                    )
        return cuts


def lines_of(cuts: list[Cut]) -> Iterator[str]:
    """The table of answers, then every "No" of a cut that is shorter than the rules ask for."""
    yield f"{len(cuts)} cuts of recorded incidents; answers to 'is it the disk?'"
    yield f"{'samples':>8} {'yes':>7} {'of innocents':>13} {'unknown':>8} {'no':>6} {'no without power':>17}"
    for length_s in LENGTHS_S:
        some = [cut for cut in cuts if cut.length_s == length_s]
        said = Counter(disk_of(cut.answer) for cut in some)
        accused = sum(1 for cut in some if cut.is_innocent and disk_of(cut.answer) == "yes")
        counts = f"{said['yes']:>7} {accused:>13} {said['unknown']:>8} {said['no']:>6} {len(wrong(some)):>17}"
        yield f"{length_s:>8} {counts}"
    for cut in wrong(cuts):
        yield f"{cut.name}, {cut.view}, {cut.length_s} s ({cut.recorded_s:.3g} s of disks): {cut.text}"


def wrong(cuts: list[Cut]) -> list[Cut]:
    """Cuts that are answered "No" though no disk was recorded for long enough."""
    return [cut for cut in cuts if disk_of(cut.answer) == "no" and cut.recorded_s < ENOUGH_S]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="bench_cuts", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--kind", action="append", metavar="KIND", help="only this kind of incident; may be repeated")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="every Nth recording")
    parser.add_argument("--length", action="append", type=int, choices=LENGTHS_S, metavar="S", help="only this length")
    options = parser.parse_args(arguments)
    some = archives(RECORDED, options.kind)[:: max(options.every, 1)]
    # Fresh processes: the threads of NumPy do not survive a fork.
    with ProcessPoolExecutor(os.cpu_count(), mp_context=multiprocessing.get_context("spawn")) as pool:
        cuts = [cut for part in pool.map(partial(cuts_of, lengths_s=options.length or LENGTHS_S), some) for cut in part]
    for line in lines_of(cuts):
        print(line)
    return int(bool(wrong(cuts)))


if __name__ == "__main__":
    sys.exit(main())
