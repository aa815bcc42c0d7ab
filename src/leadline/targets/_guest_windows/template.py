r"""Windows templates: those that are shipped, those a user saved, and which builds of Windows each is for."""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, model_validator

from leadline.core.io.outputs import mark
from leadline.core.io.yaml_files import parse_model, read_model
from leadline.core.model.errors import UsageError
from leadline.targets._guest_windows.model import LIMITS, WindowsItem

KIND = "a Windows template"
GUIDE = "docs/guides/guest.md"
STARTS = {"auto": "Automatic", "automatic": "Automatic", "manual": "Manual", "disabled": "Disabled"}
STATES = {"enabled": "Enabled", "disabled": "Disabled"}
WILDCARDS = frozenset("*?[]`")
_PACKAGE = "leadline.targets"
_FOLDER = "windows_templates"
_LINE_MAX = 2000
_GUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


class WindowsTemplateItem(BaseModel):
    """One item of a template file, as it is written there."""

    model_config = ConfigDict(extra="forbid", strict=True)

    id: str = Field(pattern=r"^[a-z0-9][a-z0-9-]{0,79}$")
    title: str = Field(max_length=_LINE_MAX)
    kind: Literal["registry", "remove-value", "service", "task", "power-plan", "rss", "app"]
    path: str = Field(default="", max_length=_LINE_MAX)
    name: str = Field(default="", max_length=_LINE_MAX)
    type: Literal["", "String", "ExpandString", "DWord", "QWord", "MultiString", "Binary"] = ""
    value: str | int | list[str] = ""
    reason: str = Field(max_length=_LINE_MAX)
    source: str = Field(max_length=_LINE_MAX)
    risk: str = Field(max_length=_LINE_MAX)
    rule: str | None = None
    default: bool = True

    @model_validator(mode="after")
    def _fits_its_kind(self) -> WindowsTemplateItem:
        if problem := self._problem():
            raise ValueError(f"item {self.id}: {problem}")
        return self

    def _problem(self) -> str | None:
        """Why the item cannot be what its kind says; None when it can."""
        if self.kind in ("registry", "remove-value"):
            return self._registry_problem()
        if self.path or self.type:
            return f"an item of kind {self.kind} has no path and no type"
        if self.kind in ("service", "task", "app") and not self.name:
            return f"an item of kind {self.kind} needs a name"
        if WILDCARDS & set(self.name):
            return "a name with a wildcard, which could mean more than the journal holds"
        values = {"service": STARTS.values(), "task": STATES.values(), "app": ("Removed",), "rss": ("vmxnet3",)}
        if self.kind in values and self.value not in values[self.kind]:
            return f"a value {self.value!r}, expected {' or '.join(dict.fromkeys(values[self.kind]))}"
        if self.kind == "power-plan" and not _GUID.fullmatch(str(self.value)):
            return "a power plan is named by its GUID"
        return "a task begins with a backslash" if self.kind == "task" and not self.name.startswith("\\") else None

    def _registry_problem(self) -> str | None:
        if not re.match(r"HK(?:LM|CU):\\[^\\]", self.path):
            return r"a path that does not begin with HKLM:\ or HKCU:\ and a key"
        if not self.name:
            return "a registry item needs a name; (default) is the value without one"
        if self.kind == "remove-value":
            return None if not self.type and self.value == "" else "a value that is removed has no type and no value"
        if self.type in LIMITS:
            fits = isinstance(self.value, int) and 0 <= self.value < LIMITS[self.type]
            return None if fits else f"a value that is no number of type {self.type}"
        if self.type == "MultiString":
            return None if isinstance(self.value, list) else "a MultiString is a list of texts"
        if not self.type or not isinstance(self.value, str):
            return f"a value that does not fit the type {self.type or 'which is missing'}; quote a text"
        if self.type == "Binary" and not re.fullmatch(r"(?:[0-9a-fA-F]{2})*", self.value):
            return "a Binary is hexadecimal digits, two a byte"
        return None


class WindowsTemplateFile(BaseModel):
    """A template file."""

    model_config = ConfigDict(extra="forbid", strict=True)

    template: str = Field(min_length=1, max_length=200)
    title: str = Field(default="", max_length=_LINE_MAX)
    builds: list[int] | None = Field(default=None, min_length=2, max_length=2)
    items: list[WindowsTemplateItem] = Field(min_length=1, max_length=5000)

    @model_validator(mode="after")
    def _ids_differ(self) -> WindowsTemplateFile:
        seen: set[str] = set()
        for item in self.items:
            if item.id in seen:
                raise ValueError(f"item {item.id} is there twice")
            seen.add(item.id)
        if self.builds and self.builds[0] > self.builds[1]:
            raise ValueError("builds: the first is larger than the last")
        return self


@dataclass(frozen=True, slots=True)
class WindowsTemplate:
    """A template: its name, its items, and the first and last build of Windows it is for, None for any."""

    name: str
    title: str
    builds: tuple[int, int] | None
    items: list[WindowsItem]


def templates() -> list[str]:
    """Names of the shipped templates."""
    folder = resources.files(_PACKAGE).joinpath(_FOLDER)
    return sorted(file.name.removesuffix(".yaml") for file in folder.iterdir() if file.name.endswith(".yaml"))


def template_of(name: str) -> WindowsTemplate:
    """A shipped template by its name, or the one in a file whose name ends in ``.yaml`` or ``.yml``.

    Raises:
        UsageError: there is no such template.
        InputError: the file is no template, with line and column.
    """
    if name.endswith((".yaml", ".yml")):
        return _template(read_model(Path(name), WindowsTemplateFile, KIND, GUIDE))
    if name not in templates():
        raise UsageError(
            f"template {name}",
            found="no such Windows template",
            expected="a shipped one, or a file that ends in .yaml",
            advice=f"One of {', '.join(templates())}.",
        )
    text = resources.files(_PACKAGE).joinpath(_FOLDER, f"{name}.yaml").read_text("utf-8")
    return _template(parse_model(text, f"{name}.yaml", WindowsTemplateFile, KIND, GUIDE))


def _template(file: WindowsTemplateFile) -> WindowsTemplate:
    items = []
    for entry in file.items:
        plain = entry.model_dump()
        plain["value"] = tuple(entry.value) if isinstance(entry.value, list) else entry.value
        items.append(WindowsItem(**plain))
    builds = (file.builds[0], file.builds[1]) if file.builds else None
    return WindowsTemplate(file.template, file.title, builds, items)


def load_template(name: str) -> list[WindowsItem]:
    """The items of a template, shipped or in a file.

    Raises:
        UsageError: there is no such template.
        InputError: the file is no template.
    """
    return template_of(name).items


def saved(template: WindowsTemplate) -> str:
    """The text of a template file that `template_of` reads again: every item in it is taken by default."""
    entries = []
    for item in template.items:
        entry = {name: getattr(item, name) for name in item.__dataclass_fields__}
        entry["value"] = list(item.value) if isinstance(item.value, tuple) else item.value
        unsaid = {name for name in ("path", "name", "type", "rule") if not entry[name]} | {"default"}
        entries.append({key: value for key, value in entry.items() if key not in unsaid})
    plain: dict[str, object] = {"template": template.name, "title": template.title}
    if template.builds:
        plain["builds"] = list(template.builds)
    head = mark("leadline guest export --save")
    return head + yaml.safe_dump({**plain, "items": entries}, sort_keys=False, allow_unicode=True, width=110)


def fitting(build: int) -> list[str]:
    """Names of the shipped templates whose range has a build of Windows in it."""
    return [name for name in templates() if (builds := template_of(name).builds) and builds[0] <= build <= builds[1]]


def ranges() -> list[tuple[int, int, str]]:
    """First and last build and name of each shipped template that is for some builds only."""
    return [(*builds, name) for name in templates() if (builds := template_of(name).builds)]


def check_build(template: WindowsTemplate, build: int) -> None:
    """Refuse a template that is not for a build of Windows.

    Raises:
        UsageError: the build is outside of the template's range; the template that fits is named.
    """
    if template.builds is None or template.builds[0] <= build <= template.builds[1]:
        return
    others = fitting(build)
    advice = f"Use --template {others[0]}." if others else "No shipped template is for this build; write one (--save)."
    raise UsageError(
        f"template {template.name}",
        found=f"a guest of build {build}",
        expected=f"a build from {template.builds[0]} to {template.builds[1]}",
        advice=advice,
    )
