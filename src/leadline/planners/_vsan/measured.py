"""The space that deduplication and compression save, as `leadline bench reduction --json` measured it."""

from __future__ import annotations

import json
from math import isfinite
from pathlib import Path
from typing import Any

SCHEMA = "leadline.reduction/1"
MADE_BY = "a file of `leadline bench reduction PATH --json`"
RATIO_MAX = 20.0  # of the input
_SIZE_MAX = 1 << 20


def measured_reduction(name: str, services: str) -> float:
    """Return bytes before by bytes after for what vSAN does: the careful end of the interval, 1 to 20.

    Args:
        name: the file of the measurement.
        services: compression, dedup (and compression), or esa (compression of the Express architecture).

    Raises:
        ValueError: the file cannot be read, or is no such measurement; says which.
    """
    document = _document(Path(name))
    ratios = document.get("vsan")
    if ratios is None:
        raise ValueError(f"{name} has no ratios of vSAN: measure again with pyarrow installed, until there is a result")
    key = {"esa": "esa_compression"}.get(services, services)
    try:
        low = float(ratios[key]["low"])
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{name} has no ratio {key}: it is not {MADE_BY}") from error
    if not isfinite(low):
        raise ValueError(f"{name} has no ratio {key}: it is not {MADE_BY}")
    return min(max(low, 1.0), RATIO_MAX)


def _document(path: Path) -> dict[str, Any]:
    try:
        is_small = path.is_file() and path.stat().st_size <= _SIZE_MAX
        document: Any = json.loads(path.read_text(encoding="utf-8")) if is_small else None
    except (OSError, ValueError, RecursionError) as error:
        raise ValueError(f"{path} cannot be read as {MADE_BY} ({error})") from error
    if not isinstance(document, dict) or document.get("schema") != SCHEMA:
        raise ValueError(f"{path} is no number, and not {MADE_BY}")
    return document
