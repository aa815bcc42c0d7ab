"""What a reader and the writer of a sample store share: its folder, its catalogue, its log and its segments."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from leadline.core.model.errors import InputError, ToolError
from leadline.stores._facts import StoredFact

from .catalogue import SampleCatalogue, Segment
from .log import LogEntry, LogReader
from .pieces import EntityRegister, StoredPiece, merged
from .segments import numbers_in, read_segment
from .turns import holding_turn

if TYPE_CHECKING:
    from numpy.typing import NDArray

LOG, SEGMENTS, CATALOGUE, LOCK = "log", "segments", "catalogue.sqlite", "writer.lock"
DONE = "log_done"  # state: logs up to this number are compacted
NUMBER, REFUSED = "file", "refused"  # state: number of the last segment; samples that came too late for retention
TRIES = 8  # Judgement: after so many in a row a reader asks the writer to change nothing for a while
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class StoreView:
    """What counts at one moment: segments, and the captures in the log after them."""

    segments: list[Segment]
    entries: list[LogEntry]


@dataclass(eq=False)
class StoreFiles:
    """The files of a store, for several threads."""

    folder: Path
    catalogue: SampleCatalogue
    register: EntityRegister = field(default_factory=EntityRegister)
    _readers: dict[Path, LogReader] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)  # of the readers

    def consistently(self, read: Callable[[], _T]) -> _T:
        """The result of a function that reads the store, called again where files were replaced meanwhile.

        Where that happens again and again, the writer is asked to replace none until it is done.

        Raises:
            ToolError: files were replaced nevertheless: it took longer than a writer waits.
        """
        with reported(self.folder):
            for _ in range(TRIES):
                result = self._undisturbed(read)
                if result is not None:
                    return result[0]
            with holding_turn(self.folder):
                result = self._undisturbed(read)
        if result is not None:
            return result[0]
        raise ToolError(
            str(self.folder),
            found=f"files were replaced during each of {TRIES + 1} attempts to read them",
            expected="a moment without a change",
            advice="Ask for a shorter time, or again in a minute.",
        )

    def _undisturbed(self, read: Callable[[], _T]) -> tuple[_T] | None:
        """The result of a function that reads the store; None where files were replaced meanwhile."""
        before = self.catalogue.state("generation")
        try:
            result = read()
        except FileNotFoundError:
            if self.catalogue.state("generation") == before:
                raise
            return None
        return (result,) if self.catalogue.state("generation") == before else None

    def view(self, metrics: Collection[str] | None, span_ns: tuple[int, int] | None) -> StoreView:
        """What counts now, of some metrics and a span."""
        segments = self.catalogue.segments(metrics, span_ns=span_ns)
        return StoreView(segments, [entry for path in self.logs() for entry in self.entries(path)])

    def logs(self) -> list[Path]:
        """The files of the log that are not compacted, oldest first."""
        done = self.catalogue.state(DONE)
        paths = sorted(path for path in (self.folder / LOG).glob("*.log") if int(path.stem) > done)
        with self._lock:
            self._readers = {path: reader for path, reader in self._readers.items() if path in paths}
        return paths

    def entries(self, path: Path) -> Sequence[LogEntry]:
        """The captures in a file of the log."""
        with self._lock:
            reader = self._readers.setdefault(path, LogReader(path, self.register))
            return list(reader.entries())

    def wanted(self, numbers: NDArray[np.int32]) -> NDArray[np.bool_]:
        """Whether an entity is wanted, by number."""
        chosen = np.zeros(int(numbers.max(initial=-1)) + 1, dtype=bool)
        chosen[numbers] = True
        return chosen

    def raw(
        self, view: StoreView, metric: str, span_ns: tuple[int, int], wanted: NDArray[np.bool_] | None
    ) -> list[StoredPiece]:
        """The raw samples of a metric in a span, each once; entities with the same times come together."""
        pieces = [
            piece
            for segment in view.segments
            if segment.step_s == 0 and segment.metric == metric
            if segment.first_ns < span_ns[1] and segment.last_ns >= span_ns[0]
            for piece in read_segment(self.folder / segment.path, self.register, metric, wanted)
        ]
        logged = [piece for entry in view.entries for piece in entry.pieces if piece.metric == metric]
        pieces += logged if wanted is None else [piece.of(wanted) for piece in logged]
        return merged(piece.between(*span_ns) for piece in pieces)

    def numbers(self, view: StoreView, span_ns: tuple[int, int]) -> NDArray[np.int32]:
        """The numbers of the entities with raw samples in the files that have any of a span."""
        parts = [
            numbers
            for segment in view.segments
            if segment.step_s == 0 and segment.first_ns < span_ns[1] and segment.last_ns >= span_ns[0]
            for numbers in numbers_in(self.folder / segment.path, self.register)
        ]
        parts += [piece.numbers for entry in view.entries for piece in entry.pieces]
        return np.unique(np.concatenate(parts)) if parts else np.empty(0, dtype=np.int32)

    def facts(self, entries: Sequence[LogEntry]) -> list[StoredFact]:
        """What is known of entities, oldest first."""
        return [*self.catalogue.facts(), *(fact for entry in entries for fact in entry.facts)]


@contextmanager
def reported(folder: Path) -> Iterator[None]:
    """Turn errors of the operating system and of SQLite into those a user sees."""
    try:
        yield
    except (OSError, sqlite3.OperationalError) as error:
        raise ToolError(
            str(folder),
            found=f"cannot be used ({getattr(error, 'strerror', None) or error})",
            expected="a folder that takes and gives back samples",
            advice="Free space there, or check its rights; what was acknowledged is unchanged.",
        ) from error
    except sqlite3.DatabaseError as error:
        raise InputError(
            str(folder / CATALOGUE),
            found=f"damaged ({error})",
            expected="a catalogue of samples kept by Leadline",
            advice="Restore the folder from a backup, or keep samples in another one.",
        ) from error
