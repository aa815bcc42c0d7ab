"""Use case: sample a live source over time into files every verb reads."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import cast

from leadline.core.contracts.collector import Recorder, RecordingCollector
from leadline.core.contracts.discovery import load_unit
from leadline.core.io.outputs import check_folder
from leadline.core.model.errors import LeadlineError, UsageError
from leadline.core.system.addresses import Address, address_of

EVERY_S_MIN = 0.1


@dataclass(frozen=True, slots=True)
class RecordingOutcome:
    """What a recording came to."""

    sample_count: int
    notes: tuple[str, ...]


def record(
    source: str,
    target: str | Address,
    folder: Path,
    *,
    every_s: float,
    seconds: float,
    progress: Callable[[int, int], None] | None = None,
    **options: int | str,
) -> RecordingOutcome:
    """Sample until the time is over or Ctrl-C, which ends it like the time; options are the collector's own.

    Raises:
        UsageError: a time is not positive, the target cannot be read, or the folder cannot be made.
        ToolError: the source cannot be reached.
    """
    if every_s < EVERY_S_MIN or seconds < every_s:
        raise UsageError(
            "--every and --seconds",
            found=f"{every_s:g} s and {seconds:g} s",
            expected=f"at least {EVERY_S_MIN:g} s, and a recording of at least one interval",
            advice="For example --every 5 --seconds 600.",
        )
    recorder = _opened(source, target, folder, options)
    count, whole = 0, int(seconds / every_s) + 1
    try:
        for _ in _beats(every_s, seconds):
            recorder.sample()
            count += 1
            if progress is not None:
                progress(count, whole)
    except KeyboardInterrupt:
        recorder.notes.append("ended by Ctrl-C; the samples until then are kept")
    finally:
        recorder.close()
    return RecordingOutcome(count, tuple(recorder.notes))


def _opened(
    source: str, target: str | Address, folder: Path, options: Mapping[str, int | str] = MappingProxyType({})
) -> Recorder:
    unit = cast("RecordingCollector", load_unit("collector", source))
    check_folder(folder, "--output")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(
            str(folder), found=str(error.strerror), expected="a folder to write to", advice="Name another one."
        ) from error
    return unit.record(target if isinstance(target, Address) else address_of(target), folder, **options)


def _beats(every_s: float, seconds: float) -> Iterator[None]:
    """Now, then at every multiple of the interval; a beat that is already over is left out, not caught up."""
    began = time.monotonic()
    beat = 0
    while beat * every_s <= seconds:
        yield
        beat = max(beat + 1, int((time.monotonic() - began) / every_s) + 1)
        time.sleep(max(began + beat * every_s - time.monotonic(), 0.0))


@contextmanager
def recording(sources: Mapping[str, str | Address], folder: Path, every_s: float = 1.0) -> Iterator[list[str]]:
    """Sample several sources in a thread while something else runs; yields the notes, filled when it ends.

    Samples are appended files (read with `import_paths`); a source that fails is noted and left out, because what runs
    beside it must go on. ``sources`` are collectors with their targets.
    """
    notes: list[str] = []
    recorders: dict[str, Recorder] = {}
    for source, target in sources.items():
        try:
            recorders[source] = _opened(source, target, folder)
        except LeadlineError as error:
            notes.append(f"{source} was not recorded: {error}")
    over = threading.Event()

    def work() -> None:
        for _ in _beats(every_s, float("inf")):
            for source, recorder in list(recorders.items()):
                try:
                    recorder.sample()
                except LeadlineError as error:
                    notes.append(f"{source} was not recorded any more: {error}")
                    del recorders[source]
            if over.is_set():
                return

    thread = threading.Thread(target=work, name="leadline-recording", daemon=True)
    thread.start()
    try:
        yield notes
    finally:
        over.set()
        thread.join(every_s + 5.0)
        for recorder in recorders.values():
            notes.extend(recorder.notes)
            recorder.close()
