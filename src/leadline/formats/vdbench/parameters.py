"""vdbench's parameter files as definitions with their parameters, each with the line it stands in.

Source: Vdbench Users Guide 5.04.07, "Parameter file(s)": lines that begin with ``*``, ``#`` or ``/`` are comments and
``eof`` ends the file; a line ends at its first blank; one that ends with a comma goes on in the next; keywords may be
shortened to what tells them apart; ``(a,b)`` is a list, ``(1-64,d)`` doubles, ``(10-100,10)`` steps. vdbench itself is
not at hand: it is Oracle's, and needs a licence to be fetched. Its own copies of what it read, ``parmfile.html`` and
``parmscan.html`` of an output folder, are read as well.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from leadline.core.model.errors import InputError
from leadline.formats.translation import Written, read_text, wrong

WHAT = "a vdbench parameter file"
VALUES_MAX = 1024
PARAMETERS_MAX = 20_000
_COMMENTS = ("/", "#", "*", "<")
_SCANNED = re.compile(r"\d\d:\d\d:\d\d\.\d+ (line: )?(.*)")
_NUMBER = re.compile(r"(-?\d+(?:\.\d+)?|-?\.\d+)([kmgth%]?)b?", re.IGNORECASE)
_RANGE = re.compile(r"([^-]+)-([^-]+)")
_VARIABLE = re.compile(r"[$!][A-Za-z_]\w*")
_BYTES = {"": 1.0, "k": 1024.0, "m": 1024.0**2, "g": 1024.0**3, "t": 1024.0**4, "h": 3600.0, "%": 1.0}
_SECONDS = {"": 1.0, "k": 1.0, "m": 60.0, "h": 3600.0, "g": 1.0, "t": 1.0, "%": 1.0}
KINDS = ("hd", "sd", "wd", "rd", "fsd", "fwd")
# The parameters of each kind in the order vdbench looks for them: an abbreviation is the first it fits.
_KEYWORDS: dict[str, tuple[str, ...]] = {
    "sd": (
        *("host", "lun", "count", "size", "threads", "hitarea", "offset", "align", "kstat", "instance", "replay"),
        *("journal", "resetlun", "resetbus", "openflags", "range", "dedupratio", "dedupunit", "dedupsets", "streams"),
    ),
    "wd": (
        *("skew", "xfersize", "rdpct", "readpct", "wrpct", "writepct", "range", "hotband", "seekpct", "stride"),
        *("priority", "iorate", "rhpct", "whpct", "host", "openflags", "user", "threads", "streams"),
    ),
    "rd": (
        *("iorate", "maxdata", "curve", "stopcurve", "elapsed", "interval", "warmup", "replay", "pause"),
        *("forxfersize", "forthreads", "forrdpct", "forrhpct", "forwhpct", "forseekpct", "forhitarea", "forcompratio"),
        *("forsizes", "xfersize", "threads", "rdpct", "rhpct", "whpct", "seekpct", "hitarea", "compratio"),
        *(
            "distribution",
            "startcmd",
            "endcmd",
            "fwdrate",
            "operations",
            "foroperations",
            "format",
            "openflags",
            "mount",
        ),
    ),
    "fsd": (
        *("anchor", "journal", "width", "depth", "sizes", "shared", "workingsetsize", "wss", "totalsize", "total_size"),
        *("files", "distribution", "openflags", "log", "count"),
    ),
    "fwd": (
        *("rdpct", "readpct", "stopafter", "operation", "fileselect", "fileio", "xfersizes", "skew", "threads"),
        *("target", "host", "openflags"),
    ),
}
# Keywords that begin a definition, by the kind of the one before; the others are parameters of it.
_BEGINS: dict[str, tuple[str, ...]] = {
    "": KINDS,
    "hd": KINDS,
    "sd": ("sd", "wd", "rd", "fwd", "fsd"),
    "wd": ("wd", "rd", "fwd"),
    "rd": ("rd",),
    "fsd": ("fsd", "fwd", "rd", "sd", "wd"),
    "fwd": ("fwd", "rd", "wd"),
}


@dataclass(frozen=True, slots=True)
class Parameter(Written):
    """A parameter: as written and as vdbench calls it, its values as text, and where it stands."""

    values: tuple[str, ...]

    @property
    def text(self) -> str:
        """The first value in lower case; nothing when there is none."""
        return self.values[0].lower() if self.values else ""

    def numbers(self) -> list[float]:
        """Its values as numbers: bytes of sizes, seconds of times; a percentage is its number.

        Raises:
            InputError: one is no number.
        """
        units = _SECONDS if self.name in ("elapsed", "interval", "pause", "warmup") else _BYTES
        return [_number(self, text, units) for text in _listed(self)]

    def number(self) -> float:
        """The first of its numbers.

        Raises:
            InputError: there is none.
        """
        numbers = self.numbers()
        if not numbers:
            raise self.wrong("a number")
        return numbers[0]

    def wrong(self, expected: str) -> InputError:
        """The error of a value that cannot be."""
        return wrong(self.where, f"{self.written}={','.join(self.values)[:60]}", expected)


@dataclass(slots=True)
class Definition:
    """A definition: its kind, name, line, and its parameters by name, those of its kind's default included."""

    kind: str
    name: str
    file: str
    line: int
    parameters: dict[str, Parameter] = field(default_factory=dict)
    explicit_parameters: list[Parameter] = field(default_factory=list)

    @property
    def at(self) -> tuple[str, int, str]:
        """Where a note on all of it belongs."""
        return self.file, self.line, f"{self.kind}={self.name}"

    def wrong(self, expected: str) -> InputError:
        """The error of a definition that cannot be."""
        return wrong(f"{self.file}:{self.line}:1", f"{self.kind}={self.name}", expected)


@dataclass(slots=True)
class ParameterFile:
    """General parameters, the definitions in order, and the parameters of their defaults."""

    general: list[Parameter]
    definitions: list[Definition]
    defaults: list[Definition]

    def of(self, kind: str) -> list[Definition]:
        """The definitions of a kind."""
        return [definition for definition in self.definitions if definition.kind == kind]


def meaningful(text: str) -> Iterator[tuple[int, str]]:
    """Yield the number and text of each line that holds parameters; of ``parmscan.html`` those vdbench read."""
    for number, line in enumerate(text.split("\n"), start=1):
        stripped = line.strip()
        scanned = _SCANNED.match(stripped)
        if scanned is not None:
            if not scanned[1]:
                continue
            stripped = scanned[2].strip()
        if stripped.startswith("eof"):
            return
        if stripped and not stripped.startswith(_COMMENTS):
            yield number, stripped


def read_parameters(path: Path) -> ParameterFile:
    """The definitions of a file, and of those it includes.

    Raises:
        InputError: it is no parameter file; with line and column.
    """
    parsed = ParameterFile([], [], [])
    defaults: dict[str, dict[str, Parameter]] = {kind: {} for kind in KINDS}
    current: Definition | None = None
    count = 0
    for file, number, text in _joined(_with_includes(path)):
        for column, part in _parts(text, f"{file}:{number}"):
            count += 1
            if count > PARAMETERS_MAX:
                raise wrong(f"{file}:{number}:{column}", f"more than {PARAMETERS_MAX} parameters", WHAT)
            kind = current.kind if current is not None else ""
            parameter = _parameter(file, number, column, part, kind)
            if parameter.name in _BEGINS[kind]:
                current = Definition(parameter.name, parameter.values[0] if parameter.values else "", file, number)
                is_default = current.name == "default"
                (parsed.defaults if is_default else parsed.definitions).append(current)
                current.parameters = defaults[current.kind] if is_default else dict(defaults[current.kind])
            elif current is None:
                parsed.general.append(parameter)
            else:
                current.parameters[parameter.name] = parameter
                current.explicit_parameters.append(parameter)
    return parsed


def _with_includes(path: Path) -> Iterator[tuple[Path, int, str]]:
    for number, line in meaningful(read_text(path, WHAT)):
        if not line.startswith("include="):
            yield path, number, line
            continue
        name = line.partition("=")[2].split(" ")[0]
        place = next((candidate for candidate in (path.parent / name, Path(name)) if candidate.is_file()), None)
        if place is None:
            raise wrong(
                f"{path}:{number}:9", f"include={name}: no such file", "a file beside the parameter file or here"
            )
        for inner, text in meaningful(read_text(place, WHAT)):
            if text.startswith("include="):
                raise wrong(f"{place}:{inner}:1", "an include in an included file", "one level of include")
            yield place, inner, text


def _joined(lines: Iterator[tuple[Path, int, str]]) -> Iterator[tuple[str, int, str]]:
    """Lines without what follows their first blank. Each keeps its number: those that go on need not be one."""
    open_text, began = "", ("", 0)
    for path, number, line in lines:
        variable = _VARIABLE.search(line)
        if variable is not None:
            where = f"{path}:{number}:{variable.start() + 1}"
            raise wrong(where, f"the variable {variable[0]}", "its value", "Write it into a copy of the file.")
        text = _unblanked(line)
        if open_text.count("(") > open_text.count(")"):
            text = open_text + text
            path, number = Path(began[0]), began[1]  # noqa: PLW2901 - a list over several lines belongs to its first
        if text.endswith(",") and text.count("(") > text.count(")"):
            open_text, began = text, (str(path), number)
            continue
        open_text = ""
        yield str(path), number, text
    if open_text:
        yield began[0], began[1], open_text


def _unblanked(line: str) -> str:
    """A line up to its first blank; blanks between quotes stay, and the quotes go."""
    kept, quoted = [], False
    for character in line:
        if character == '"':
            quoted = not quoted
        elif character.isspace() and not quoted:
            break
        else:
            kept.append("\0" if quoted and character in ",()" else character)
    return "".join(kept)


def _parts(text: str, where: str) -> Iterator[tuple[int, str]]:
    """The parameters of a line, divided by the commas outside parentheses, with their columns."""
    depth, begin = 0, 0
    for index, character in enumerate(f"{text},"):
        if character == "(":
            depth += 1
        elif character == ")":
            depth -= 1
            if depth < 0:
                raise wrong(f"{where}:{index + 1}", "a parenthesis that was not opened", WHAT)
        elif character == "," and depth == 0:
            if text[begin:index].strip():
                yield begin + 1, text[begin:index]
            begin = index + 1
    if depth:
        raise wrong(f"{where}:{len(text)}", "a parenthesis that is not closed", WHAT)


def _parameter(file: str, number: int, column: int, part: str, kind: str) -> Parameter:
    written, mark, value = part.partition("=")
    where = f"{file}:{number}:{column}"
    if not mark or not re.fullmatch(r"[A-Za-z_]\w*", written):
        raise wrong(where, "no KEYWORD=VALUE", WHAT)
    values = tuple(entry.replace("\0", ",") for entry in value.strip("()").split(",") if entry)
    if len(values) > VALUES_MAX:
        raise wrong(where, f"{len(values)} values", f"at most {VALUES_MAX}")
    return Parameter(file, number, column, written, _keyword(written.lower(), kind), values)


def _keyword(written: str, kind: str) -> str:
    """The name an abbreviation stands for where it is a parameter of a kind."""
    if written in KINDS or len(written) < 2:
        return written
    known = _KEYWORDS.get(kind, ())
    return written if written in known else next((name for name in known if name.startswith(written)), written)


def _number(parameter: Parameter, text: str, units: dict[str, float]) -> float:
    match = _NUMBER.fullmatch(text)
    if match is None:
        raise parameter.wrong("a number, as 8k, 50 or 10g")
    return float(match[1]) * units[match[2].lower()]


def _listed(parameter: Parameter) -> list[str]:
    """The values with ranges written out: ``1-8,d`` as 1, 2, 4, 8 and ``10-30,10`` as 10, 20, 30."""
    listed: list[str] = []
    values = list(parameter.values)
    while values:
        text = values.pop(0)
        match = _RANGE.fullmatch(text)
        if match is None or not values:
            listed.append(text)
            continue
        first, last = (_number(parameter, end, _BYTES) for end in match.groups())
        step_text = values.pop(0)
        step = 0.0 if step_text == "d" else _number(parameter, step_text, _BYTES)
        listed += _stepped(parameter, first, last, step)
    return listed


def _stepped(parameter: Parameter, first: float, last: float, step: float) -> list[str]:
    if first <= 0 or (step <= 0 and step != 0) or abs(last) > 2.0**62:
        raise parameter.wrong("a range that rises, as (1-64,d) or (10-100,10)")
    steps, value = [f"{first:.6f}"], first
    falls = last < first and step == 0
    while len(steps) <= VALUES_MAX:
        value = value / 2 if falls else value * 2 if step == 0 else value + step
        if (value < last) if falls else (value > last):
            return steps
        steps.append(f"{value:.6f}")
    raise parameter.wrong(f"at most {VALUES_MAX} values")
