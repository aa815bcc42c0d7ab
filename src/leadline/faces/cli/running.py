"""Progress of load while it runs: the phase, a bar, operations per second and p99."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from leadline.app.measure.rounds import Talk
    from leadline.core.model.result import Tick


@contextmanager
def talking(*, quiet: bool) -> Iterator[Talk]:
    """How a run talks on stderr: a live line on a terminal, plain lines of phases otherwise, nothing when quiet."""
    from leadline.app.measure.rounds import SILENT, Talk
    from leadline.faces.cli.output import console

    if quiet:
        yield SILENT
        return
    if not sys.stderr.isatty():
        yield Talk(
            lambda name, seconds: _say(f"{name}{f', up to {seconds:.0f} s' if seconds else ''}"), lambda _: None, _say
        )
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(20), TimeElapsedColumn(), TextColumn("{task.fields[now]}"))
    with Progress(*columns, console=console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=None, now="")

        def phase(name: str, seconds: float) -> None:
            bar.reset(task, total=seconds or None, description=name, now="")

        def tick(second: Tick) -> None:
            bar.update(task, completed=second.elapsed_s, now=line_of(second))

        yield Talk(phase, tick, lambda text: bar.console.print(text, markup=False))


def line_of(tick: Tick) -> str:
    """A second in a few words."""
    parts = [f"{tick.per_s:,.0f}/s"]
    if tick.bytes_per_s == tick.bytes_per_s:
        parts.append(f"{tick.bytes_per_s / 2**20:,.1f} MiB/s")
    if tick.p99_ms == tick.p99_ms:
        parts.append(f"p99 {tick.p99_ms:.3g} ms")
    return "  ".join(parts)


def _say(text: str) -> None:
    sys.stderr.write(f"{text}\n")
