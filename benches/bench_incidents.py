"""The diagnosis on recorded incidents whose cause is known: ``make bench-incidents``.

Two parts. The first is our own recordings: archives ``incidents/recorded/KIND/VARIANT.tar.xz`` of real tools' files and
a ``truth.yaml`` that says what was done to the machine. Each is diagnosed in several views: everything, without the
healthy minutes, twenty seconds alone, and each recorder's files alone. Wrong clearances come first, because they are
the worst: the disk is cleared and to blame, or a layer that is to blame is cleared and none of those is accused. Then
come wrong accusations, what the diagnosis says where a view cannot show the cause, and whether the top finding names
it. Beside it stands what a list of thresholds says of the same numbers, as a spreadsheet would.

Half of the recordings are set aside: they are counted in one table of totals and shown by kind or one by one only with
``--set-aside``, so that no rule is tuned on them by accident. The second part is incidents that others recorded
(``benches/incidents/others.py``). The exit status is 0: this measures; 2 on wrong arguments.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from benches.incidents import others, table
from benches.incidents.decisions import decisions_of, differences, keep_decisions, kept_decisions
from benches.incidents.judging import Judgement
from benches.incidents.measuring import Measured, measure_all
from benches.incidents.naming import naming_table
from benches.incidents.page import keep_printed
from benches.incidents.recordings import archives
from benches.incidents.views import ALONE, FULL, NO_HEALTHY, SHORT
from tests.conftest import ROOT

RECORDED = ROOT / "incidents" / "recorded"
PARTS = ("recorded", "others")


def parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="bench_incidents", description="The diagnosis on recorded incidents.")
    parser.add_argument("--recorded", type=Path, default=RECORDED, metavar="FOLDER", help="holds KIND/VARIANT.tar.xz")
    parser.add_argument("--kind", action="append", metavar="KIND", help="only this kind of incident; may be repeated")
    views = f"{FULL}, {NO_HEALTHY}, {SHORT} or '{ALONE}RECORDER'"
    parser.add_argument("--view", action="append", metavar="VIEW", help=f"only this view: {views}; may be repeated")
    parser.add_argument("--part", choices=PARTS, help="only this part")
    parser.add_argument("--count", type=int, metavar="N", help="only the first N recordings of each part")
    parser.add_argument("--details", action="store_true", help="print what was said of each recording")
    parser.add_argument("--set-aside", action="store_true", help="show the recordings set aside like the others")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every judgement to a file")
    parser.add_argument("--decisions", action="store_true", help="print what differs from the kept decisions")
    parser.add_argument("--keep-decisions", action="store_true", help="keep the decisions as they are now")
    parser.add_argument("--keep-page", action="store_true", help="write the totals into docs/incidents.md")
    parser.add_argument("--jobs", type=int, default=0, metavar="N", help="processes; one for each processor by default")
    return parser


@contextmanager
def progress_of(title: str, total: int) -> Iterator[Callable[[object], None]]:
    """A bar on stderr while the work of one part goes on; called once for each recording."""
    columns = (TextColumn("{task.description}"), BarColumn(20), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(title, total=total or None)
        yield lambda _: bar.advance(task)


def recorded_lines(results: list[Measured], *, show_details: bool, show_set_aside: bool) -> Iterator[str]:
    """The page of our own recordings."""
    judgements = [one for result in results for one in result.judgements]
    shown = [one for one in judgements if show_set_aside or not one.is_set_aside]
    truths = [result.truth for result in results if result.truth is not None]
    visible = [truth for truth in truths if show_set_aside or not truth.set_aside]
    yield f"Recorded by us: {len(truths)} recordings, {len(judgements)} views of them"
    if shown:
        note = "" if show_set_aside else " Recordings set aside are in the totals only."
        yield f"x/n: in x of n. A dot: no error. A dash: nothing to count.{note}"
        yield from table.tables_by_kind(shown)
    yield from table.totals([one for one in judgements if not one.is_set_aside], "Open")
    yield from table.totals([one for one in judgements if one.is_set_aside], "Set aside")
    yield from table.innocents(judgements)
    yield from table.waiting(visible)
    yield from table.usual(visible)
    if show_details:
        yield from table.details(shown)
    yield from table.problems(results)


def compared_decisions(results: list[Measured], options: argparse.Namespace) -> Iterator[str]:
    """What differs from the kept decisions, where that is asked for; then they are kept, where that is."""
    now = decisions_of(one for result in results for one in result.judgements)
    if options.decisions:
        yield from differences(kept_decisions(), now)
    if options.keep_decisions:
        keep_decisions({**kept_decisions(), **now})


def keep_totals(results: list[Measured]) -> None:
    """Write the totals of our own recordings into the page."""
    judgements = [one for result in results for one in result.judgements]
    lines = [
        *table.totals([one for one in judgements if not one.is_set_aside], "Open"),
        *table.totals([one for one in judgements if one.is_set_aside], "Set aside"),
        *table.innocents(judgements),
    ]
    keep_printed("totals", lines)


def measure_recorded(options: argparse.Namespace, usage: argparse.ArgumentParser) -> list[Measured] | None:
    """Our own recordings judged; None when there are none."""
    folder: Path = options.recorded
    known = sorted({path.parent.name for path in archives(folder)})
    if not known:
        return None
    for kind in options.kind or ():
        if kind not in known:
            usage.error(f"--kind {kind}: no such kind in {folder}; there are {', '.join(known)}")
    some = archives(folder, options.kind)[: options.count]
    with progress_of("incidents recorded by us", len(some)) as progress:
        results = measure_all(some, options.view, options.jobs, progress)
    if options.view and any(result.truth for result in results) and not any(result.judgements for result in results):
        usage.error(f"--view {', '.join(options.view)}: no recording has such a view")
    return results


def show_recorded(options: argparse.Namespace, usage: argparse.ArgumentParser, document: dict[str, Any]) -> None:
    """Print, and keep where that is asked for, what was said of our own recordings."""
    results = measure_recorded(options, usage)
    if results is None:
        print(f"{options.recorded} holds no recording: nothing to measure")
        return
    for line in recorded_lines(results, show_details=options.details, show_set_aside=options.set_aside):
        print(line)
    for line in compared_decisions(results, options):
        print(line)
    if options.keep_page:
        keep_totals(results)
    document["recorded"] = [as_json(one) for result in results for one in result.judgements]
    document["damaged"] = [result.problem for result in results if result.problem]


def show_others(options: argparse.Namespace, document: dict[str, Any]) -> None:
    """Print, and keep where that is asked for, what was said of the incidents of others."""
    for labelled in others.SETS:
        with progress_of(labelled.name, 0) as progress:
            incidents = others.measured_incidents(labelled, progress, options.count)
        print(f"\nRecorded by others: {labelled.name}")
        for line in others.table(incidents) if incidents else ["It is not there: nothing to measure."]:
            print(line)
        if options.keep_page and labelled.is_named and incidents:
            keep_printed("named", naming_table([one.naming for one in incidents if one.naming is not None]))
        document["others"][labelled.name] = [one.to_dict() for one in incidents]


def as_json(one: Judgement) -> dict[str, Any]:
    """One judgement with what is concluded from it."""
    return {**asdict(one), "is_top_right": one.is_top_right, "says_it_cannot_know": one.says_it_cannot_know}


def main(arguments: list[str] | None = None) -> int:
    usage = parser()
    options = usage.parse_args(arguments)
    if (options.count is not None and options.count < 1) or options.jobs < 0:
        usage.error("--count and --jobs are whole numbers above 0")
    if options.json is not None and not options.json.parent.is_dir():
        usage.error(f"--json {options.json}: there is no folder {options.json.parent}")
    is_part = options.kind or options.view or options.count or options.recorded != RECORDED
    if options.keep_page and is_part:
        usage.error("--keep-page is for all recordings and views: leave --kind, --view, --count and --recorded out")
    document: dict[str, Any] = {"recorded": [], "damaged": [], "others": {}}
    if options.part != "others":
        show_recorded(options, usage, document)
    if options.part != "recorded" and not options.kind and not options.view:
        show_others(options, document)
    if options.json is not None:
        options.json.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
