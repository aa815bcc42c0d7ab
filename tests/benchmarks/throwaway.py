"""What the tests of database drivers share: a folder the server's user may enter, and what must be gone afterwards."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from leadline.benchmarks._database.load import PLACE
from leadline.core.contracts.benchmark import LoadPlan


@contextmanager
def open_folder() -> Iterator[Path]:
    """pytest keeps its own folders from other users."""
    with tempfile.TemporaryDirectory(prefix="leadline-db-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield folder


def server_processes(plan: LoadPlan) -> list[int]:
    """Processes that name the cluster of a plan on their command line."""
    base = os.fsencode(plan.places[PLACE].path)
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if base in entry.read_bytes():
                found.append(int(entry.parent.name))
        except OSError:
            continue
    return found
