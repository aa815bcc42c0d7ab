"""Use case: optimise a guest by a template, and take it back."""

from __future__ import annotations

from pathlib import Path

from leadline.core.errors import UsageError
from leadline.core.target import FileChange, Item, ItemStatus
from leadline.targets import guest_linux
from leadline.targets.guest_linux import Entry


def items_of(template: str, take: list[str], leave: list[str]) -> list[Item]:
    """The items of a template that are asked for: its defaults, with some and without others.

    Raises:
        UsageError: the template or an item does not exist.
    """
    return guest_linux.chosen(guest_linux.load_template(template), take, leave)


def analyze(template: str, root: Path) -> list[ItemStatus]:
    """How every item of a template stands, the optional ones too.

    Raises:
        UsageError: the template or the root does not exist.
    """
    return guest_linux.analyze(guest_linux.load_template(template), _folder(root))


def plan(items: list[Item], root: Path) -> list[FileChange]:
    """The files that applying would write.

    Raises:
        UsageError: the root does not exist.
        ToolError: a path leads out of the root.
    """
    return guest_linux.plan(items, _folder(root))


def apply(template: str, items: list[Item], root: Path) -> Entry | None:
    """Write the plan; None when there was nothing to write.

    Raises:
        UsageError: the root does not exist.
        ToolError: it cannot be written.
    """
    return guest_linux.apply(template, items, _folder(root))


def history(root: Path) -> list[Entry]:
    """What was applied, oldest first.

    Raises:
        UsageError: the root does not exist.
        InputError: the journal is damaged.
    """
    return guest_linux.history(_folder(root))


def revert(root: Path, name: str | None, *, force: bool = False) -> tuple[Entry, list[str]]:
    """Take back one application, the last one by default; with it the paths that somebody changed since.

    Raises:
        UsageError: there is nothing to take back, or no entry has that name, or a later one must go first.
        InputError: the journal is damaged.
    """
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
    return entry, guest_linux.revert(_folder(root), entry, force=force)


def _folder(root: Path) -> Path:
    if not root.is_dir():
        raise UsageError("--root", found=str(root), expected="a folder", advice="Name / or a tree to prepare.")
    return root
