"""Use case: optimise a guest by a template, and take it back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from leadline.core.contracts.target import FileChange, Item, ItemStatus
from leadline.core.model.errors import UsageError
from leadline.formats.windows.osot import read_template
from leadline.targets import guest_linux, guest_windows
from leadline.targets.guest_linux import JournalEntry
from leadline.targets.guest_windows import Untaken, WindowsItem, WindowsTemplate

FORMS = ("ps1", "reg", "cmd")


@dataclass(frozen=True, slots=True)
class Script:
    """An export for a Windows guest: the items it holds, and what was left out.

    Attributes:
        text: what is printed when no file is named.
        items: the items that are in it.
        left: steps of a foreign template that cannot be taken over.
        encoded: the file's bytes, as Windows expects them.
        unheld: ids of chosen items that this form cannot hold, with the reason.
        source: the template with the chosen items alone.
    """

    text: str
    items: list[WindowsItem]
    left: list[Untaken]
    encoded: bytes
    unheld: list[tuple[str, str]]
    source: WindowsTemplate


def items_of(
    template: str, take: list[str], leave: list[str], *, every: bool = False, values: Mapping[str, int] | None = None
) -> list[Item]:
    """The items of a template that are asked for: its defaults, with some and without others; ``every`` takes all.

    Raises:
        UsageError: the template or an item does not exist.
    """
    items = guest_linux.load_template(template, values)
    return guest_linux.chosen(items, take, leave, every=every)


def reference(origin: Path | None) -> tuple[str, list[WindowsItem], list[Untaken]]:
    """A Windows template's name, its items, and what of it cannot be taken over; windows-database by default.

    Args:
        origin: a file, or the name of a shipped template.

    Raises:
        InputError: the file is no such template.
    """
    name = "windows-database" if origin is None else str(origin)
    is_shipped = name in guest_windows.templates() and not Path(name).exists()
    template, left = _windows_template(name, None if is_shipped else origin)
    return template.name, template.items, left


def _windows_template(name: str, origin: Path | None) -> tuple[WindowsTemplate, list[Untaken]]:
    """A template by its name or file, or a foreign one with what of it cannot be taken over."""
    if origin is None:
        return guest_windows.template_of(name), []
    if origin.suffix in (".yaml", ".yml"):
        return guest_windows.template_of(str(origin)), []
    foreign = read_template(origin)
    items, left = guest_windows.items_of(foreign)
    return WindowsTemplate(foreign.name, foreign.name, None, items), left


def export(
    template: str, origin: Path | None, take: list[str], leave: list[str], *, every: bool = False, form: str = "ps1"
) -> Script:
    """A Windows template, shipped, saved or foreign, as a file of one of `FORMS`.

    Raises:
        UsageError: the template, the form or an item does not exist, or nothing is left to write.
        InputError: the file is no template.
    """
    if form not in FORMS:
        raise UsageError("--as", found=form, expected="ps1, reg or cmd", advice="Name one of them.")
    source, left = _windows_template(template, origin)
    kept = guest_windows.chosen(source.items, [*take, *(item.id for item in source.items if every)], leave)
    if not kept:
        raise UsageError(
            f"export {source.name}",
            found="no item that is taken by default",
            expected="at least one",
            advice="Name items with --take, or --all; `leadline guest reference` lists them.",
        )
    chosen = replace(source, items=kept)
    if form == "ps1":
        text = guest_windows.script(source.name, kept, source.builds)
        # Without a byte-order mark Windows PowerShell 5 reads the local code page.
        return Script(text, kept, left, text.replace("\n", "\r\n").encode("utf-8-sig"), [], chosen)
    written = guest_windows.registration(chosen) if form == "reg" else guest_windows.command_script(chosen)
    if not written.items:
        raise UsageError(
            f"export {source.name}",
            found=f"no item that a .{form} file can hold",
            expected="at least one",
            advice="Use --as ps1, which holds every item.",
        )
    return Script(written.text, written.items, left, written.content, written.left, chosen)


def way_back(script: Script, before: list[Path]) -> bytes:
    """The registration file that restores what exports of the guest's registry say was there before a change.

    Raises:
        InputError: an export is damaged, or none holds what was there before.
    """
    return guest_windows.way_back(script.source.name, script.items, before).content


def check_build(script: Script, build: int) -> None:
    """Refuse a template that is not for the guest's build of Windows.

    Raises:
        UsageError: the build is outside of the template's range.
    """
    guest_windows.check_build(script.source, build)


def saved(script: Script) -> str:
    """A template file of the chosen items, which `export` takes by its name."""
    return guest_windows.saved(script.source)


def analyze(template: str, root: Path, values: Mapping[str, int] | None = None) -> list[ItemStatus]:
    """How every item of a template stands, the optional ones too.

    Raises:
        UsageError: the template or the root does not exist.
    """
    return guest_linux.analyze(guest_linux.load_template(template, values), _folder(root))


def plan(items: list[Item], root: Path) -> list[FileChange]:
    """The files that applying would write.

    Raises:
        UsageError: the root does not exist.
        ToolError: a path leads out of the root.
    """
    return guest_linux.plan(items, _folder(root))


def apply(template: str, items: list[Item], root: Path) -> JournalEntry | None:
    """Write the plan; None when there was nothing to write.

    Raises:
        UsageError: the root does not exist.
        ToolError: it cannot be written.
    """
    return guest_linux.apply(template, items, _folder(root))


def history(root: Path) -> list[JournalEntry]:
    """What was applied, oldest first.

    Raises:
        UsageError: the root does not exist.
        InputError: the journal is damaged.
    """
    return guest_linux.history(_folder(root))


def revert(root: Path, name: str | None, *, force: bool = False) -> tuple[JournalEntry, list[str]]:
    """Take back one application, the last one by default; with it the paths that somebody changed since.

    Raises:
        UsageError: there is nothing to take back, or no entry has that name, or a later one must go first.
        InputError: the journal is damaged.
    """
    entry = _to_revert(root, name, force=force)
    return entry, guest_linux.revert(_folder(root), entry, force=force)


def plan_revert(root: Path, name: str | None, *, force: bool = False) -> tuple[JournalEntry, dict[str, str]]:
    """The application that `revert` would take back, and what would become of each of its paths.

    Raises:
        UsageError: there is nothing to take back, or no entry has that name, or a later one must go first.
        InputError: the journal is damaged.
    """
    entry = _to_revert(root, name, force=force)
    return entry, guest_linux.fates(_folder(root), entry, force=force)


def _to_revert(root: Path, name: str | None, *, force: bool) -> JournalEntry:
    open_entries = [entry for entry in history(root) if not entry.reverted]
    chosen = [entry for entry in open_entries if name is None or entry.id == name]
    if not chosen:
        raise UsageError(
            f"revert {name or 'the last'}",
            found="nothing to take back",
            expected="an application in the journal",
            advice="`leadline guest history` lists them.",
        )
    entry = chosen[-1]
    paths = {file["path"] for file in entry.files}
    later = [e.id for e in open_entries if e.id > entry.id and paths & {file["path"] for file in e.files}]
    if later and not force:
        raise UsageError(
            f"revert {entry.id}",
            found=f"a later application ({later[-1]}) wrote the same files",
            expected="the last one first",
            advice=f"Revert {later[-1]} first.",
        )
    return entry


def _folder(root: Path) -> Path:
    if not root.is_dir():
        raise UsageError("--root", found=str(root), expected="a folder", advice="Name / or a tree to prepare.")
    return root
