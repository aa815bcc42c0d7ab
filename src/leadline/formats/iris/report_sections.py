"""HTML reports that hold the output of many tools, cut into their sections: pButtons and SystemPerformance.

A section begins with ``<div id=NAME>`` or ``<!-- beg_NAME -->`` and ends with ``</pre>``, ``<!-- end_NAME -->`` or
where the next one begins. What stands between its mark and ``<pre>`` on one line is its title.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from leadline.core.io.source import Source
from leadline.core.model.capture import CaptureBuilder
from leadline.core.model.entities import Entity

_BEGIN = re.compile(r"<!--\s*beg_(\w+)\s*-->|<div id=[\"']?([\w% -]{1,30}?)[\"']?>(?:</div>)?", re.IGNORECASE)
_END = re.compile(r"<!--\s*end_\w+\s*-->|</pre>", re.IGNORECASE)
_PRE = re.compile(r"<pre>", re.IGNORECASE)
_TAG = re.compile(r"<[^<>]*>")
_SAME = {"win_perfmon": "perfmon"}

Lines = list[tuple[int, str]]


@dataclass(slots=True)
class Sections:
    """A report in pieces.

    Attributes:
        lines: by the section's name in lower case, its lines with their numbers, without tags; blank ones left out.
        last: the section the file ends within, "" when it ends outside of one.
    """

    lines: dict[str, Lines] = field(default_factory=dict)
    last: str = ""

    def of(self, *names: str) -> Lines:
        """The lines of the first of these sections that is there; none where none is."""
        return next((self.lines[name] for name in names if name in self.lines), [])

    def texts(self, *names: str) -> Iterator[str]:
        """The lines of a section without their numbers."""
        return (text for _, text in self.of(*names))


def cut_into_sections(lines: list[str], whole: str = "") -> Sections:
    """The sections of a report; ``whole`` names what lines outside of any section belong to, "" for nothing."""
    sections = Sections(last=whole)
    for number, line in enumerate(lines, 1):
        if "<" not in line:
            _keep(sections, sections.last, number, line)
            continue
        begins = list(_BEGIN.finditer(line))
        text = line
        if begins:
            name = (begins[-1][1] or begins[-1][2]).lower()
            sections.last = _SAME.get(name, name.replace("_", "-"))
            sections.lines.setdefault(sections.last, [])
            text = line[begins[-1].end() :]
            pre = _PRE.search(text)
            text = "" if pre is None else text[pre.end() :]
        end = _END.search(text)
        _keep(sections, sections.last, number, _TAG.sub("", text if end is None else text[: end.start()]))
        if end is not None:
            sections.last = ""
    return sections


def section_source(source: Source, lines: Lines, folder: Path, name: str) -> Source:
    """A section as a file of its own, its lines where they are in the report, so that errors name the report's lines.

    Args:
        source: the report.
        lines: of the section.
        folder: where to write the file.
        name: of the file.
    """
    padded: list[str] = []
    for number, text in lines:
        padded.extend([""] * (number - 1 - len(padded)))
        padded.append(text)
    path = folder / name
    path.write_text("\n".join([*padded, ""]), encoding="utf-8")
    os.utime(path, ns=(source.mtime_ns, source.mtime_ns))
    return Source(source.name, path)


def _keep(sections: Sections, section: str, number: int, text: str) -> None:
    if section and text.strip():
        sections.lines.setdefault(section, []).append((number, text))


@dataclass(slots=True)
class Folded:
    """One capture of several sections: a series that one shows is not taken from a later one again.

    Attributes:
        builder: takes the series.
        seen: metrics and entities it has.
    """

    builder: CaptureBuilder
    seen: set[tuple[str, Entity]] = field(default_factory=set)

    @contextmanager
    def part(self, *unsaid: str) -> Iterator[CaptureBuilder]:
        """A builder for one section, added at the end, without its warnings of the codes that go unsaid."""
        builder = CaptureBuilder(self.builder.info.name, self.builder.info.importer, self.builder.info.tool)
        yield builder
        capture = builder.build()
        for group in capture.groups:
            rows = [row for row, entity in enumerate(group.entities) if (group.metric, entity) not in self.seen]
            self.seen.update((group.metric, group.entities[row]) for row in rows)
            if rows:
                self.builder.add(group.take(rows))
        for warning in (candidate for candidate in capture.sources[0].warnings if candidate.code not in unsaid):
            self.builder.warn(warning.code, warning.message, warning.count)
        self.builder.inventory.merge(capture.inventory)
