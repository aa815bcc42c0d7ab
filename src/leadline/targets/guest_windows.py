r"""A Windows guest: registry values, services, scheduled tasks, power plan, apps, as a file to run or import there.

Changes:
    Nothing from here: the export is a file for somebody to read and run. A PowerShell script (``.ps1``) shows what it
    would change; with ``-Apply`` it changes it. Registry values, start types of services, states of scheduled tasks,
    the active power plan, receive side scaling of vmxnet3 adapters and built-in apps. A command script (``.cmd``) does
    the same without adapters and apps, a registration file (``.reg``) holds the registry values alone. Values under
    HKCU are of the user that new users are copied from. No command line of a template is ever taken over.

Undo:
    Before the first change the PowerShell script writes what each place held to a journal beside itself; run with
    ``-Revert`` it puts that back and removes values and keys that were not there. A delayed automatic start comes back
    as automatic; empty parent keys that were made stay; a removed app does not come back. For a registration file the
    way back is made from an export of the guest's registry (``--before``, ``--revert-to``): values get what they held,
    values that were not there are deleted, keys that were not there stay, empty. A command script has no way back
    but this one for its registry values.

Unsafe ranges:
    Not tested on Windows: the PowerShell script's syntax is checked; registration files and the registry lines of
    command scripts are run against Wine's registry. Try it on a copy of the guest. Steps of a foreign template are only
    as good as that template. A template for a range of builds is refused on a guest of another build.

Sources:
    Microsoft: about_Quoting_Rules, New-ItemProperty, Set-Service, ScheduledTasks module, NetAdapter module, powercfg,
    Remove-AppxPackage, Remove-AppxProvisionedPackage, reg, sc, schtasks; Support 310516 (registration files).
    The two templates of Windows 10: Microsoft, Optimizing Windows 10 for a Virtual Desktop Infrastructure (VDI) role,
    version 1803 and version 1909.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib import resources
from itertools import groupby
from typing import Any

from leadline.core.model.errors import UsageError
from leadline.formats.windows.osot import Template, TemplateStep
from leadline.targets._guest_windows.command_script import command_script
from leadline.targets._guest_windows.model import DEFAULT_USER, KINDS, LIMITS, WindowsItem, WrittenForm
from leadline.targets._guest_windows.registration import registration, way_back
from leadline.targets._guest_windows.template import (
    STARTS,
    STATES,
    WILDCARDS,
    WindowsTemplate,
    check_build,
    load_template,
    ranges,
    saved,
    template_of,
    templates,
)

__all__ = [
    "KINDS",
    "Untaken",
    "WindowsItem",
    "WindowsTemplate",
    "WrittenForm",
    "check_build",
    "chosen",
    "command_script",
    "items_of",
    "load_template",
    "quoted",
    "registration",
    "saved",
    "script",
    "template_of",
    "templates",
    "way_back",
]

_HIVES = {"HKLM": "HKLM:", "HKEY_LOCAL_MACHINE": "HKLM:"}
# Templates of the tool load the hive of the user that new users are copied from under this key.
_TOOL_USER = re.compile(r"(?:HKU|HKEY_USERS)\\temp\\", re.IGNORECASE)
_SHOWN_MAX = 20
_TYPES = {
    "REG_SZ": "String",
    "REG_EXPAND_SZ": "ExpandString",
    "REG_DWORD": "DWord",
    "REG_QWORD": "QWord",
}


@dataclass(frozen=True, slots=True)
class Untaken:
    """A step of a foreign template that is not exported, and why."""

    step: TemplateStep
    why: str


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
    if any(WILDCARDS & set(name) for name in named):
        return "a name with a wildcard, which could mean more than the journal holds"
    return None


def _translated(step: TemplateStep) -> dict[str, Any] | str:
    """Kind, path, name, type and value of a step, or why it is left."""
    plain = {"path": "", "name": "", "type": ""}
    params = step.params
    if step.kind == "registry":
        return _registry(step)
    if step.kind == "service":
        start = STARTS.get(params.get("startmode", "").lower())
        if not params.get("servicename") or start is None:
            return "a service without a name or with an unknown start mode"
        return {**plain, "kind": "service", "name": params["servicename"], "value": start}
    if step.kind == "schtasks":
        state = STATES.get(params.get("status", "").lower())
        if not params.get("taskname") or state is None:
            return "a task without a name or with an unknown state"
        task = params["taskname"]
        return {**plain, "kind": "task", "name": task if task.startswith("\\") else f"\\{task}", "value": state}
    if step.kind == "shellexecute":
        return "a command line: what it changes is not known, so there is no way back"
    return f"an action of type {step.kind!r}, which is not known"


def _registry(step: TemplateStep) -> dict[str, Any] | str:
    path = _TOOL_USER.sub(r"HKCU\\", step.params.get("keyname", ""), count=1)
    hive, _, key = step.params.get("keyname", "").partition("\\")
    root = _HIVES.get(hive.upper())
    if _TOOL_USER.match(step.params.get("keyname", "")):
        root, key = "HKCU:", path.partition("\\")[2]
    if root is None or not key:
        return f"a key under {hive or 'nothing'}: only HKLM and the hive of the default user (HKU\\temp) are taken"
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
    number = _number(step.params.get("data", ""), LIMITS[kind]) if kind in LIMITS else None
    if kind in LIMITS and number is None:
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
                advice="`leadline guest reference` lists those of a template; this one has "
                + ", ".join(sorted(known)[:_SHOWN_MAX])
                + (", ..." if len(known) > _SHOWN_MAX else "."),
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


def script(name: str, items: list[WindowsItem], builds: tuple[int, int] | None = None) -> str:
    """The PowerShell script; text of a template stands in it only as single-quoted strings."""
    folder = resources.files("leadline.targets").joinpath("windows_templates")
    body = folder.joinpath("script.ps1").read_text("utf-8")
    rows = ",\n".join(_row(item) for item in items)
    fits = [(first, last, other) for first, last, other in ranges() if (first, last) != builds]
    others = "; ".join(f"{other} is for builds {first} to {last}" for first, last, other in fits)
    # One pass over the shipped text, so that text of a template is never looked at for placeholders.
    parts = {
        "@@NAME@@": quoted(name),
        "@@ITEMS@@": rows,
        "@@JOURNAL@@": quoted(f"{_slug(name)}.json"),
        "@@BUILDS@@": f"@({builds[0]}, {builds[1]})" if builds else "@()",
        "@@OTHERS@@": quoted(others),
        "@@HIVE@@": quoted(DEFAULT_USER),
    }
    return re.sub("@@[A-Z]+@@", lambda match: parts[match[0]], body)


def _row(item: WindowsItem) -> str:
    path = f"Registry::{item.key}" if item.of_new_users else item.path
    fields = {"Id": item.id, "Title": item.title, "Kind": item.kind, "Path": path, "Name": item.name}
    fields |= {"Type": item.type, "Why": item.reason, "Risk": item.risk, "Source": item.source}
    plain = "; ".join(f"{key} = {quoted(text)}" for key, text in fields.items())
    return f"    @{{ {plain}; Value = {_value(item)} }}"


def _value(item: WindowsItem) -> str:
    if isinstance(item.value, int):
        return f"[uint64]{item.value}"
    if isinstance(item.value, tuple):
        return f"[string[]]@({', '.join(map(quoted, item.value))})"
    if item.type == "Binary":
        return f"[byte[]]@({', '.join(f'0x{byte:02x}' for byte in bytes.fromhex(item.value))})"
    return quoted(item.value)
