"""Samples of one metric as columns, and how many of them become few in which every sample is once."""

from __future__ import annotations

import base64
import hashlib
import threading
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from leadline.core.model.entities import Entity, EntityColumn

if TYPE_CHECKING:
    from numpy.typing import NDArray


_K = TypeVar("_K")
_V = TypeVar("_V")
COLUMNS_MAX = 4096  # columns of entities that are remembered: bounds the memory where they change all the time


class EntityRegister:
    """Numbers for entities, as this process counts them; columns of the same entities are one object.

    Threads may share it: what it remembers is looked up and added to under a lock.
    """

    def __init__(self) -> None:
        self._numbers: dict[Entity, int] = {}
        self._entities: list[Entity] = []
        self._columns: dict[bytes, EntityColumn] = {}
        self._by_column: dict[int, tuple[EntityColumn, NDArray[np.int32]]] = {}
        self._parsed: dict[str, NDArray[np.int32]] = {}
        self._unpacked: dict[str, str] = {}
        self._lock = threading.RLock()

    def __len__(self) -> int:
        return len(self._entities)

    def numbers(self, entities: Sequence[Entity]) -> NDArray[np.int32]:
        """The numbers int32 [k] of entities; the same object for the same column."""
        with self._lock:
            known_column = self._by_column.get(id(entities)) if isinstance(entities, EntityColumn) else None
            if known_column is not None:
                return known_column[1]
            known = self._numbers
            numbers = np.empty(len(entities), dtype=np.int32)
            for place, entity in enumerate(entities):
                number = known.get(entity)
                if number is None:
                    number = known[entity] = len(self._entities)
                    self._entities.append(entity)
                numbers[place] = number
            if isinstance(entities, EntityColumn):
                _remember(self._by_column, id(entities), (entities, numbers))
            return numbers

    def of_text(self, text: str) -> NDArray[np.int32]:
        """The numbers of entities that are written one a line."""
        with self._lock:
            numbers = self._parsed.get(text)
            if numbers is None:
                numbers = self.numbers([Entity.parse(line) for line in text.split("\n")])
                _remember(self._parsed, text, numbers)
            return numbers

    def unpacked(self, packed: str) -> str:
        """Entities one a line, of their packed form; remembered."""
        with self._lock:
            text = self._unpacked.get(packed)
            if text is None:
                text = zlib.decompress(base64.b64decode(packed)).decode()
                _remember(self._unpacked, packed, text)
            return text

    def text(self, numbers: NDArray[np.int32]) -> str:
        """Entities one a line; a name has no line ends."""
        return "\n".join(str(self._entities[number]) for number in numbers.tolist())

    def column(self, numbers: NDArray[np.int32]) -> EntityColumn:
        """The entities of numbers, the same object for the same numbers."""
        key = numbers.tobytes()
        with self._lock:
            column = self._columns.get(key)
            if column is None:
                column = EntityColumn([self._entities[number] for number in numbers.tolist()])
                _remember(self._columns, key, column)
            return column


def _remember(known: dict[_K, _V], key: _K, value: _V) -> None:
    if len(known) >= COLUMNS_MAX:
        known.clear()
    known[key] = value


@dataclass(frozen=True, slots=True, eq=False)
class StoredPiece:
    """Samples of one metric of entities that were sampled together.

    Attributes:
        metric: canonical name.
        numbers: int32 [k], of the entities.
        times_ns: int64 [n].
        values: float32 [k, n]; NaN is not measured.
        interval_s: the usual distance of samples; NaN when unknown.
        origin: JSON of the source that they come from.
    """

    metric: str
    numbers: NDArray[np.int32]
    times_ns: NDArray[np.int64]
    values: NDArray[np.float32]
    interval_s: float
    origin: str

    @property
    def sample_count(self) -> int:
        """Measured samples."""
        return int(np.count_nonzero(~np.isnan(self.values)))

    def between(self, start_ns: int, end_ns: int) -> StoredPiece:
        """The samples of a span, start included, end not."""
        times_ns = self.times_ns
        if len(times_ns) and np.all(times_ns[1:] > times_ns[:-1]):
            first, end = np.searchsorted(times_ns, (start_ns, end_ns))
            if (first, end) == (0, len(times_ns)):
                return self
            return replace(self, times_ns=times_ns[first:end], values=self.values[:, first:end])
        inside = (times_ns >= start_ns) & (times_ns < end_ns)
        return replace(self, times_ns=times_ns[inside], values=self.values[:, inside])

    def of(self, wanted: NDArray[np.bool_]) -> StoredPiece:
        """The series of some entities; ``wanted`` says so by number, numbers beyond its end are not wanted."""
        inside = self.numbers < len(wanted)
        inside[inside] = wanted[self.numbers[inside]]
        return self if inside.all() else replace(self, numbers=self.numbers[inside], values=self.values[inside])


def merged(pieces: Iterable[StoredPiece]) -> list[StoredPiece]:
    """Pieces of one metric in which each entity is in one piece, and each of its times once, ascending.

    Of samples of the same entity and time the first that was measured is kept: earlier pieces win. Entities with the
    same times share a piece.
    """
    columns: dict[tuple[bytes, float, str], list[StoredPiece]] = {}
    for piece in pieces:
        if piece.values.size:
            key = (piece.numbers.tobytes(), piece.interval_s if piece.interval_s > 0 else -1.0, piece.origin)
            columns.setdefault(key, []).append(piece)
    joined = [part for parts in columns.values() for part in _without_doubles(_joined(parts))]
    return joined if len(joined) < 2 else _by_times(joined)


def _without_doubles(piece: StoredPiece) -> list[StoredPiece]:
    """The piece, in several ones where it names an entity more than once."""
    _, first = np.unique(piece.numbers, return_index=True)
    if len(first) == len(piece.numbers):
        return [piece]
    rest = np.ones(len(piece.numbers), dtype=bool)
    rest[first] = False
    others = replace(piece, numbers=piece.numbers[rest], values=piece.values[rest])
    return [replace(piece, numbers=piece.numbers[first], values=piece.values[first]), *_without_doubles(others)]


def _joined(parts: Sequence[StoredPiece]) -> StoredPiece:
    """Pieces of the same entities, one after the other in time."""
    times_ns = np.concatenate([part.times_ns for part in parts]) if len(parts) > 1 else parts[0].times_ns
    values = np.concatenate([part.values for part in parts], axis=1) if len(parts) > 1 else parts[0].values
    if np.all(times_ns[1:] > times_ns[:-1]):
        return replace(parts[0], times_ns=times_ns, values=values)
    order = np.argsort(times_ns, kind="stable")
    times_ns, values = times_ns[order], values[:, order]
    is_first = np.append(True, times_ns[1:] != times_ns[:-1])
    cell = np.cumsum(is_first) - 1
    again = np.arange(len(times_ns)) - np.flatnonzero(is_first)[cell]
    once = values[:, is_first]
    for turn in range(1, int(again.max()) + 1):
        _fill(once, cell[again == turn], values[:, again == turn])
    return replace(parts[0], times_ns=times_ns[is_first], values=once)


def _fill(values: NDArray[np.float32], columns: NDArray[np.intp], others: NDArray[np.float32]) -> None:
    """Take other values where none was measured yet."""
    present = values[:, columns]
    values[:, columns] = np.where(np.isnan(present), others, present)


def _by_times(parts: Sequence[StoredPiece]) -> list[StoredPiece]:
    """Pieces by the times that entities have: those with the same times and origin come together."""
    size = max(int(part.numbers.max()) for part in parts) + 1
    marks, is_present = np.zeros(size, dtype=np.uint64), np.zeros(size, dtype=bool)
    for part in parts:
        marks[part.numbers] += _mark(part)
        is_present[part.numbers] = True
    everyone = np.flatnonzero(is_present).astype(np.int32)
    distinct, inverse = np.unique(marks[everyone], return_inverse=True)
    group_of = np.zeros(size, dtype=np.intp)
    group_of[everyone] = inverse
    members = np.split(everyone[np.argsort(inverse, kind="stable")], np.cumsum(np.bincount(inverse))[:-1])
    sources: list[list[StoredPiece]] = [[] for _ in distinct]
    for part in parts:
        for group in np.unique(group_of[part.numbers]).tolist():
            sources[group].append(part)
    return [_over(numbers, chosen, size) for numbers, chosen in zip(members, sources, strict=True)]


def _mark(part: StoredPiece) -> np.uint64:
    digest = hashlib.blake2b(part.times_ns.tobytes(), digest_size=8)
    digest.update(f"{part.interval_s} {part.origin}".encode())
    return np.uint64(int.from_bytes(digest.digest(), "little"))


def _over(numbers: NDArray[np.int32], parts: Sequence[StoredPiece], size: int) -> StoredPiece:
    """The samples of some entities from all pieces that have any."""
    times_ns = parts[0].times_ns
    for part in parts[1:]:
        if not np.array_equal(times_ns, part.times_ns):
            times_ns = np.union1d(times_ns, part.times_ns)
    values = np.full((len(numbers), len(times_ns)), np.nan, dtype=np.float32)
    for part in parts:
        row_of = np.full(size, -1, dtype=np.intp)
        row_of[part.numbers] = np.arange(len(part.numbers))
        rows = row_of[numbers]
        to = np.flatnonzero(rows >= 0)
        columns = np.searchsorted(times_ns, part.times_ns)
        present = values[np.ix_(to, columns)]
        values[np.ix_(to, columns)] = np.where(np.isnan(present), part.values[rows[to]], present)
    return replace(parts[0], numbers=numbers, times_ns=times_ns, values=values)
