r"""The registry items of a template as a registration file, and the file that takes them back."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from pathlib import Path

from leadline.core.model.errors import InputError
from leadline.formats.windows.registry_file import HEADER, RegistryData, encoded, read_entries, value_line
from leadline.targets._guest_windows.model import DEFAULT_HIVE, DEFAULT_USER, WindowsItem, WrittenForm
from leadline.targets._guest_windows.template import WindowsTemplate, ranges

MARK = "; Written by Leadline"
_COMMENT_MAX = 300


def comment(text: str) -> str:
    """A comment of one line, whatever the text holds."""
    plain = "".join(character if character.isprintable() else " " for character in text)
    return f"; {plain[:_COMMENT_MAX]}".rstrip()


def registration(template: WindowsTemplate) -> WrittenForm:
    """The registration file of a template's registry items; the others are named in comments."""
    kept: list[WindowsItem] = []
    left: list[tuple[str, str]] = []
    for item in template.items:
        if not item.in_registry:
            left.append((item.id, f"{item.kind} is no registry value; use --as ps1{_or_cmd(item)}"))
        elif not item.can_be_written:
            left.append((item.id, "its key or name has a line break in it; use --as ps1"))
        else:
            kept.append(item)
    lines = [f"{MARK}: leadline guest export, template {comment(template.name)[2:]}"]
    lines += [comment(template.title), *_builds(template), *_warning(kept)]
    lines += [comment(f"Not in this file: {item}: {why}") for item, why in left]
    for key, group in groupby(kept, lambda item: item.key):
        lines += ["", f"[{key}]"]
        for item in group:
            lines += [comment(f"{item.id}: {item.title}"), value_line(item.value_name, item.data)]
    return WrittenForm(encoded(lines), _text(lines), kept, left)


def _builds(template: WindowsTemplate) -> list[str]:
    if template.builds is None:
        return []
    first, last = template.builds
    others = [f"{name}: {low} to {high}" for low, high, name in ranges() if (low, high) != template.builds]
    return [comment(f"Only for builds {first} to {last} (`ver` shows it); {', '.join(others)}")]


def _or_cmd(item: WindowsItem) -> str:
    return "" if item.kind in ("rss", "app") else " or cmd"


def _warning(items: Iterable[WindowsItem]) -> list[str]:
    lines = ["; Checked against Wine's registry, not on Windows. Export the keys first: `reg export KEY FILE`."]
    if any(item.of_new_users for item in items):
        hive = f"HKU\\{DEFAULT_USER}"
        lines += [
            "; Keys below HKEY_USERS\\" + DEFAULT_USER + " are of the user that new users are copied from. Run before:",
            f";   reg load {hive} {DEFAULT_HIVE}",
            f"; and afterwards: reg unload {hive}. Without it regedit writes none of them, and does not say so.",
        ]
    return lines


def _text(lines: list[str]) -> str:
    return "\n".join([HEADER, "", *lines, ""])


def way_back(name: str, items: list[WindowsItem], before: list[Path]) -> WrittenForm:
    """The registration file that restores the values which exports, made before, say were there.

    A value that was there gets its type and data again; one that was not there is deleted. A key that was not there
    stays, empty, and is named in a comment: an import can only delete it with all that others wrote there since.

    Args:
        name: of the template.
        items: the registry items that a registration file holds.
        before: exports of the guest's registry, which together hold every key of the items or a key above it.

    Raises:
        InputError: an export is damaged, or none of them holds the key of an item or one above it.
    """
    wanted = {(item.key.upper(), item.value_name.upper()) for item in items}
    keys, values = _recorded(before, wanted)
    lines = [f"{MARK}: leadline guest export --revert-to, template {comment(name)[2:]}", *_warning(items)[1:]]
    for key, group in groupby(items, lambda item: item.key):
        _check_covered(key, keys, before)
        if key.upper() not in keys:
            lines += ["", comment(f"This key was not there before; delete it by hand when it is empty: {key}")]
        lines += ["", f"[{key}]"]
        for value_name in dict.fromkeys(item.value_name for item in group):
            lines.append(value_line(value_name, values.get((key.upper(), value_name.upper()))))
    return WrittenForm(encoded(lines), _text(lines), items, [])


def _recorded(before: list[Path], wanted: set[tuple[str, str]]) -> tuple[set[str], dict[tuple[str, str], RegistryData]]:
    """The keys of the exports that are those of the wanted values or above them, and the values that were there."""
    near = {above for key, _ in wanted for above in _lineage(key)}
    keys: set[str] = set()
    values: dict[tuple[str, str], RegistryData] = {}
    for path in before:
        for entry in read_entries(path):
            if entry.deletes:
                raise InputError(
                    str(path),
                    found=f"a line that deletes something ({entry.key[:80]})",
                    expected="an export, which says what is there",
                    advice="Make it with `reg export KEY FILE` on the guest, before anything is changed.",
                )
            key = entry.key.upper()
            if key not in near:
                continue
            keys.add(key)
            place = (key, (entry.name or "").upper())
            if entry.name is not None and entry.data is not None and place in wanted:
                values[place] = entry.data
    return keys, values


def _lineage(key: str) -> list[str]:
    """A key and every key above it."""
    parts = key.split("\\")
    return ["\\".join(parts[:count]) for count in range(1, len(parts) + 1)]


def _check_covered(key: str, keys: set[str], before: list[Path]) -> None:
    if any(above in keys for above in _lineage(key.upper())):
        return
    root = "\\".join(key.split("\\")[:2])
    raise InputError(
        ", ".join(str(path) for path in before),
        found=f"neither the key {key} nor one above it",
        expected="an export that holds what was there before",
        advice=f'Run `reg export "{root}" FILE` on the guest and add --before FILE.',
    )
