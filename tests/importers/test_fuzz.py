"""Every importer against damaged recordings: one error or a whole capture, never anything else.

Seeds are the project's own recordings that the importer recognises, plus small ones below for tools that cannot be run
here. ``make fuzz`` runs the same with many more examples.
"""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from leadline.app.importing import recognise
from leadline.core.capture import Capture
from leadline.core.discovery import load_units
from leadline.core.errors import LeadlineError
from leadline.core.importer import Importer, Request
from leadline.core.source import Source
from tests.conftest import FIXTURES

IMPORTERS = load_units("importer")
SEED_BYTES_MAX = 40_000
EXAMPLES = int(os.environ.get("LEADLINE_FUZZ_EXAMPLES", "25"))
SEEDS = Path(__file__).parent / "seeds"


@cache
def seeds_of(name: str) -> tuple[tuple[str, bytes], ...]:
    found = []
    for path in sorted([*FIXTURES.rglob("*"), *SEEDS.rglob("*")]):
        if path.is_file() and path.stat().st_size <= SEED_BYTES_MAX:
            known = recognise(Source(str(path), path), IMPORTERS)
            if known is not None and known[0] == name and not path.read_bytes().startswith(b"\x96\xd5"):
                found.append((path.name, path.read_bytes()))
    return tuple(found)


@st.composite
def damaged(draw: st.DrawFn, seeds: tuple[tuple[str, bytes], ...]) -> tuple[str, bytes]:
    name, data = draw(st.sampled_from(seeds))
    content = bytearray(data)
    for _ in range(draw(st.integers(1, 4))):
        kind = draw(st.sampled_from(["flip", "cut", "drop", "repeat", "insert"]))
        at = draw(st.integers(0, max(len(content) - 1, 0)))
        length = draw(st.integers(1, 60))
        if kind == "flip" and content:
            content[at] = draw(st.integers(0, 255))
        elif kind == "cut":
            del content[at:]
        elif kind == "drop":
            del content[at : at + length]
        elif kind == "repeat":
            content[at:at] = content[at : at + length]
        else:
            content[at:at] = draw(st.sampled_from([b"\n", b",", b'"', b" ", b"nan", b"-1", b"1e999", b"{", b"\x00"]))
    return name, bytes(content)


@pytest.mark.parametrize("name", IMPORTERS)
def test_has_seeds(name: str) -> None:
    assert seeds_of(name), f"put a small recording for {name} into tests/fixtures or tests/importers/seeds"


@pytest.mark.parametrize("name", IMPORTERS)
@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_damage_is_one_error_or_a_whole_capture(
    name: str, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    seeds = seeds_of(name)
    if not seeds:
        pytest.skip("no seeds")
    file_name, content = data.draw(damaged(seeds))
    path = tmp_path_factory.mktemp("fuzz") / file_name
    path.write_bytes(content)
    check(IMPORTERS[name], Source(file_name, path))


@settings(max_examples=EXAMPLES, deadline=None)
@given(content=st.binary(max_size=3000))
def test_any_bytes_are_sniffed(content: bytes, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("sniff") / "a"
    path.write_bytes(content)
    source = Source("a", path)
    for module in IMPORTERS.values():
        assert 0 <= cast("Importer", module).sniff(source) <= 100


def check(module: ModuleType, source: Source) -> None:
    importer = cast("Importer", module)
    assert 0 <= importer.sniff(source) <= 100
    try:
        capture = importer.read(source, Request())
    except LeadlineError as error:
        assert error.where
        assert error.advice
        assert "\n" not in str(error)
        return
    assert isinstance(capture, Capture)
    assert len(capture.sources) == 1
    for group in capture.groups:
        assert group.values.shape == (len(group.entities), len(group.times_ns))
