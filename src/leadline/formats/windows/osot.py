r"""Templates of the OS Optimization Tool (VMware, later Omnissa Horizon): XML that lists settings of Windows.

Nested ``group`` elements hold ``step`` elements; a step has a name, a category (Mandatory, Recommended, Optional) and
an ``action`` with a type (Registry, Service, SchTasks, ShellExecute, ...), a command and parameters. Names are
accepted as attributes and as child elements, in any case, because versions of the tool differ.

Source: public checks that read these templates (elements ``sequence``, ``runOnOs``, ``step``, ``category``, ``action``
with ``type``, ``command`` and ``params``: ``keyName``, ``valueName``, ``data``, ``serviceName``, ``startMode``,
``taskName``, ``status``; commands ADD, DELETEKEY, DELETEVALUE, LOAD, UNLOAD).
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from leadline.core.io.source import decode
from leadline.core.model.errors import InputError, LimitError

BYTES_MAX = 16 * 1024**2  # Judgement: the largest known templates have half a megabyte
DEPTH_MAX = 64
_CONDITIONS = ("condition", "conditions", "osreleaseid", "messageonly", "customoptimization")


@dataclass(frozen=True, slots=True)
class TemplateStep:
    """One step of a template, as written there.

    Attributes:
        groups: names of the groups it lies in, outermost first.
        kind: the action's type, lower case: registry, service, schtasks, shellexecute, ...; "" when it has none.
        command: the action's command, upper case (ADD, DELETEVALUE, ...); "" when it has none.
        params: parameter -> value, names in lower case.
        selected: whether the template selects it; None when it does not say.
        conditions: what the template makes it depend on: names of conditions, releases, further actions.
    """

    groups: tuple[str, ...]
    name: str
    description: str
    category: str
    kind: str
    command: str
    params: dict[str, str]
    selected: bool | None
    conditions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Template:
    """A template: its name, the systems it says it is for, its steps in order."""

    name: str
    systems: str
    steps: tuple[TemplateStep, ...]


def read_template(path: Path) -> Template:
    """The template in a file.

    Raises:
        InputError: it is not whole XML, has a document type, or is no such template.
        LimitError: it is larger than any template can be.
    """
    name = str(path)
    try:
        size = path.stat().st_size
        data = path.read_bytes() if size <= BYTES_MAX else b""
    except OSError as error:
        raise _wrong(name, f"not readable ({error.strerror})") from error
    if size > BYTES_MAX:
        raise LimitError(
            name, found=f"{size} bytes", expected=f"at most {BYTES_MAX}", advice="Is it a template, or a log?"
        )
    root = _root(decode(data), name)
    if _tag(root) != "sequence":
        raise _wrong(name, f"an element {_tag(root)[:40]!r} at the top")
    steps = tuple(_steps(root, (), 0, name))
    if not steps:
        raise _wrong(name, "no step")
    return Template(_field(root, "name") or path.stem, _field(root, "runonos"), steps)


def _root(text: str, name: str) -> ET.Element:
    if "<!DOCTYPE" in text or "<!ENTITY" in text:  # entities defined in a file may grow without bound
        raise _wrong(name, "a document type declaration")
    try:
        # An encoding in the declaration is of the bytes, which are text by now.
        return ET.fromstring(text[text.index("?>") + 2 :] if text.lstrip().startswith("<?xml") else text)
    except (ET.ParseError, ValueError, RecursionError) as error:
        line = getattr(error, "position", (1, 0))[0]
        raise _wrong(f"{name}:{line}", f"XML that breaks ({str(error)[:80]})") from error


def _wrong(where: str, problem: str) -> InputError:
    return InputError(
        where,
        found=problem,
        expected="an OS Optimization Tool template (a sequence of groups and steps)",
        advice="Export it again from the tool.",
    )


def _steps(element: ET.Element, groups: tuple[str, ...], depth: int, name: str) -> Iterator[TemplateStep]:
    if depth > DEPTH_MAX:
        raise _wrong(name, f"groups nested more than {DEPTH_MAX} deep")
    for child in element:
        if _tag(child) == "step":
            yield _step(child, groups)
        elif _tag(child) == "group":
            yield from _steps(child, (*groups, _field(child, "name") or "unnamed"), depth + 1, name)
        elif len(child) and _tag(child) != "globalvarlist":
            yield from _steps(child, groups, depth + 1, name)


def _step(element: ET.Element, groups: tuple[str, ...]) -> TemplateStep:
    action = next((child for child in element if _tag(child) == "action"), ET.Element("action"))
    parts = next((child for child in action if _tag(child) == "params"), ET.Element("params"))
    params = {key.lower(): value for key, value in parts.attrib.items()}
    params |= {_tag(child): (child.text or "").strip() for child in parts if not len(child)}
    selected = _field(element, "defaultselected").lower()
    conditions = [name for name in _CONDITIONS if _has(element, name) or _has(action, name)]
    if sum(_tag(child) == "action" for child in element) > 1:
        conditions.append("a second action")
    return TemplateStep(
        groups=groups,
        name=_field(element, "name") or "unnamed",
        description=_field(element, "description"),
        category=_field(element, "category"),
        kind=_field(action, "type").lower(),
        command=_field(action, "command").upper(),
        params=params,
        selected={"true": True, "1": True, "false": False, "0": False}.get(selected),
        conditions=tuple(conditions),
    )


def _tag(element: ET.Element) -> str:
    return str(element.tag).rpartition("}")[2].lower()


def _has(element: ET.Element, name: str) -> bool:
    """Whether an element has a value under a name: an attribute or a child element that is not empty."""
    has_child = any(_tag(child) == name and (len(child) or (child.text or "").strip()) for child in element)
    return has_child or any(key.lower() == name and value.strip() for key, value in element.attrib.items())


def _field(element: ET.Element, name: str) -> str:
    """An attribute or a child element's text, whichever is there; "" for neither."""
    for key, value in element.attrib.items():
        if key.lower() == name:
            return value.strip()
    for child in element:
        if _tag(child) == name:
            return (child.text or "").strip()
    return ""
