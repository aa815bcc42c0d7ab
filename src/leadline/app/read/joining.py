"""Files that are one sample each become one recording: counters tell rates only between two samples.

An importer whose files are often single samples says so (``META.joins``). Several of them in one folder are read as one
text, in the order in which they were written, or of their names where they were copied in one go.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path, PurePath

from leadline.core.io.source import Source

SIZE_MAX = 4 << 20  # Judgement: a sample of a host with a thousand VMs
COPIED_S = 1.0  # files written within a second were copied, not recorded
_NS_PER_S = 1_000_000_000


def joined(sources: Sequence[Source], joins: Callable[[Source], str], folder: Path) -> list[Source]:
    """The sources, with those that belong together as one, in the place of the first.

    Args:
        sources: as they were opened.
        joins: the importer that joins a source with others; empty for a source that stands alone.
        folder: where joined texts are written.
    """
    groups: dict[tuple[str, str], list[Source]] = {}
    for source in sources:
        importer = joins(source) if source.path.stat().st_size <= SIZE_MAX else ""
        if importer:
            groups.setdefault((importer, str(PurePath(source.name).parent)), []).append(source)
    together = {id(source): group for group in groups.values() if len(group) > 1 for source in group}
    result: list[Source] = []
    for source in sources:
        group = together.get(id(source))
        if group is None:
            result.append(source)
        elif source is group[0]:
            result.append(_as_one(group, folder / f"joined-{len(result)}"))
    return result


def _as_one(group: list[Source], path: Path) -> Source:
    """One source of several, with the time at which each was written before it where these tell them apart."""
    ordered = sorted(group, key=lambda source: (source.mtime_ns // _NS_PER_S, source.name))
    times = [source.mtime_ns for source in ordered]
    apart = all(later - earlier > COPIED_S * _NS_PER_S for earlier, later in pairwise(times))
    parts = []
    for source in ordered:
        if apart:
            parts.append(f"{datetime.fromtimestamp(source.mtime_ns // _NS_PER_S, UTC).isoformat()}\n")
        text = source.text()
        parts.append(text if text.endswith("\n") else f"{text}\n")
    path.write_text("".join(parts), encoding="utf-8")
    os.utime(path, ns=(times[-1], times[-1]))
    others = "" if len(ordered) == 2 else f" and {len(ordered) - 2} more"
    name = f"{ordered[0].name} + {PurePath(ordered[1].name).name}{others}"
    return Source(name, path, named=any(source.named for source in group))
