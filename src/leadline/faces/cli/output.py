"""How verbs talk: stdout is the result, stderr the talk."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from leadline.core.model.capture import LEFT_OUT
from leadline.faces.visible import escaped_json, one_line

if TYPE_CHECKING:
    from rich.console import Console

    from leadline.app.read.importing import Imported, Progress
    from leadline.core.io.outputs import Output
    from leadline.core.model.capture import Capture

WIDTH, WIDTH_MAX = 80, 160  # Judgement: of text that goes to a file or a pipe; of lines that can still be read
SAID_MAX = 20  # files left out that are named one by one


def console(*, stderr: bool = False) -> Console:
    """A rich console as wide as the terminal; plain text of 80 columns when the stream is none."""
    from leadline.faces.cli.guard import guarded_console

    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else WIDTH
    narrow = guarded_console(stream, width=width, highlight=False, soft_wrap=False, emoji=False, markup=False)
    narrow.width = min(narrow.width, WIDTH_MAX)
    return narrow


def print_json(schema: str, **content: Any) -> None:  # noqa: ANN401 - plain data
    """One JSON document with its schema name; NaN, which JSON has not, becomes null."""
    document = {"schema": schema, **content}
    sys.stdout.write(escaped_json(_without_nan(document)) + "\n")


def _without_nan(value: Any) -> Any:  # noqa: ANN401 - plain data
    if isinstance(value, dict):
        return {str(key): _without_nan(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_without_nan(item) for item in value]
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):  # noqa: PLR0124
        return None
    return value


def write_json(output: Output, document: dict[str, Any]) -> None:
    """A JSON file that appears whole or not at all."""
    output.write((escaped_json(_without_nan(document)) + "\n").encode())


@contextmanager
def reading_progress(*, quiet: bool = False) -> Iterator[Progress | None]:
    """A progress line on stderr while files are read; nothing when stderr is not a terminal."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    name = TextColumn("{task.description}", markup=False)
    columns = (TextColumn("reading"), BarColumn(20), name, TimeElapsedColumn())
    with Progress(*columns, console=console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=None)

        def step(done: int, total: int, file: str) -> None:
            bar.update(task, total=total, completed=done, description=one_line(file[-40:]))

        yield step


def say_sources(imported: Imported, *, quiet: bool = False, everything: bool = True, lists: str = "") -> None:
    """On stderr: what was repaired or assumed in each source, what is damaged, what was not recognised.

    Args:
        imported: what was read.
        quiet: say nothing.
        everything: every note; else the gravest one, and how many there are.
        lists: what lists them all, where not everything is said.
    """
    notes = [] if quiet else list(_notes(imported))
    if everything or len(notes) <= 1:
        sys.stderr.writelines(f"{note}\n" for note in notes)
        return
    first, more = notes[0], len(notes) - 1
    sys.stderr.write(f"{first}. {more} more note{'s' if more > 1 else ''}: {lists}\n")


def _notes(imported: Imported) -> Iterator[str]:
    """A line for each note, the gravest first."""
    for error in imported.left_out[:SAID_MAX]:
        yield f"left out: {one_line(str(error))}"
    if len(imported.left_out) > SAID_MAX:
        yield f"left out: {len(imported.left_out) - SAID_MAX} more files; --json lists them all"
    yield from _warnings(imported.capture)
    unrecognised = imported.unrecognised
    if unrecognised:
        names = ", ".join(map(one_line, unrecognised[:5])) + (", ..." if len(unrecognised) > 5 else "")
        yield f"not recognised, left out: {len(unrecognised)} file(s): {names}"


def say_warnings(capture: Capture) -> None:
    """On stderr: what was repaired, assumed or left out, each once with the sources of which it is true."""
    sys.stderr.writelines(f"{note}\n" for note in _warnings(capture))


def _warnings(capture: Capture) -> Iterator[str]:
    """What was left out of damaged files first, then what was assumed."""
    sources: dict[tuple[bool, str], list[str]] = {}
    for source in capture.sources:
        for warning in source.warnings:
            times = f" ({warning.count}x)" if warning.count > 1 else ""
            message = f"{one_line(warning.message)}{times}"
            sources.setdefault((warning.code != LEFT_OUT, message), []).append(one_line(source.name))
    for (_, message), names in sorted(sources.items(), key=lambda note: note[0][0]):
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        yield f"{names[0]}{more}: {message}"


@contextmanager
def work_progress(verb: str, *, quiet: bool = False) -> Iterator[Callable[[int, int], None] | None]:
    """A progress bar on stderr for work counted in steps; nothing when stderr is not a terminal."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from rich.progress import Progress

    with Progress(console=console(stderr=True), transient=True) as bar:
        task = bar.add_task(verb, total=None)
        yield lambda done, total: bar.update(task, total=total, completed=done)


@contextmanager
def share_progress(
    verb: str, *, quiet: bool = False, parts: str = "variants"
) -> Iterator[Callable[[float, int, int], None]]:
    """A bar of the share that is done, and how many of how many parts are; nothing when stderr is no terminal."""
    if quiet or not sys.stderr.isatty():
        yield lambda *_: None
        return
    from rich.progress import Progress

    with Progress(console=console(stderr=True), transient=True) as bar:
        task = bar.add_task(verb, total=1.0)

        def show_share(share: float, done: int, count: int) -> None:
            words = f"{verb}, {done} of {count} {parts}" if count > 1 else verb
            bar.update(task, completed=share, description=words)

        yield show_share
