"""What deduplication and compression would save, for a terminal of 80 columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from leadline.core.model.units import duration, several, share_text
from leadline.faces.tables import plain_table
from leadline.faces.terminal import wrapped
from leadline.faces.traces import size

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import Console
    from rich.table import Table

    from leadline.app.reduction.model import Reduction, ReductionEstimate, VsanReduction
    from leadline.app.reduction.places import LeftOut

_LEFT_OUT = {
    "links": "symbolic link",
    "special": "device, FIFO or socket",
    "other_file_systems": "entry of another file system",
    "hard_links": "further name of a file",
    "unreadable": "unreadable file or folder",
    "changed": "file that changed or vanished",
}


def show_reduction(out: Console, reduction: Reduction) -> None:
    """Print how much was read, a line for each block size, vSAN's ratios, and what they mean."""
    wrapped(out, _read(reduction), style="bold")
    out.print()
    out.print(_table(reduction))
    out.print()
    if reduction.vsan is not None:
        for lead, text in _vsan_lines(reduction.vsan):
            wrapped(out, text, f"  {lead:<22}")
        out.print()
    for note in _notes(reduction):
        wrapped(out, note, "  ", style="dim")


def _read(reduction: Reduction) -> str:
    files = several(reduction.file_count, "file")
    much = f"{reduction.path}: {size(reduction.total_bytes)} in {files}"
    if reduction.is_whole:
        return f"{much}; all of it was read in {_time(reduction.seconds)}."
    return (
        f"{much}; {size(reduction.read_bytes)} ({share_text(reduction.read_share, 1)} of its pieces, drawn at random) "
        f"was read in {_time(reduction.seconds)}."
    )


def _time(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds < 10 else duration(seconds)


def _table(reduction: Reduction) -> Table:
    columns = ("zeros", "duplicates", "interval", "LZ4", "zstd", "both LZ4", "both zstd")
    table = plain_table("block", *columns, right=columns)
    for row in reduction.block_sizes:
        share = row.duplicate_share
        table.add_row(
            size(row.block_bytes),
            share_text(row.zero_share, 1),
            f"{100 * share.value:.1f} %",
            f"{100 * share.low:.1f}-{100 * share.high:.1f}",
            _ratio(row.lz4_ratio),
            _ratio(row.zstd_ratio),
            _ratio(row.both_lz4_ratio),
            _ratio(row.both_zstd_ratio),
        )
    return table


def _ratio(estimate: ReductionEstimate | None) -> str:
    return "-" if estimate is None else f"{estimate.value:.2f}"


def _between(estimate: ReductionEstimate) -> str:
    if estimate.high - estimate.low < 0.005 * estimate.value:
        return f"{estimate.value:.2f} times smaller"
    return f"{estimate.value:.2f} times smaller (between {estimate.low:.2f} and {estimate.high:.2f})"


def _vsan_lines(vsan: VsanReduction) -> Iterator[tuple[str, str]]:
    fits = f"; {share_text(vsan.fits_share)} of the blocks fit 2 KiB"
    yield "vSAN compression", _between(vsan.compression) + fits
    yield "vSAN dedup and compr.", _between(vsan.dedup)
    yield "vSAN ESA compression", _between(vsan.esa_compression)


def _notes(reduction: Reduction) -> Iterator[str]:
    yield (
        "Ratios are bytes before by bytes after, each block compressed alone; blocks of zeros are left out. "
        'Duplicates are blocks whose content another block already holds; "both" is deduplication, then compression.'
    )
    if reduction.vsan is None:
        yield "LZ4 and vSAN's ratios were not measured: they need pyarrow (the extra parquet)."
    if not reduction.is_whole:
        yield (
            "Copies of a block that was read may lie in what was not read: the true share is probably within the "
            f"interval, which narrows as more is read: leadline bench reduction --resume {reduction.id} --bytes "
            f"{_more(reduction)}"
        )
    left_out = ", ".join(_left_out(reduction.left_out))
    if left_out:
        yield f"Left out: {left_out}."
    yield "Size a vSAN cluster by it: save --json to a file, then `leadline plan vsan --set reduction=FILE`."


def _more(reduction: Reduction) -> str:
    return f"{max(reduction.read_bytes * 4 >> 20, 1)}m"


def _left_out(left_out: LeftOut) -> Iterator[str]:
    for key, noun in _LEFT_OUT.items():
        count = int(getattr(left_out, key))
        if count:
            yield f"{count:,} x {noun}"
