"""What deduplication and compression save, against the truth: on made data and on real folders, whole and sampled.

``python -m benches.bench_reduction [--mib N] [--folder PATH ...]`` makes files whose blocks are copies by 0, 20, 50 and
90 %, and takes real folders as they are. The truth is a scan that keeps a SHA-256 digest of every block. Beside it
stand a whole scan of Leadline, one with a table so small that contents are drawn, and samples of 5, 20 and 50 % of the
bytes with their intervals; and of folders the ratio of ``zstd -b3 -B``, which compresses blocks of a size alone, too.

It exits with 1 when a scan is off by more than 2 points, or the truth lies outside an interval.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from leadline.app.reduction.blocks import BLOCK_CELLS, CELL_BYTES
from leadline.app.reduction.model import Reduction, ReductionLimits
from leadline.app.reduction.places import DataPlaces, places_below
from leadline.app.reduction.reducing import measure_reduction, new_state
from tests.app.reduction.data import write_data
from tests.conftest import ROOT

POINTS_MAX = 2.0
SHARES = (0.0, 0.2, 0.5, 0.9)
PARTS = (0.05, 0.2, 0.5)
SAMPLE_BYTES_MIN = 1 << 18  # four pieces: of less there is no sample
SMALL_TABLE = 1 << 14
EVERYTHING = 2**62
RATIO = re.compile(r"x([0-9]+\.[0-9]+)")


def truth(places: DataPlaces) -> dict[int, float]:
    """The share of duplicates by bytes of blocks, zeros apart, for each block size."""
    seen: dict[int, set[bytes]] = {cells * CELL_BYTES: set() for cells in BLOCK_CELLS}
    used, distinct = dict.fromkeys(seen, 0), dict.fromkeys(seen, 0)
    for path in places.paths:
        with Path(path).open("rb") as file:
            while data := file.read(1 << 20):
                data += bytes(-len(data) % CELL_BYTES)
                for size, digests in seen.items():
                    for start in range(0, len(data), size):
                        block = data[start : start + size]
                        if not block.strip(b"\0"):
                            continue
                        used[size] += len(block)
                        digest = hashlib.sha256(block).digest()[:16]
                        if digest not in digests:
                            digests.add(digest)
                            distinct[size] += len(block)
    return {size: 1.0 - distinct[size] / max(used[size], 1) for size in seen}


def scanned(path: Path, bytes_max: int, kept_max: int | None = None) -> tuple[Reduction, float]:
    """What Leadline answers, and the seconds it took."""
    begun = time.monotonic()
    limits = ReductionLimits(bytes_max)
    state = new_state(path, limits, seed=1)
    for table in state.tables:
        table.kept_max = kept_max or table.kept_max
    done = measure_reduction(state, limits)
    if done is None:
        sys.exit("a scan ended before its end")
    return done, time.monotonic() - begun


def zstd_ratios(places: DataPlaces, folder: Path) -> dict[int, str]:
    """The ratio that ``zstd -b3`` prints, for each block size; empty where there is no zstd."""
    if shutil.which("zstd") is None:
        return {}
    names = folder / "names"
    names.write_bytes(b"\n".join(os.fsencode(path) for path in places.paths) + b"\n")
    ratios = {}
    for cells in BLOCK_CELLS:
        words = ["zstd", "-b3", "-i0", f"-B{cells * CELL_BYTES}", f"--filelist={names}"]
        done = subprocess.run(words, capture_output=True, text=True, check=False, errors="replace")
        matches = RATIO.findall(done.stdout + done.stderr)
        ratios[cells * CELL_BYTES] = matches[-1] if matches else "-"
    return ratios


def compared(name: str, path: Path, folder: Path, *, is_real: bool) -> bool:
    """Print truth, scans and samples of a path; whether all is within its budget."""
    places, _ = places_below(path)
    true = truth(places)
    print(f"\n{name}: {places.total_bytes / 1e6:,.0f} MB in {len(places.paths):,} files")
    peers = zstd_ratios(places, folder) if is_real else {}
    fine = True
    whole, seconds = scanned(path, EVERYTHING)
    drawn, _ = scanned(path, EVERYTHING, SMALL_TABLE)
    samples = [scanned(path, max(int(places.total_bytes * part), SAMPLE_BYTES_MIN))[0] for part in PARTS]
    print(f"  whole scan {seconds:.1f} s, {places.total_bytes / seconds / 1e6:,.0f} MB/s; duplicates in %:")
    print(f"  {'block':>7}{'truth':>8}{'whole':>8}{'drawn':>8}" + "".join(f"{f'{p:.0%} read':>16}" for p in PARTS))
    for index, (size, share) in enumerate(true.items()):
        rows = [scan.block_sizes[index].duplicate_share for scan in (whole, drawn, *samples)]
        cells = "".join(f"{f'{100 * row.low:.1f}-{100 * row.high:.1f}':>16}" for row in rows[2:])
        print(f"  {size:>7}{100 * share:8.2f}{100 * rows[0].value:8.2f}{100 * rows[1].value:8.2f}{cells}")
        fine &= all(abs(row.value - share) * 100 <= POINTS_MAX for row in rows[:2])
        fine &= all(row.low - 1e-9 <= share <= row.high + 1e-9 for row in rows[2:])
    if is_real:
        print_ratios(whole, samples[0], peers)
    return bool(fine)


def print_ratios(whole: Reduction, sample: Reduction, peers: dict[int, str]) -> None:
    """Ratios of compression alone, and after deduplication."""
    print(f"  {'block':>7}{'zstd -b3':>10}{'zstd':>8}{'of 5 %':>8}{'LZ4':>8}{'both LZ4':>10}{'both zstd':>10}")
    for row, part in zip(whole.block_sizes, sample.block_sizes, strict=True):
        ratios = [row.zstd_ratio, part.zstd_ratio, row.lz4_ratio, row.both_lz4_ratio, row.both_zstd_ratio]
        texts = ["-" if ratio is None else f"{ratio.value:.3f}" for ratio in ratios]
        line = f"{texts[0]:>8}{texts[1]:>8}{texts[2]:>8}{texts[3]:>10}{texts[4]:>10}"
        print(f"  {row.block_bytes:>7}{peers.get(row.block_bytes, '-'):>10}{line}")
    vsan = whole.vsan
    if vsan is not None:
        print(
            f"  vSAN: compression {vsan.compression.value:.3f} ({100 * vsan.fits_share:.0f} % fit 2 KiB), with "
            f"deduplication {vsan.dedup.value:.3f}, ESA {vsan.esa_compression.value:.3f}"
        )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mib", type=int, default=256, help="size of each made file")
    parser.add_argument("--folder", type=Path, action="append", help="a real folder; repeatable")
    asked = parser.parse_args(arguments)
    folders = asked.folder or [Path("/usr/share/doc"), ROOT / ".venv"]
    fine = True
    with tempfile.TemporaryDirectory(prefix="bench-reduction-") as name:
        scratch = Path(name)
        os.environ["LEADLINE_HOME"] = str(scratch / "home")
        for share in SHARES:
            path = scratch / "made"
            write_data(path, asked.mib * 256, share, 1, zero_share=0.1)
            fine &= compared(f"made, {share:.0%} duplicates", path, scratch, is_real=False)
            path.unlink()
        for folder in folders:
            fine &= compared(folder.name, folder, scratch, is_real=True)
    print("\nwithin 2 points, and every interval contains the truth" if fine else "\nNOT within its budget")
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
