"""Count tests and what they assert, so that a change of the tests can show that none is lost.

Python is counted by its syntax tree: functions named ``test_…``, ``assert`` statements, ``pytest.raises``. Rust is
counted by its attributes and macros: ``#[test]``, ``assert…!`` and ``prop_assert…!``. Run by
``python -m scripts.count_tests``.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
_RUST_TEST = re.compile(r"^\s*#\[test\]", re.MULTILINE)
_RUST_ASSERT = re.compile(r"\b(?:prop_)?assert(?:_eq|_ne)?!\s*[(\[{]")


def main() -> None:
    """Print the counts of this checkout."""
    python = count_python(ROOT / "tests")
    rust = count_rust(ROOT / "crates")
    print(f"Python: {python['tests']} test functions, {python['asserts']} asserts, {python['raises']} pytest.raises")
    print(f"Rust:   {rust['tests']} tests, {rust['asserts']} asserts")


def count_python(folder: Path) -> Counter[str]:
    """Test functions, assert statements and expected exceptions of all files of a folder."""
    found: Counter[str] = Counter()
    for path in folder.rglob("*.py"):
        found.update(_of_python(ast.parse(path.read_bytes())))
    return found


def _of_python(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
            yield "tests"
        elif isinstance(node, ast.Assert):
            yield "asserts"
        elif isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.raises":
            yield "raises"


def count_rust(folder: Path) -> Counter[str]:
    """Tests and assertions of all Rust files of a folder; assertions in the code itself are not counted."""
    found: Counter[str] = Counter()
    for path in folder.rglob("*.rs"):
        text = path.read_text(encoding="utf-8")
        found["tests"] += len(_RUST_TEST.findall(text))
        found["asserts"] += len(_RUST_ASSERT.findall(text))
    return found


if __name__ == "__main__":
    main()
