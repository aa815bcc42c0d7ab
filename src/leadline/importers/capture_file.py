"""Captures that ``leadline import`` saved.

Reads:
    Parquet with one row per series and Leadline's metadata; several recordings may lie in one file, each with its own
    source and clock offset.

Sample:
    ``PAR1`` at the start and the key ``leadline`` in the file's metadata.

Lost:
    Nothing.

Units:
    As saved: the canonical unit of each metric.

Sources:
    `leadline.core.io.parquet`.
"""

from __future__ import annotations

from leadline.core.contracts.importer import ImporterMeta, Request
from leadline.core.io.parquet import load
from leadline.core.io.source import Source
from leadline.core.model.capture import Capture

META = ImporterMeta(
    tool="leadline", marks=("par1",), layers=(), record="leadline import esxtop.csv -o incident.parquet"
)


def sniff(source: Source) -> int:
    """Sure by Parquet's magic number."""
    return 90 if source.head.startswith(b"PAR1") else 0


def read(source: Source, request: Request) -> Capture:
    """The capture as it was saved; metrics that were not asked for are left out."""
    capture = load(source.path, source.name)
    if request.metrics is not None:
        capture.groups = [group for group in capture.groups if group.metric in request.metrics]
    return capture
