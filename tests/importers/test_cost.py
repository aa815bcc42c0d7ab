"""What an importer holds at once grows as its input does: a recording of twice the length needs twice the memory.

The largest seed of each importer is made longer by repeating its reports with later times. Memory is what Python and
NumPy allocate (tracemalloc); what Rust holds is measured by ``make bench-logs``.
"""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import cast

import pytest

from benches.fuzz_importers import all_seeds
from leadline.core.contracts.discovery import load_units
from leadline.core.contracts.importer import Importer, Request
from leadline.core.io.source import Source, is_text
from leadline.core.model.errors import LeadlineError
from tests.importers.test_gaps import moved_all

SEEDS = all_seeds()
FIRST, SHORT, LONG = 2, 20, 40  # repetitions
GROWTH_MAX, SLACK_BYTES = 2.3, 200_000
HELD_MAX = 15.0  # bytes held at once for each further byte of input: a cell of three characters becomes a double or two
NEARLY = 0.8  # what is held varies by some per cent from run to run
STEP_S = 600  # between repetitions
# Importers that hold more for each byte of input; this list may only shrink.
# postgresql-log keeps a value for each second, also where nothing was logged.
HEAVY = frozenset(
    {"cachestat", "file-slower", "hdparm", "oracle-waits", "pg-stat", "pg-test-fsync", "postgresql-log", "sqlio"}
    | {"vcenter-chart"}
)
# Documents, settings and results that do not become longer by more of the same lines.
FIXED = frozenset(
    {
        "block-layout",
        "capture-file",
        "chronyc",
        "df",
        "esxcfg-info",
        "esxcli-lists",
        "facts",
        "fsutil",
        "innodb-status",
        "inventory",
        "iris-cpf",
        "mysql-processlist",
        "net-adapter",
        "offcputime",
        "ovf",
        "pg-settings",
        "powercfg",
        "recorder-notes",
        "rvtools",
        "selinux",
        "speculation-control",
        "systeminfo",
        "vsan-objects",
        "top",
        "vm-config",
    }
    | {"vmx", "vrops", "w32tm"}
)


def grown(text: str, count: int) -> str:
    """A text whose reports come again and again, each time later."""
    separator = "\n\n" if text.count("\n\n") > 4 else "\n"
    parts = text.rstrip("\n").split(separator)
    half = len(parts) // 2
    body = separator.join(parts[half:])
    return separator.join([*parts[:half], *(moved_all(body, STEP_S * turn) for turn in range(count))]) + "\n"


@pytest.fixture(scope="module", autouse=True)
def _old_objects_aside() -> Iterator[None]:
    """What other tests left is not looked through again at each collection."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@cache
def importers() -> dict[str, Importer]:
    return {name: cast("Importer", module) for name, module in load_units("importer").items()}


def held_bytes(importer: Importer, path: Path) -> int | None:
    """The most that is allocated at once while a file is read; None where it is refused."""
    source = Source(path.name, path, named=True)
    gc.collect()
    gc.disable()  # when it runs is chance: what lies in cycles is counted
    tracemalloc.start()
    try:
        capture = importer.read(source, Request())
    except LeadlineError:
        return None
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        gc.enable()
    return peak if capture.groups or capture.results else None


def lengths(name: str, folder: Path) -> list[tuple[int, int]] | None:
    """Bytes of input and bytes held, of the short and the long recording; None where no seed can be made longer."""
    texts = [(file, content.decode()) for file, content in SEEDS[name] if is_text(content)]
    for file, text in sorted(texts, key=lambda seed: -len(seed[1])):
        measured = []
        for count in (FIRST, SHORT, LONG):  # first, what is imported for the first time is loaded
            path = folder / f"{count}-{file}"
            path.write_text(grown(text, count))
            held = held_bytes(importers()[name], path)
            if held is None:
                break
            measured.append((path.stat().st_size, held))
        else:
            return measured[1:]
    return None


@pytest.mark.parametrize("name", sorted(SEEDS.keys() - FIXED))
def test_twice_the_recording_is_held_in_twice_the_memory(name: str, tmp_path: Path) -> None:
    measured = lengths(name, tmp_path)
    assert measured is not None, "no seed of it can be made longer"
    (short_bytes, short_held), (long_bytes, long_held) = measured
    assert long_held <= GROWTH_MAX * short_held + SLACK_BYTES, measured
    held_for_a_byte = (long_held - short_held) / (long_bytes - short_bytes)
    if name in HEAVY:
        assert held_for_a_byte > NEARLY * HELD_MAX, f"{held_for_a_byte:.1f} bytes for a byte: it is heavy no more"
    else:
        assert held_for_a_byte <= HELD_MAX, f"{held_for_a_byte:.1f} bytes for a byte"


@pytest.mark.parametrize("name", sorted(FIXED))
def test_what_is_called_fixed_cannot_be_made_longer(name: str, tmp_path: Path) -> None:
    assert lengths(name, tmp_path) is None
