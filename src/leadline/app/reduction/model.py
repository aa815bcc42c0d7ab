"""What a reduction measurement is asked, what it has read so far, and what it answers."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from leadline.app.reduction.blocks import BLOCK_CELLS
from leadline.app.reduction.contents import ContentTable
from leadline.app.reduction.packing import BlockPacker
from leadline.app.reduction.places import DataPlaces, LeftOut


@dataclass(frozen=True, slots=True)
class ReductionLimits:
    """When reading ends.

    Attributes:
        bytes_max: bytes that are read at most, with what an earlier start read.
        seconds_max: seconds of this start; None for no limit.
    """

    bytes_max: int
    seconds_max: float | None = None


@dataclass(slots=True)
class ReductionState:
    """All that is needed to go on.

    Attributes:
        id: names it, and its file.
        path: what the user named.
        seed: of the order in which pieces are read.
        is_sequential: whether all is read in order, because all fits the limits; else pieces are drawn.
        places: what there is to read.
        position: pieces that are done.
        read_bytes: bytes that were read.
        hole_bytes: bytes of holes, known to be zeros without reading.
        seconds: how long it took so far.
        packed_pieces: pieces whose blocks were compressed.
        left_out: what was not read.
        tables: contents, for each block size.
        packer: sizes of compressed blocks.
    """

    id: str
    path: str
    seed: int
    is_sequential: bool
    places: DataPlaces
    position: int = 0
    read_bytes: int = 0
    hole_bytes: int = 0
    seconds: float = 0.0
    packed_pieces: int = 0
    left_out: LeftOut = field(default_factory=LeftOut)
    tables: list[ContentTable] = field(default_factory=lambda: [ContentTable() for _ in BLOCK_CELLS])
    packer: BlockPacker = field(default_factory=BlockPacker)

    @property
    def is_whole(self) -> bool:
        """Whether all pieces are done."""
        return self.position >= self.places.piece_count

    @property
    def read_share(self) -> float:
        """The share of pieces that is done."""
        return self.position / self.places.piece_count


@dataclass(frozen=True, slots=True)
class ReductionEstimate:
    """A value with its interval; the same three when it is exact."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class BlockReduction:
    """What one block size gives. Ratios are bytes before by bytes after, of blocks that are not zeros.

    Attributes:
        block_bytes: the block size.
        zero_share: share of bytes in blocks of zeros.
        duplicate_share: share of the other bytes in blocks whose content another block holds already.
        lz4_ratio: compression alone, each block by itself; None without pyarrow.
        zstd_ratio: the same with zstd.
        both_lz4_ratio: deduplication, then LZ4.
        both_zstd_ratio: deduplication, then zstd.
    """

    block_bytes: int
    zero_share: float
    duplicate_share: ReductionEstimate
    lz4_ratio: ReductionEstimate | None
    zstd_ratio: ReductionEstimate | None
    both_lz4_ratio: ReductionEstimate | None
    both_zstd_ratio: ReductionEstimate | None


@dataclass(frozen=True, slots=True)
class VsanReduction:
    """Ratios as vSAN counts them, blocks of 4 KiB with LZ4, zeros left out.

    Attributes:
        fits_share: share of blocks that compress to 2 KiB.
        compression: original architecture, compression only.
        dedup: original architecture, deduplication and compression.
        esa_compression: Express architecture: steps of 512 bytes.
    """

    fits_share: float
    compression: ReductionEstimate
    dedup: ReductionEstimate
    esa_compression: ReductionEstimate


@dataclass(frozen=True, slots=True)
class Reduction:
    """What would be saved of the data at a path."""

    id: str
    path: str
    file_count: int
    total_bytes: int
    read_bytes: int
    hole_bytes: int
    read_share: float
    is_whole: bool
    seconds: float
    packed_pieces: int
    left_out: LeftOut
    block_sizes: tuple[BlockReduction, ...]
    vsan: VsanReduction | None

    def to_dict(self) -> dict[str, Any]:
        """The answer as plain data."""
        return asdict(self)
