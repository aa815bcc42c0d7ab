r"""A Windows guest: registry values, services, scheduled tasks, power plan, as a PowerShell script to run there.

Changes:
    Nothing from here: the export is a script for somebody to read and run. It shows what it would change; with
    ``-Apply`` it changes it. Registry values, start types of services, states of scheduled tasks, the active power plan
    and receive side scaling of vmxnet3 adapters; no command line of a template is ever taken over.

Undo:
    Before the first change the script writes what each place held to a journal beside itself; run with ``-Revert`` it
    puts that back and removes values and keys that were not there. A delayed automatic start comes back as automatic;
    empty parent keys that were made stay.

Unsafe ranges:
    Not tested on Windows: only the script's syntax is checked. Try it on a copy of the guest. Steps of a foreign
    template are only as good as that template.

Sources:
    Microsoft: about_Quoting_Rules, New-ItemProperty, Set-Service, ScheduledTasks module, NetAdapter module, powercfg.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib import resources
from itertools import groupby
from typing import Any

import yaml

from leadline.core.model.errors import UsageError
from leadline.formats.windows.osot import Template, TemplateStep

KINDS = ("registry", "remove-value", "service", "task", "power-plan", "rss")
_WILDCARDS = frozenset("*?[]`")
_HIVES = {"HKLM": "HKLM:", "HKEY_LOCAL_MACHINE": "HKLM:"}
_TYPES = {
    "REG_SZ": "String",
    "REG_EXPAND_SZ": "ExpandString",
    "REG_DWORD": "DWord",
    "REG_QWORD": "QWord",
}
_LIMITS = {"DWord": 1 << 32, "QWord": 1 << 64}
_STARTS = {"auto": "Automatic", "automatic": "Automatic", "manual": "Manual", "disabled": "Disabled"}
_STATES = {"enabled": "Enabled", "disabled": "Disabled"}


@dataclass(frozen=True, slots=True)
class WindowsItem:
    r"""One setting: what kind of thing it is, where, what it should hold, and what to know before taking it.

    Attributes:
        kind: one of `KINDS`.
        path: registry key as PowerShell writes it (``HKLM:\...``); "" for other kinds.
        name: value, service or task.
        type: registry type as PowerShell names it; "" for other kinds.
        value: what it should hold; an int for DWord and QWord.
    """

    id: str
    title: str
    kind: str
    path: str
    name: str
    type: str
    value: str | int
    reason: str
    source: str
    risk: str
    rule: str | None = None
    default: bool = True


@dataclass(frozen=True, slots=True)
class Untaken:
    """A step of a foreign template that is not exported, and why."""

    step: TemplateStep
    why: str


def templates() -> list[str]:
    """Names of the shipped templates."""
    folder = resources.files("leadline.targets").joinpath("windows_templates")
    return sorted(file.name.removesuffix(".yaml") for file in folder.iterdir() if file.name.endswith(".yaml"))


def load_template(name: str) -> list[WindowsItem]:
    """The items of a shipped template.

    Raises:
        UsageError: there is no such template.
    """
    if name not in templates():
        raise UsageError(
            f"template {name}",
            found="no such Windows template",
            expected="a shipped one",
            advice=f"One of {', '.join(templates())}.",
        )
    text = resources.files("leadline.targets").joinpath("windows_templates", f"{name}.yaml").read_text("utf-8")
    return [_item(entry) for entry in yaml.safe_load(text)["items"]]


def _item(entry: dict[str, Any]) -> WindowsItem:
    plain = {"path": "", "name": "", "type": "", **entry}
    return WindowsItem(**plain)


def items_of(template: Template) -> tuple[list[WindowsItem], list[Untaken]]:
    """A foreign template as items, and the steps that cannot be taken with a way back."""
    items: list[WindowsItem] = []
    left: list[Untaken] = []
    for number, step in enumerate(template.steps, start=1):
        translated = _refusal(step) or _translated(step)
        if isinstance(translated, str):
            left.append(Untaken(step, translated))
            continue
        items.append(
            WindowsItem(
                id=f"{number:03d}-{_slug(step.name)}",
                title=step.name,
                **translated,
                reason=step.description or "not given by the template",
                source=f"{template.name}: {' / '.join((*step.groups, step.name))} ({step.category or 'no category'})",
                risk="not judged by Leadline",
                default=step.category.lower() == "mandatory" if step.selected is None else step.selected,
            )
        )
    return items, left


def _refusal(step: TemplateStep) -> str | None:
    """Why a step is left whatever it does."""
    if step.conditions:
        return f"it depends on {', '.join(step.conditions)}"
    named = (step.params.get(key, "") for key in ("keyname", "valuename", "servicename", "taskname"))
    if any(_WILDCARDS & set(name) for name in named):
        return "a name with a wildcard, which could mean more than the journal holds"
    return None


def _translated(step: TemplateStep) -> dict[str, Any] | str:
    """Kind, path, name, type and value of a step, or why it is left."""
    plain = {"path": "", "name": "", "type": ""}
    params = step.params
    if step.kind == "registry":
        return _registry(step)
    if step.kind == "service":
        start = _STARTS.get(params.get("startmode", "").lower())
        if not params.get("servicename") or start is None:
            return "a service without a name or with an unknown start mode"
        return {**plain, "kind": "service", "name": params["servicename"], "value": start}
    if step.kind == "schtasks":
        state = _STATES.get(params.get("status", "").lower())
        if not params.get("taskname") or state is None:
            return "a task without a name or with an unknown state"
        task = params["taskname"]
        return {**plain, "kind": "task", "name": task if task.startswith("\\") else f"\\{task}", "value": state}
    if step.kind == "shellexecute":
        return "a command line: what it changes is not known, so there is no way back"
    return f"an action of type {step.kind!r}, which is not known"


def _registry(step: TemplateStep) -> dict[str, Any] | str:
    hive, _, key = step.params.get("keyname", "").partition("\\")
    root = _HIVES.get(hive.upper())
    if root is None or not key:
        return f"a key under {hive or 'nothing'}: only HKLM is taken, which is the same for every user"
    name = step.params.get("valuename", "")
    name = "(default)" if name.lower() in ("", "(default)") else name
    place = {"path": f"{root}\\{key}", "name": name}
    if step.command == "DELETEVALUE":
        return {**place, "kind": "remove-value", "type": "", "value": ""}
    if step.command != "ADD":
        return f"registry command {step.command or 'none'}: only ADD and DELETEVALUE are taken"
    kind = _TYPES.get(step.params.get("type", "").upper())
    if kind is None:
        return f"a registry value of type {step.params.get('type') or 'not stated'}"
    number = _number(step.params.get("data", ""), _LIMITS[kind]) if kind in _LIMITS else None
    if kind in _LIMITS and number is None:
        return f"a {kind} whose data is no number that fits it"
    return {
        **place,
        "kind": "registry",
        "type": kind,
        "value": step.params.get("data", "") if number is None else number,
    }


def _number(text: str, limit: int) -> int | None:
    if not re.fullmatch(r"[0-9]{1,20}|0[xX][0-9a-fA-F]{1,16}", text):
        return None
    number = int(text, 16) if text[:2].lower() == "0x" else int(text)
    return number if number < limit else None


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:40].rstrip("-") or "step"


def chosen(items: list[WindowsItem], take: list[str], leave: list[str]) -> list[WindowsItem]:
    """The items taken by default, with those named in ``take`` and without those in ``leave``.

    Raises:
        UsageError: a name is not in the template.
    """
    known = {item.id for item in items}
    for name in (*take, *leave):
        if name not in known:
            raise UsageError(
                f"item {name}",
                found="not in the template",
                expected="an item's id",
                advice="`leadline guest reference` lists those of a file; the shipped one has "
                + ", ".join(item.id for item in load_template("windows-database"))
                + ".",
            )
    return [item for item in items if item.id not in leave and (item.default or item.id in take)]


def quoted(text: str) -> str:
    """Text as an expression of PowerShell: single-quoted ASCII, in which nothing is expanded, and numbers for the rest.

    Some quotation marks beyond ASCII end a single-quoted string, and which bytes are one depends on the code page the
    script is read in; numbers mean the same everywhere.

    >>> quoted("it's")
    "'it''s'"
    >>> quoted("a\u2019")
    "('a' + [char]0x2019)"
    """
    written = []
    for plain, run in groupby(text, lambda character: " " <= character <= "~"):
        part = "".join(run)
        if plain:
            written.append(f"""'{part.replace("'", "''")}'""")
        else:
            units = part.encode("utf-16-be", "surrogatepass")
            written += [f"[char]0x{units[at : at + 2].hex()}" for at in range(0, len(units), 2)]
    if not written or written[0].startswith("["):
        written.insert(0, "''")  # a sum that begins with a string is a string
    return written[0] if len(written) == 1 else f"({' + '.join(written)})"


def script(name: str, items: list[WindowsItem]) -> str:
    """The PowerShell script; text of a template stands in it only as single-quoted strings."""
    folder = resources.files("leadline.targets").joinpath("windows_templates")
    body = folder.joinpath("script.ps1").read_text("utf-8")
    rows = ",\n".join(_row(item) for item in items)
    # One pass over the shipped text, so that text of a template is never looked at for placeholders.
    parts = {"@@NAME@@": quoted(name), "@@ITEMS@@": rows, "@@JOURNAL@@": quoted(f"{_slug(name)}.json")}
    return re.sub("@@[A-Z]+@@", lambda match: parts[match[0]], body)


def _row(item: WindowsItem) -> str:
    value = str(item.value) if isinstance(item.value, int) else quoted(item.value)
    if isinstance(item.value, int):
        value = f"[uint64]{value}"
    fields = {"Id": item.id, "Title": item.title, "Kind": item.kind, "Path": item.path, "Name": item.name}
    fields |= {"Type": item.type, "Why": item.reason, "Risk": item.risk, "Source": item.source}
    plain = "; ".join(f"{key} = {quoted(text)}" for key, text in fields.items())
    return f"    @{{ {plain}; Value = {value} }}"
