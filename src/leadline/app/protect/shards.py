"""Schemes of protection and the shards they make: k+m erasure coding with ISA-L, or whole copies.

ISA-L is called through the few functions of its C interface that have not changed since 2.0; it releases Python's lock,
writes into the caller's aligned buffers and copies nothing. The library comes with PyECLib, else from the system.

Source: ISA-L, erasure_code.h and gf_vect_mul.h (ec_init_tables, ec_encode_data, gf_gen_cauchy1_matrix,
gf_invert_matrix, gf_mul).
"""

from __future__ import annotations

import ctypes
import ctypes.util
import mmap
import re
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from leadline.core.model.errors import ToolError, UsageError
from leadline.core.system.extras import install_command

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from leadline.app.measure.nbd import Bytes

SHARDS_MAX = 255  # elements of GF(2^8) less zero: rows of a Cauchy matrix
_TABLE_BYTES = 32  # of a multiplication table per coefficient (erasure_code.h)
_SCHEME = re.compile(r"(\d{1,3})(?:\+(\d{1,3})|x)")


@dataclass(frozen=True, slots=True)
class ProtectionScheme:
    """How a stripe is protected: ``data_count`` shards of data and ``parity_count`` more; copies have one of data."""

    data_count: int
    parity_count: int

    @classmethod
    def parse(cls, text: str) -> ProtectionScheme:
        """From ``K+M`` (erasure coding) or ``Nx`` (copies).

        Raises:
            UsageError: the text has another form, or too many shards.

        >>> ProtectionScheme.parse("3+2"), ProtectionScheme.parse("3x")
        (ProtectionScheme(data_count=3, parity_count=2), ProtectionScheme(data_count=1, parity_count=2))
        """
        match = _SCHEME.fullmatch(text.strip())
        first, second = (0, None) if match is None else (int(match[1]), match[2])
        scheme = cls(first, int(second)) if second is not None else cls(1, first - 1)
        if first < 1 or scheme.shard_count > SHARDS_MAX:
            raise UsageError(
                "--scheme",
                found=text,
                expected=f"K+M or Nx, at most {SHARDS_MAX} shards",
                advice="For example 3+2 (erasure coding) or 3x (three copies).",
            )
        return scheme

    @property
    def shard_count(self) -> int:
        """Shards of a stripe, each on another node."""
        return self.data_count + self.parity_count

    @property
    def tolerated(self) -> int:
        """Failed nodes that lose nothing."""
        return self.parity_count

    @property
    def amplification(self) -> float:
        """Bytes stored per byte of data, by arithmetic; what is measured is reported beside it."""
        return self.shard_count / self.data_count

    def __str__(self) -> str:
        return f"{self.shard_count}x" if self.data_count == 1 else f"{self.data_count}+{self.parity_count}"


def aligned(byte_count: int) -> Bytes:
    """A zeroed buffer [byte_count] on a page boundary, as direct I/O needs it; its pages are there from the start."""
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | mmap.MAP_POPULATE
    return np.frombuffer(mmap.mmap(-1, byte_count, flags=flags), dtype=np.uint8)


class Coder:
    """Encodes and restores the stripes of a scheme; may be used by several threads at once."""

    def __init__(self, scheme: ProtectionScheme, unit_bytes: int) -> None:
        self.scheme = scheme
        self.unit_bytes = unit_bytes
        self._restoring: dict[tuple[tuple[int, ...], tuple[int, ...]], ctypes.Array[ctypes.c_ubyte]] = {}
        k, total = scheme.data_count, scheme.shard_count
        self._is_coded = k > 1 and total > k
        if self._is_coded:
            self._matrix = (ctypes.c_ubyte * (total * k))()
            isal().gf_gen_cauchy1_matrix(self._matrix, total, k)
            self._encoding = _tables(bytes(self._matrix)[k * k :], k)

    def encode(self, shards: Sequence[Bytes]) -> None:
        """Fill the parity shards [unit] from the data shards before them; copies are the caller's own buffer."""
        if self._is_coded:
            k = self.scheme.data_count
            self._multiply(self._encoding, shards[:k], shards[k:])

    def sources(self, present: Sequence[int]) -> tuple[int, ...]:
        """Which of the shards present to read to have the data: data shards first, they need no arithmetic.

        Raises:
            ValueError: too few are present: the stripe is lost.
        """
        k = self.scheme.data_count
        if len(present) < k:
            msg = f"{len(present)} of {self.scheme.shard_count} shards left, {k} needed"
            raise ValueError(msg)
        return tuple(sorted(present)[:k])

    def restore(
        self, sources: tuple[int, ...], have: Sequence[Bytes], wanted: tuple[int, ...], out: list[Bytes]
    ) -> None:
        """Make the shards ``wanted`` in ``out`` from those of `sources`, whose contents are ``have``."""
        if not wanted:
            return
        if not self._is_coded:
            for index, target in zip(wanted, out, strict=True):
                target[:] = have[0] if self.scheme.data_count == 1 else have[sources.index(index)]
            return
        key = (sources, wanted)
        if key not in self._restoring:
            self._restoring[key] = _tables(self._coefficients(sources, wanted), self.scheme.data_count)
        self._multiply(self._restoring[key], have, out)

    def _coefficients(self, sources: tuple[int, ...], wanted: tuple[int, ...]) -> bytes:
        """Rows that make each wanted shard from the sources: its row of the matrix times the inverse of theirs."""
        k = self.scheme.data_count
        rows = [bytes(self._matrix)[i * k : (i + 1) * k] for i in range(self.scheme.shard_count)]
        square = (ctypes.c_ubyte * (k * k)).from_buffer_copy(b"".join(rows[i] for i in sources))
        inverse = (ctypes.c_ubyte * (k * k))()
        if isal().gf_invert_matrix(square, inverse, k) != 0:
            msg = f"shards {sources} do not determine the data"
            raise ValueError(msg)
        coefficients = bytearray()
        for index in wanted:
            for column in range(k):
                total = 0
                for i in range(k):
                    total ^= isal().gf_mul(rows[index][i], inverse[i * k + column])
                coefficients.append(total)
        return bytes(coefficients)

    def _multiply(self, tables: ctypes.Array[ctypes.c_ubyte], have: Sequence[Bytes], out: Sequence[Bytes]) -> None:
        isal().ec_encode_data(self.unit_bytes, len(have), len(out), tables, _pointers(have), _pointers(out))


def _pointers(buffers: Sequence[Bytes]) -> ctypes.Array[ctypes.c_void_p]:
    return (ctypes.c_void_p * len(buffers))(*(buffer.ctypes.data for buffer in buffers))


def _tables(coefficients: bytes, k: int) -> ctypes.Array[ctypes.c_ubyte]:
    rows = len(coefficients) // k
    tables = (ctypes.c_ubyte * (_TABLE_BYTES * len(coefficients)))()
    isal().ec_init_tables(k, rows, (ctypes.c_ubyte * len(coefficients)).from_buffer_copy(coefficients), tables)
    return tables


@cache
def isal() -> ctypes.CDLL:
    """ISA-L, loaded once.

    Raises:
        ToolError: neither PyECLib's copy nor the system's is there.
    """
    for path in _candidates():
        try:
            library = ctypes.CDLL(path)
        except OSError:
            continue
        library.gf_mul.argtypes = (ctypes.c_ubyte, ctypes.c_ubyte)
        library.gf_mul.restype = ctypes.c_ubyte
        return library
    raise ToolError(
        "ISA-L",
        found="not installed",
        expected="the erasure coding library, for schemes such as 3+2",
        advice=f"{install_command('protect')}, or apt-get install libisal2; copies (3x) work without.",
    )


def library_version() -> str:
    """Version of the ISA-L in use; versions before 2.31 do not tell theirs."""
    library = isal()
    if not hasattr(library, "isal_get_version_str"):
        return "before 2.31"
    library.isal_get_version_str.restype = ctypes.c_char_p
    answer: bytes = library.isal_get_version_str()
    return answer.decode()


def _candidates() -> Iterator[str]:
    try:
        for file in files("pyeclib") or ():
            if file.name.startswith("libisal"):
                yield str(Path(str(file.locate())))
    except PackageNotFoundError:
        pass
    yield "libisal.so.2"
    library_name = ctypes.util.find_library("isal")
    if library_name is not None:
        yield library_name
