"""Blank devices of many machines filled together, part by part, so that reads find data and progress is seen.

A device that was never written answers reads without touching a medium. What is written is random: zeros would be
left out by storage that deduplicates or compresses.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from leadline.app.measure.fio_servers import Fleet
from leadline.app.measure.hosts import FILL_S, Host
from leadline.benchmarks import fio
from leadline.core.contracts.benchmark import Place
from leadline.core.model.sweep import size_text
from leadline.formats.fio.load import loads_of

GIB, MIB = 1024**3, 1024**2
PARTS_MAX = 10  # Judgement: a tenth at a time is progress enough, and keeps all machines at the same place
OUTSTANDING = 8  # Judgement: writes of 1 MiB per device, enough for any array and no flood


def fill_devices(hosts: Sequence[Host], size_bytes: int, folder: Path, say: Callable[[str], None]) -> dict[str, str]:
    """Fill the blank devices among some targets, all at the same time; why those failed that did, by name.

    Args:
        hosts: fio servers with their targets; those that are no blank devices are left out.
        size_bytes: how much of each is filled, from its beginning.
        folder: where fio's files go.
        say: how progress is shown.

    Raises:
        ToolError: fio is missing here.
        KeyboardInterrupt: passed on after every load was stopped.
    """
    blank = {index: host for index, host in enumerate(hosts) if host.is_blank}
    failed: dict[int, str] = {}
    if not blank:
        return {}
    steps = parts(size_bytes)
    say(f"filling {size_text(size_bytes)} on each of {len(blank)} disks")
    begun_s = time.monotonic()
    with Fleet([host.address for host in hosts], folder) as fleet:
        for number, (start, end) in enumerate(steps, start=1):
            live = [index for index in blank if index not in failed]
            if not live:
                break
            jobs = {index: fill_text(blank[index].path, start, end) for index in live}
            step = fleet.step(f"fill-{number}", jobs, FILL_S)
            if step.interrupted:
                raise KeyboardInterrupt
            failed.update(step.failed)
            for index, report in step.reports.items():
                written_bytes = _written_bytes(report)
                if written_bytes < end - start:
                    failed[index] = _shortfall(blank[index].path, written_bytes, end - start)
            rate = (len(blank) - len(failed)) * end / max(time.monotonic() - begun_s, 1e-9)
            if len(failed) < len(blank):
                say(f"filled {100 * end // size_bytes} % of the disks, {rate / MIB:,.0f} MiB/s in all")
    return {blank[index].name: why for index, why in failed.items()}


def _shortfall(path: str, written_bytes: int, asked_bytes: int) -> str:
    return (
        f"fill: {path} took {written_bytes / MIB:,.0f} of {asked_bytes / MIB:,.0f} MiB; expected all of it. "
        "Is that the name of an added disk there, and is it large enough?"
    )


def _written_bytes(report: Path) -> int:
    """Bytes that fio wrote, by the report of its client; 0 where it has none: fio ends well without the device."""
    text = report.read_text(encoding="utf-8", errors="replace")
    try:
        value, _ = json.JSONDecoder().raw_decode(text, text.find("\n{") + 1)
        return sum(int(load.write_bytes) for load in loads_of(value))
    except (ValueError, KeyError, AttributeError):
        return 0


def parts(size_bytes: int) -> list[tuple[int, int]]:
    """Return start and end, bytes, of what is filled step by step: whole MiB, of about a GiB or more each.

    >>> parts(64 * 2**20), [end // 2**30 for _, end in parts(3 * 2**30)], len(parts(500 * 2**30))
    ([(0, 67108864)], [1, 2, 3], 10)
    """
    count = min(max(size_bytes // GIB, 1), PARTS_MAX)
    ends = [size_bytes * number // count // MIB * MIB for number in range(1, count)]
    return list(zip([0, *ends], [*ends, size_bytes], strict=True))


def fill_text(path: str, start: int, end: int) -> str:
    """Return fio's job that writes random data to a stretch of a device.

    Source: fio(1): offset, size, refill_buffers, end_fsync, allow_file_create.
    """
    lines = ["[global]", "thread=1", "direct=1", "rw=write", "bs=1m", "refill_buffers=1", "end_fsync=1"]
    # Without the last, a name that no device has becomes a file in the memory of the worker.
    lines += ["ioengine=libaio", f"iodepth={OUTSTANDING}", "allow_file_create=0", "[fill]"]
    lines += [fio.where(Place(path, end, is_made=False, is_device=True)), f"offset={start}", f"size={end - start}"]
    return "\n".join([*lines, ""])
