"""The log of the sample store: one frame per capture, on the disk when `append` returns.

A file ``NUMBER.log`` begins with its magic; then frames: length and CRC-32 of the payload (little-endian uint32 each),
and an Arrow IPC stream of one batch with a row per group of series. The entities of a group are written where they
first occur in a file, later rows name that row by its number. A frame that is cut or does not match its checksum ends
the file: it was never acknowledged.
"""

from __future__ import annotations

import json
import os
import struct
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from leadline.core.system.extras import require
from leadline.core.system.portable import NO_LINK, PLAIN_BYTES

from .pieces import EntityRegister, StoredPiece

if TYPE_CHECKING:
    from numpy.typing import NDArray

MAGIC = b"LLSTORE1"
_HEAD = struct.Struct("<II")
FILE_BYTES_MAX = 64 * 1024**2
FRAME_BYTES_MAX = 1 << 30


@dataclass(frozen=True, slots=True)
class LogEntry:
    """A capture in the log.

    Attributes:
        pieces: its samples.
        span_ns: the times of the first and the last sample; None where there is none.
        facts: (entity, setting, value, source, guessed, when in UTC nanoseconds); a link has the setting "".
    """

    pieces: list[StoredPiece]
    span_ns: tuple[int, int] | None
    facts: list[tuple[str, str, Any, str, bool, int]]


@dataclass(eq=False)
class LogWriter:
    """The file that captures are appended to.

    Attributes:
        path: of the file.
        register: numbers of the entities.
        size: bytes that are acknowledged.
        is_spoilt: the disk reported an error after it had taken a frame; what it has is not known, so no more is
            appended here.
    """

    path: Path
    register: EntityRegister
    size: int = 0
    is_spoilt: bool = False
    _file: int = -1
    _columns: dict[bytes, int] = field(default_factory=dict)

    def open(self) -> None:
        """Make the file.

        Raises:
            OSError: it cannot be made.
        """
        self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL | PLAIN_BYTES | NO_LINK, 0o600)
        try:
            _write(self._file, MAGIC, 0)
            os.fsync(self._file)
            sync_folder(self.path.parent)
        except OSError:
            os.close(self._file)
            self.path.unlink(missing_ok=True)
            raise
        self.size = len(MAGIC)

    def append(self, entry: LogEntry) -> None:
        """Write a frame and wait until the disk has it; after an error the file is as before.

        Raises:
            OSError: the disk did not take it.
        """
        payload, added = self._payload(entry)
        frame = _HEAD.pack(len(payload), zlib.crc32(payload)) + payload
        try:
            _write(self._file, frame, self.size)
            self.is_spoilt = True
            os.fdatasync(self._file)
            self.is_spoilt = False
        except OSError:
            os.ftruncate(self._file, self.size)
            raise
        self.size += len(frame)
        self._columns.update(added)

    def close(self) -> None:
        """Give up the file."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _payload(self, entry: LogEntry) -> tuple[bytes, dict[bytes, int]]:
        pa = require("pyarrow")
        added: dict[bytes, int] = {}
        indices, texts = [], []
        for piece in entry.pieces:
            key = piece.numbers.tobytes()
            index = self._columns.get(key, added.get(key))
            texts.append(self.register.text(piece.numbers) if index is None else None)
            if index is None:
                index = added[key] = len(self._columns) + len(added)
            indices.append(index)
        pieces = entry.pieces
        columns = {
            "metric": pa.array([piece.metric for piece in pieces], pa.string()),
            "column": pa.array(indices, pa.int32()),
            "entities": pa.array(texts, pa.large_string()),
            "interval_s": pa.array([piece.interval_s for piece in pieces], pa.float64(), from_pandas=False),
            "origin": pa.array([piece.origin for piece in pieces], pa.string()),
            "times": _lists(pa, [piece.times_ns for piece in pieces], np.int64),
            "values": _lists(pa, [piece.values.reshape(-1) for piece in pieces], np.float32),
        }
        batch = pa.record_batch(columns)
        metadata = {b"facts": json.dumps(entry.facts).encode()} if entry.facts else None
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema.with_metadata(metadata)) as stream:
            stream.write_batch(batch.replace_schema_metadata(metadata))
        return sink.getvalue().to_pybytes(), added


@dataclass(eq=False)
class LogReader:
    """The frames of a file, read once and remembered; the samples stay in the file.

    Attributes:
        path: of the file.
        register: numbers of the entities.
    """

    path: Path
    register: EntityRegister
    _entries: list[LogEntry] = field(default_factory=list)
    _columns: list[NDArray[np.int32]] = field(default_factory=list)
    _end: int = 0

    def entries(self) -> Sequence[LogEntry]:
        """Every whole frame.

        Raises:
            FileNotFoundError: it was compacted meanwhile.
        """
        with self.path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            if size <= max(self._end, len(MAGIC)):
                return self._entries
            if self._end == 0:
                if file.read(len(MAGIC)) != MAGIC:
                    return self._entries
                self._end = len(MAGIC)
            file.seek(self._end)
            view = memoryview(file.read())  # not mapped: what is cut off while it is read would end the process
        start = self._end
        for payload, end in _frames(view):
            self._entries.append(self._entry(payload))
            self._end = start + end
        return self._entries

    def _entry(self, payload: memoryview) -> LogEntry:
        pa = require("pyarrow")
        stream = pa.ipc.open_stream(pa.py_buffer(payload))
        facts = json.loads((stream.schema.metadata or {}).get(b"facts", b"[]"))
        batch = stream.read_next_batch()
        for text in batch["entities"].to_pylist():
            if text is not None:
                self._columns.append(self.register.of_text(text))
        flat = {name: batch[name].to_pylist() for name in ("metric", "column", "interval_s", "origin")}
        times, values = _split(batch["times"]), _split(batch["values"])
        pieces = []
        for metric, column, interval_s, origin, at, numbers in zip(*flat.values(), times, values, strict=True):
            entities = self._columns[column]
            shaped = numbers.reshape(len(entities), len(at))
            pieces.append(StoredPiece(metric, entities, at, shaped, interval_s, origin))
        whole = batch["times"].values.to_numpy()
        span_ns = (int(whole.min()), int(whole.max())) if len(whole) else None
        return LogEntry(pieces, span_ns, [tuple(fact) for fact in facts])


def sync_folder(folder: Path) -> None:
    """Wait until the disk has the names of a folder."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _write(file: int, content: bytes, offset: int) -> None:
    rest = memoryview(content)
    while rest:
        count = os.pwrite(file, rest, offset)
        rest, offset = rest[count:], offset + count


def _frames(view: memoryview) -> Iterator[tuple[memoryview, int]]:
    """The payload of each whole frame, and where it ends."""
    start = 0
    while start + _HEAD.size <= len(view):
        length, checksum = _HEAD.unpack_from(view, start)
        first, end = start + _HEAD.size, start + _HEAD.size + length
        if not 0 < length <= FRAME_BYTES_MAX or end > len(view) or zlib.crc32(view[first:end]) != checksum:
            return
        yield view[first:end], end
        start = end


def _lists(pa: Any, rows: Sequence[NDArray[Any]], kind: type[np.generic]) -> Any:  # noqa: ANN401 - PyArrow's
    ends = np.cumsum([0, *(len(row) for row in rows)], dtype=np.int64)
    flat = np.concatenate([np.asarray(row, dtype=kind) for row in rows]) if rows else np.empty(0, dtype=kind)
    return pa.LargeListArray.from_arrays(pa.array(ends), pa.array(flat, from_pandas=False))


def _split(lists: Any) -> list[NDArray[Any]]:  # noqa: ANN401 - PyArrow's
    offsets, flat = lists.offsets.to_numpy(), lists.values.to_numpy()
    return [flat[first:end] for first, end in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True)]
