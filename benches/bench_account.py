"""The account of time on recorded incidents, against what their sessions really waited for: ``make bench-account``.

For each recording of ``incidents/recorded`` the account of the fault's added time (of all the time, where nothing is
wrong) is made without the sampled wait events, and compared with the shares that these show. Groups: on or waiting for
a CPU or for swapped memory, reads, the log, inside the database, the client and the network, not explained.

error: mean absolute error of the groups that take something, in points. misplaced: points of the time that are with the
wrong group. events: the error against the wait events alone, without what the declaration of the fault adds
(``benches/incidents/accounting.py`` says what that is). covered: how often the interval holds the true share. The truth
has a sampling error of its own: a healthy recording has some 150 sampled sessions.

Recordings set aside are in the totals only, unless ``--set-aside`` is given. The exit status is 0: this measures.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benches.incidents.accounting import GROUPS, Accounted, accounted
from benches.incidents.recordings import archives
from tests.conftest import ROOT

RECORDED = ROOT / "incidents" / "recorded"
HEADER = f"{'kind':26}{'n':>3}{'error':>7}{'misplaced':>11}{'events':>8}{'covered':>9}{'largest right':>15}"


def parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="bench_account", description="The account of time on recorded incidents.")
    parser.add_argument("--recorded", type=Path, default=RECORDED, metavar="FOLDER", help="holds KIND/VARIANT.tar.xz")
    parser.add_argument("--kind", action="append", metavar="KIND", help="only this kind of incident; may be repeated")
    parser.add_argument("--count", type=int, metavar="N", help="only the first N recordings")
    parser.add_argument(
        "--only", action="append", metavar="RECORDER", help="use only this recorder's files; repeatable"
    )
    parser.add_argument("--samples", action="store_true", help="let the account use the wait events, too")
    parser.add_argument("--details", action="store_true", help="print the shares of each recording")
    parser.add_argument("--set-aside", action="store_true", help="show the recordings set aside like the others")
    return parser


def line(name: str, results: list[Accounted]) -> str:
    """One row of the table."""
    error, misplaced, raw = (
        np.mean([getattr(one, field) for one in results])
        for field in ("error_points", "misplaced_points", "raw_error_points")
    )
    held, count = (sum(one.covered[i] for one in results) for i in (0, 1))
    right = sum(one.is_largest_right for one in results)
    numbers = f"{error:7.1f}{misplaced:11.1f}{raw:8.1f}{f'{held}/{count}':>9}{f'{right}/{len(results)}':>15}"
    return f"{name:26}{len(results):>3}{numbers}"


def totals(name: str, results: list[Accounted]) -> Iterator[str]:
    """The rows of all recordings, of those with a fault and of the healthy ones."""
    parts = {
        "all": results,
        "with a fault": [one for one in results if not one.kind.startswith("healthy")],
        "healthy": [one for one in results if one.kind.startswith("healthy")],
    }
    for part, some in parts.items():
        if some:
            yield line(f"{name}, {part}", some)
            held, count = (sum(one.covered[i] for one in some) for i in (0, 1))
            near = sum(one.nearly_covered for one in some)
            rates = (100 * number / max(count, 1) for number in (held, near))
            yield "{:29}covered {:.0f} %; within the sampling error of the truth {:.0f} %".format("", *rates)


def details(results: list[Accounted]) -> Iterator[str]:
    """What the account says of each recording, and the truth."""
    for one in results:
        yield f"{one.kind} {one.variant}: {one.text}"
        for group in one.counted:
            low, high = (100 * end for end in one.bounds[group])
            shares = f"{100 * one.shares[group]:4.0f} % ({low:.0f} to {high:.0f})"
            yield f"    {group:12}{shares:20} true {100 * one.true[group]:4.0f} %, events {100 * one.raw[group]:4.0f} %"


def page(results: list[Accounted], *, show_details: bool, show_set_aside: bool) -> Iterator[str]:
    """The whole report."""
    judged = [one for one in results if not one.problem]
    shown = [one for one in judged if show_set_aside or not one.is_set_aside]
    yield f"{len(results)} recordings; {len(judged)} with transactions and enough samples. Groups: {', '.join(GROUPS)}"
    yield HEADER
    for kind in dict.fromkeys(one.kind for one in shown):
        yield line(kind, [one for one in shown if one.kind == kind])
    for name, is_set_aside in (("Open", False), ("Set aside", True)):
        yield from totals(name, [one for one in judged if one.is_set_aside is is_set_aside])
    if show_details:
        yield from details(shown)
    for one in results:
        if one.problem and (show_set_aside or not one.is_set_aside):
            yield f"{one.kind} {one.variant} is not counted: {one.problem}"


def main(arguments: list[str] | None = None) -> int:
    usage = parser()
    options = usage.parse_args(arguments)
    if options.count is not None and options.count < 1:
        usage.error("--count is a whole number above 0")
    known = archives(options.recorded, options.kind)[: options.count]
    if not known:
        print(f"{options.recorded} holds no recording: nothing to measure")
        return 0
    results = []
    for archive in known:
        with tempfile.TemporaryDirectory(prefix="leadline-bench-") as folder:
            only = frozenset(options.only or ())
            results.append(accounted(archive, Path(folder), with_samples=options.samples, only=only))
    for row in page(results, show_details=options.details, show_set_aside=options.set_aside):
        print(row)
    return 0


if __name__ == "__main__":
    sys.exit(main())
