"""The house: its rooms, what each holds, and the rules of rooms that a machine can check.

``python -m scripts.house`` prints every room with its modules and lines, and fails where a rule is broken; `page` is
the page of the docs. Rooms describe themselves: the docstring of their ``__init__.py`` says what belongs there (Here)
and what does not (Elsewhere).
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "leadline"
ROOM_MODULES_MAX = 25
OF_UNITS = ("importers", "rules/", "experiments")  # found by name, so they may be many
_DESCRIBED = re.compile(r"\A(?P<is>.+?)\n\nHere: (?P<here>.+?)\nElsewhere: (?P<elsewhere>.+?)\n*\Z", re.DOTALL)
_CORE_IMPORT = re.compile(r"leadline\.(core\.\w+)(?:\.(\w+)| import (\w+))")
_INTRODUCTION = """\
Where code lies, and where a change belongs. A room imports what lies below it, never what lies above or beside it; a
unit (a rule, an importer, a planner and so on) is one file that is found by its name, and
[adding a unit](../guides/units.md) says how to begin one. Each room says what belongs there and
what belongs elsewhere; those that features of `app` stand on have a row of their own."""
# Of the drawing, in pixels.
_WIDTH, _GAP, _BOX, _LETTER, _LABEL = 900, 8, 40, 7.2, 20


@dataclass(frozen=True, slots=True)
class Room:
    """A folder of code that describes itself; ``name`` is its path below the package."""

    name: str
    summary: str
    here: str
    elsewhere: str
    module_count: int
    line_count: int
    stands_on: tuple[str, ...]

    @property
    def floor(self) -> str:
        """The folder of the package that it lies in."""
        return self.name.partition("/")[0]


def tracked(*patterns: str) -> list[Path]:
    """Files of the project that match, those not yet committed too."""
    words = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", *patterns]
    listed = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True)
    return [ROOT / line for line in listed.stdout.splitlines() if (ROOT / line).is_file()]


def floors(package: str = "leadline") -> list[list[str]]:
    """The layers of a package from the top down, each with its folders, as import-linter keeps them."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = settings["tool"]["importlinter"]["contracts"]
    layers = next(contract["layers"] for contract in contracts if contract.get("containers") == [package])
    return [layer.split(" | ") for layer in layers]


def rooms() -> list[Room]:
    """Every room, from the top of the house down."""
    paths = tracked("src/leadline/*.py")
    described = {}
    for path in paths:
        match = _DESCRIBED.match(_outline(path).docstring) if path.name == "__init__.py" else None
        if match:
            described[path.parent.relative_to(SOURCE).as_posix()] = match
    order = {floor: number for number, names in enumerate(floors()) for floor in names}
    names = sorted(described, key=lambda name: (order[name.partition("/")[0]], name))
    modules: defaultdict[str | None, list[Path]] = defaultdict(list)
    for path in paths:
        modules[_room_of(path.relative_to(SOURCE).as_posix(), names)].append(path)
    return [_room(name, described[name], modules[name], names) for name in names]


def _room(name: str, described: re.Match[str], modules: list[Path], names: list[str]) -> Room:
    outlines = [_outline(path) for path in modules]
    lines = sum(outline.line_count for outline in outlines)
    targets = {target for outline in outlines for target in outline.imports}
    below = {_room_of(target, names) for target in targets} - {name, None}
    summary, here, elsewhere = (" ".join(described[part].split()) for part in ("is", "here", "elsewhere"))
    count = sum(path.name != "__init__.py" for path in modules)
    stands_on = tuple(sorted(room for room in below if room is not None))
    return Room(name, summary, here, elsewhere, count, lines, stands_on)


def _room_of(path: str, names: list[str]) -> str | None:
    """The innermost room around a path below the package."""
    folder = path.rpartition("/")[0]
    while folder and folder not in names:
        folder = folder.rpartition("/")[0]
    return folder or None


@dataclass(frozen=True, slots=True)
class _Outline:
    """What the house asks of a module: its docstring, its lines, and what of the package it imports (as paths)."""

    docstring: str
    line_count: int
    imports: tuple[str, ...]


def _outline(path: Path) -> _Outline:
    status = path.stat()
    return _read_outline(path, status.st_mtime_ns, status.st_size)


@cache
def _read_outline(path: Path, _changed_ns: int, _size_bytes: int) -> _Outline:
    """Of a file as it is at that time: every page and rule of the house asks for all of them again."""
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    return _Outline(ast.get_docstring(tree) or "", len(text.splitlines()), tuple(_imports(tree)))


def _imports(tree: ast.Module) -> Iterator[str]:
    """Modules of the package that a file imports, as paths below the package."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("leadline."):
            folder = str(node.module).removeprefix("leadline.").replace(".", "/")
            for alias in node.names:
                yield f"{folder}/{alias.name}"


def undescribed() -> list[str]:
    """Folders of code that are neither a room, nor inside one of units or of parts, nor a group of verbs."""
    known = [room.name for room in rooms()]
    folders = {path.parent.relative_to(SOURCE).as_posix() for path in tracked("src/leadline/*.py")} - {"."}
    inside = ("rules/", "faces/cli/verbs/")
    return sorted(
        folder for folder in folders if folder not in known and "/_" not in folder and not folder.startswith(inside)
    )


def heaps() -> dict[str, int]:
    """Folders of more modules than one can look through; those of units aside, which are found by name."""
    modules = (path for path in tracked("src/leadline/*.py") if path.name != "__init__.py")
    counts = Counter(path.relative_to(SOURCE).parent.as_posix() for path in modules)
    return {room: n for room, n in counts.items() if n > ROOM_MODULES_MAX and not room.startswith(OF_UNITS)}


def core_users() -> dict[str, set[str]]:
    """Each module of core with the folders of the package that import it."""
    users: defaultdict[str, set[str]] = defaultdict(set)
    modules = {f"core.{path.parent.name}.{path.stem}" for path in tracked("src/leadline/core/*/*.py")}
    for path in tracked("src/leadline/*.py"):
        side = path.relative_to(SOURCE).parts[0]
        for module in _CORE_IMPORT.findall(path.read_text(encoding="utf-8")):
            users[f"{module[0]}.{module[1] or module[2]}"].add(side)
    return {name: sides for name, sides in users.items() if name in modules}


def one_sided() -> dict[str, str]:
    """Modules of core that one other folder alone imports: they belong there."""
    return {name: next(iter(sides)) for name, sides in core_users().items() if len(sides) == 1 and sides != {"core"}}


def page() -> str:
    """The page of the docs that draws the house and says what belongs where."""
    known = rooms()
    lines = ["# The house", "", _INTRODUCTION, "", _drawing(known), ""]
    for names in floors():
        lines += [f"## {', '.join(names)}", ""]
        for room in (room for room in known if room.floor in names):
            lines += [f"**`{room.name}`** {room.summary}", "", f"- Here: {room.here}", f"- Elsewhere: {room.elsewhere}"]
            lines += [f"- Stands on: {', '.join(room.stands_on)}.", ""] if room.stands_on else [""]
    lines += ["## crates", "", *(f"- **`{name}`** {summary}" for name, summary in crates().items())]
    return "\n".join([*lines, ""])


def crates() -> dict[str, str]:
    """Each crate with the first sentence of its documentation."""
    first = {
        path.parent.parent.name: path.read_text(encoding="utf-8").partition("\n")[0]
        for path in tracked("crates/*/src/lib.rs")
    }
    return {name: line.removeprefix("//! ") for name, line in first.items()}


def _drawing(known: list[Room]) -> str:
    """The house as SVG: a floor for each layer, a box for each room; a room that holds rooms is their frame."""
    parts, top = [], 0.0
    for names in floors():
        rows = [row for boxes in _groups(names, known) for row in _rows(boxes)]
        height = _LABEL + len(rows) * (_BOX + _GAP) + _GAP
        label = escape(", ".join(names))
        parts.append(
            f'<rect x="0" y="{top:g}" width="{_WIDTH - 1}" height="{height:g}" fill="#f3f6f6" stroke="#2980b9"/>'
        )
        parts.append(f'<text x="{_GAP}" y="{top + 15:g}" font-weight="bold">{label}</text>')
        for row, placed in enumerate(rows):
            y = top + _LABEL + row * (_BOX + _GAP)
            parts += [_box(x, y, width, name, note) for x, width, name, note in placed]
        top += height + _GAP
    style = 'font-family="sans-serif" font-size="12" role="img" aria-label="The rooms of the house, layer by layer"'
    view = f'viewBox="0 0 {_WIDTH} {top:g}" width="100%"'
    return "\n".join([f'<svg xmlns="http://www.w3.org/2000/svg" {view} {style}>', *parts, "</svg>"])


def _groups(names: list[str], known: list[Room]) -> Iterator[list[tuple[str, str]]]:
    """The boxes of a layer (name, and how many modules), in groups that begin a row: of app, what features stand on."""
    inner = [floor for floor in floors("leadline.app")[1:] if names == ["app"]]
    below = [f"app/{name}" for floor in inner for name in floor]
    rooms_here = [room for room in known if room.floor in names and (room.module_count or len(names) > 1)]
    yield [_labelled(room) for room in rooms_here if room.name not in below]
    for name in below:
        yield [_labelled(room) for room in rooms_here if room.name == name]


def _labelled(room: Room) -> tuple[str, str]:
    return room.name, f"{room.module_count} module{'s' * (room.module_count != 1)}"


def _rows(boxes: list[tuple[str, str]]) -> list[list[tuple[float, float, str, str]]]:
    """Boxes left to right, in as many rows as they need: x, width, name, note."""
    rows: list[list[tuple[float, float, str, str]]] = [[]]
    x = float(_GAP)
    for name, note in boxes:
        width = max(len(name), len(note)) * _LETTER + 2 * _GAP
        if x + width > _WIDTH - _GAP and rows[-1]:
            rows.append([])
            x = float(_GAP)
        rows[-1].append((x, width, name, note))
        x += width + _GAP
    return rows


def _box(x: float, y: float, width: float, name: str, note: str) -> str:
    return (
        f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{_BOX}" rx="3" fill="#ffffff" stroke="#7f8c8d"/>'
        f'<text x="{x + _GAP:g}" y="{y + 17:g}">{escape(name)}</text>'
        f'<text x="{x + _GAP:g}" y="{y + 32:g}" fill="#666666" font-size="10">{escape(note)}</text>'
    )


def main() -> int:
    """Print the rooms and what is wrong with them."""
    known = rooms()
    for room in known:
        sys.stdout.write(f"{room.name:24} {room.module_count:4} modules {room.line_count:7,} lines\n")
    whole = sum(len(path.read_text(encoding="utf-8").splitlines()) for path in tracked("src/leadline/*.py"))
    sys.stdout.write(f"{'all of src/leadline':24} {whole:20,} lines\n")
    wrong = [f"{name}: {count} modules, at most {ROOM_MODULES_MAX}" for name, count in heaps().items()]
    wrong += [f"{name}: only {side} imports it; move it there" for name, side in one_sided().items()]
    wrong += [f"{name}: its __init__.py says neither Here nor Elsewhere" for name in undescribed()]
    for line in wrong:
        sys.stdout.write(f"wrong: {line}\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
