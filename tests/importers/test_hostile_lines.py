"""Lines made to be slow: recognising a file, and every expression of importers, costs time linear in the text."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import cast

import pytest

import leadline.formats
import leadline.importers
from leadline.app.read.importing import importers_for
from leadline.core.contracts.discovery import load_units
from leadline.core.contracts.importer import Importer
from leadline.core.io.source import LINE_MAX, Source

IMPORTERS = load_units("importer")
# What expressions stumble over: runs of one character, of two that may stand for each other, and of short fields.
RUNS = (
    *(
        " ",
        "\t",
        "\u00a0",
        "\u3000",
        ".",
        "0.",
        "1",
        "1.",
        "1 ",
        "1,",
        ",",
        '"',
        "'",
        "(",
        "()",
        "[",
        "{",
        "<",
        "a",
        "a ",
    ),
    *("a.", "a:", "a: ", "a=", "a,", "a\t", "%", "=", "-", "-1", "_", "/", "\\", ": ", "; ", "|", "# ", '"a",', 'a="'),
    *("\n", " \n", "\t\n", "a\n", "1\n", "[a]\n", "<pre>", "K ", "x1 y ", "  a"),
)
BEGINNINGS = ("", "a", "1", "a: ", '"', "<", "{", "1.")
LENGTH = 65_000
PATTERN_LENGTH = 6000
NOISE_S = 0.05  # less than this is not compared
GROWTH_MAX = 12.0  # times the work for four times the text; what is quadratic does 16
SHORT_TEXTS = {("stamps", "_STAMP")}  # its caller hands it no more than 120 characters


def run_of(text: str, length: int) -> str:
    """A text repeated to a length."""
    return (text * (length // len(text) + 1))[:length]


def growth(work: Callable[[int], object], length: int, clock: Callable[[], float] = time.thread_time) -> float:
    """How much more CPU time work takes for a length than for a quarter of it; 0 where both are too fast to compare."""

    def cpu_s(characters: int) -> float:
        begin = clock()
        work(characters)
        return clock() - begin

    if cpu_s(length) < NOISE_S:
        return 0.0
    least, most = min(cpu_s(length), cpu_s(length)), max(cpu_s(length // 4), cpu_s(length // 4))
    return least / max(most, 1e-6)


@pytest.mark.parametrize(("power", "is_slow"), [(1, False), (2, True)])
def test_a_growth_is_seen(power: int, is_slow: bool) -> None:
    """By a clock that counts work: what a noisy machine measures of so little time may be a quarter too much."""
    seconds = 0.0

    def work(length: int) -> None:
        nonlocal seconds
        seconds += (length / PATTERN_LENGTH) ** power

    assert (growth(work, PATTERN_LENGTH, lambda: seconds) > GROWTH_MAX) is is_slow


def test_a_slow_expression_is_seen() -> None:
    cubic = re.compile(r"\s*\s*(\s*)x")
    assert growth(lambda length: cubic.match(" " * length), 600) > GROWTH_MAX


@pytest.mark.parametrize("beginning", ["", "{", "<"])
def test_sniffing_is_linear(beginning: str, tmp_path: Path) -> None:
    for run in RUNS:
        for length in (LENGTH, LENGTH // 4):
            (tmp_path / f"{length}.txt").write_text(f"{beginning}{run_of(run, length)}\x01", encoding="utf-8")
        for name, module in IMPORTERS.items():

            def sniff(length: int, module: ModuleType = module) -> int:
                return cast("Importer", module).sniff(Source("hostile.txt", tmp_path / f"{length}.txt"))

            grown = growth(sniff, LENGTH)
            assert grown <= GROWTH_MAX, f"{name}: a line of {run!r} takes {grown:.0f} times as long at four times"


def modules() -> Iterator[ModuleType]:
    """The modules of importers and formats."""
    for package in (leadline.importers, leadline.formats):
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            yield importlib.import_module(found.name)


def patterns_of(module: ModuleType) -> Iterator[tuple[str, re.Pattern[str], set[str]]]:
    """Expressions a module compiles, with the names of the methods it calls of each."""
    source = inspect.getsource(module)
    for name, found in vars(module).items():
        if isinstance(found, re.Pattern) and isinstance(found.pattern, str):
            used = set(re.findall(rf"\b{name}\.(match|fullmatch|search|findall|finditer|sub|split)\b", source))
            yield name, found, used or {"match"}


def test_expressions_are_linear() -> None:
    seen: set[tuple[str, int, str]] = set()
    for module in modules():
        for name, pattern, methods in patterns_of(module):
            if (module.__name__.rpartition(".")[2], name) in SHORT_TEXTS:
                continue
            for method in sorted(methods):
                if (pattern.pattern, pattern.flags, method) not in seen:
                    seen.add((pattern.pattern, pattern.flags, method))
                    slow = slow_texts(pattern, method)
                    assert not slow, f"{module.__name__}: {name}.{method} is slow for {slow}"
    assert len(seen) > 200


def slow_texts(pattern: re.Pattern[str], method: str) -> list[str]:
    """Beginnings and runs for which an expression takes more than linear time."""
    found = []
    for beginning in BEGINNINGS:
        for run in RUNS:

            def work(length: int, beginning: str = beginning, run: str = run) -> object:
                text = f"{beginning}{run_of(run, length)}\x01"
                if method == "sub":
                    return pattern.sub("", text)
                return list(pattern.finditer(text)) if method == "finditer" else getattr(pattern, method)(text)

            if growth(work, PATTERN_LENGTH) > GROWTH_MAX:
                found.append(f"{beginning}{run}")
    return found


def test_long_lines_are_cut_for_recognition(tmp_path: Path) -> None:
    path = tmp_path / "long.txt"
    path.write_bytes(b"x" * 5000 + b"\r\n" + b"y" * 5000 + b"\nz\n")
    assert [len(line) for line in Source("a", path).head_text.splitlines()] == [LINE_MAX, LINE_MAX, 1]


def test_a_document_on_one_line_is_recognised_whole(tmp_path: Path) -> None:
    path = tmp_path / "fio.json"
    padding = ", ".join(f'"option{index}": "{index}"' for index in range(500))
    path.write_text(f'{{"global options": {{{padding}}}, "fio version": "fio-3.33", "jobs": []}}', encoding="utf-8")
    source = Source("fio.json", path)
    assert "fio" in importers_for(source)
    assert cast("Importer", IMPORTERS["fio"]).sniff(source) > 90
