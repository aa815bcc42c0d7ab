"""A Linux guest: kernel, block layer and services, through drop-in files of Leadline's own.

Changes:
    Writes files named ``60-leadline-*`` under ``/etc`` (modprobe.d, sysctl.d, udev/rules.d, tmpfiles.d) and symbolic
    links that mask units. It runs nothing: what makes a file effective is printed.

Undo:
    Before anything is written, a journal under ``/var/lib/leadline/guest`` records what each path held. Reverting puts
    that back byte for byte, mode included, and removes folders that were made; a file changed since by somebody else
    is left alone and told.

Unsafe ranges:
    None are chosen by a program: every value stands in a template with its reason, source and risk. Items that depend
    on the load are not taken unless named.

Sources:
    sysctl.d(5), tmpfiles.d(5), udev(7), modprobe.d(5), systemd.unit(5): drop-in folders and masking.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import resources
from pathlib import Path
from typing import Any

import yaml

from leadline.core.contracts.target import FileChange, Item, ItemState, ItemStatus
from leadline.core.io.outputs import aside_name, keep
from leadline.core.model.errors import InputError, ToolError, UsageError

JOURNAL_FOLDER = "var/lib/leadline/guest"
FILE_MODE = 0o644


def templates() -> list[str]:
    """Names of the shipped templates."""
    folder = resources.files("leadline.targets").joinpath("templates")
    return sorted(file.name.removesuffix(".yaml") for file in folder.iterdir() if file.name.endswith(".yaml"))


def load_template(name: str, values: Mapping[str, int] | None = None) -> list[Item]:
    """The items of a template; ``values`` fill in what items ask for, such as ``huge_pages``.

    Raises:
        UsageError: there is no such template, or no item asks for one of the values.
    """
    if name not in templates():
        raise UsageError(
            f"template {name}",
            found="no such template",
            expected="a shipped one",
            advice=f"One of {', '.join(templates())}.",
        )
    entries = _entries(name)
    asked = {entry["asks"] for entry in entries if "asks" in entry}
    for key in values or {}:
        if key not in asked:
            raise UsageError(
                f"--set {key}",
                found="no item asks for it",
                expected=f"one of {', '.join(sorted(asked)) or 'none in this template'}",
                advice="`leadline guest analyze` shows what items need.",
            )
    return [_item(entry, values or {}) for entry in entries]


def _entries(name: str) -> list[dict[str, Any]]:
    """The items as written; ``use: server.io-scheduler`` stands for that item of another template."""
    text = resources.files("leadline.targets").joinpath("templates", f"{name}.yaml").read_text(encoding="utf-8")
    entries = []
    for entry in yaml.safe_load(text)["items"]:
        if "use" in entry:
            other, _, ident = entry["use"].partition(".")
            entries.append(next(item for item in _entries(other) if item["id"] == ident))
        else:
            entries.append(entry)
    return entries


def _item(entry: dict[str, Any], values: Mapping[str, int]) -> Item:
    asks = entry.get("asks")
    mark, given = f"{{{asks}}}", values.get(asks) if asks else None

    def filled(text: str | None) -> str | None:
        return text if text is None or given is None else text.replace(mark, str(given))

    entries = entry.get("files") or [{"file": entry["file"], "content": entry["content"]}]
    files = tuple(FileChange(part["file"], filled(part.get("content")), part.get("link")) for part in entries)
    plain = {key: entry[key] for key in ("id", "title", "activate", "reason", "source", "risk")}
    return Item(
        **plain,
        files=files,
        check={**entry["check"], "wanted": filled(entry["check"]["wanted"])},
        rule=entry.get("rule"),
        applies_if=entry.get("applies_if"),
        default=entry.get("default", True),
        asks=asks if given is None else None,
    )


def chosen(items: list[Item], take: list[str], leave: list[str], *, every: bool = False) -> list[Item]:
    """The items that are taken by default, with those named in ``take`` and without those in ``leave``.

    ``every`` takes the optional ones too, but for those that ask for a value nobody gave.

    Raises:
        UsageError: a name is not in the template, or a named item asks for a value nobody gave.
    """
    known = {item.id for item in items}
    for name in (*take, *leave):
        if name not in known:
            raise UsageError(
                f"item {name}",
                found="not in the template",
                expected="an item's id",
                advice=f"One of {', '.join(sorted(known))}.",
            )
    kept = [item for item in items if item.id not in leave and (every or item.default or item.id in take)]
    for item in kept:
        if item.asks is not None and item.id in take:
            raise UsageError(
                f"item {item.id}",
                found=f"no {item.asks}",
                expected=f"--set {item.asks}=NUMBER",
                advice=f"Source: {item.source}.",
            )
    return kept


def analyze(items: list[Item], root: Path) -> list[ItemStatus]:
    """How each item stands under a root folder ("/" or a tree such as an image's)."""
    return [_status(item, root) for item in items]


def _status(item: Item, root: Path) -> ItemStatus:
    if item.asks is not None:
        return ItemStatus(item, ItemState.NOT_APPLICABLE, f"needs --set {item.asks}=NUMBER")
    if item.applies_if is not None and not _under(root, item.applies_if).exists():
        return ItemStatus(item, ItemState.NOT_APPLICABLE, f"{item.applies_if} is not there")
    values = _current(item.check, root)
    wanted = str(item.check["wanted"])
    met = [wanted in value if item.check.get("contains") else value == wanted for value in values]
    written = all(_same(change, root) for change in item.files)
    missing = "no link" if "link" in item.check else "not readable here"
    shown = ", ".join(dict.fromkeys(values)) or missing
    if values and all(met):
        return ItemStatus(item, ItemState.APPLIED, shown)
    return ItemStatus(item, ItemState.WRITTEN if written else ItemState.DIFFERS, shown)


def _current(check: dict[str, Any], root: Path) -> list[str]:
    if "link" in check:
        path = _under(root, check["link"])
        return [str(path.readlink())] if path.is_symlink() else []
    if "glob" in check:
        pattern = re.compile(check["devices"])
        matches = sorted(root.glob(check["glob"].lstrip("/")))
        files = [path for path in matches if pattern.match(path.relative_to(root).parts[2])]
    else:
        files = [_under(root, check["path"])]
    values = []
    for path in files:
        try:
            values.append(path.read_text(encoding="utf-8", errors="replace").strip())
        except OSError:
            continue
    return values


def _same(change: FileChange, root: Path) -> bool:
    path = _under(root, change.path)
    if change.link is not None:
        return path.is_symlink() and str(path.readlink()) == change.link
    try:
        return not path.is_symlink() and path.read_text(encoding="utf-8") == change.content
    except (OSError, UnicodeDecodeError):
        return False


@dataclass(frozen=True, slots=True)
class JournalEntry:
    """One application in the journal: when, which items, what each path held before and holds now."""

    id: str
    time: str
    template: str
    items: tuple[str, ...]
    files: tuple[dict[str, Any], ...]
    folders: tuple[str, ...]  # made by this application, deepest last
    reverted: bool = False

    def to_dict(self) -> dict[str, Any]:
        """As it is written."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


def plan(items: list[Item], root: Path) -> list[FileChange]:
    """The files that would be written: those of items that are applicable and not there already.

    Raises:
        ToolError: a path leads out of the root by a symbolic link.
    """
    changes = []
    for status in analyze(items, root):
        if status.state is not ItemState.NOT_APPLICABLE:
            changes += [change for change in status.item.files if not _same(change, root)]
    for change in changes:
        _guard(root, change.path)
    return changes


def apply(template: str, items: list[Item], root: Path) -> JournalEntry | None:
    """Write the plan, journal first; None when nothing is left to write.

    Raises:
        ToolError: the root cannot be written; then what was written is taken back.
    """
    changes = plan(items, root)
    if not changes:
        return None
    now = datetime.now(UTC)
    needed = {change.path for change in changes}
    folders = _missing_folders(root, needed)
    entry = JournalEntry(
        id=now.strftime("%Y%m%dT%H%M%S%f"),
        time=now.isoformat(timespec="seconds"),
        template=template,
        items=tuple(item.id for item in items if needed & {change.path for change in item.files}),
        files=tuple({"path": c.path, "before": _state_of(root, c.path), "after": _wanted(c)} for c in changes),
        folders=tuple(folders),
    )
    try:
        _write_journal(root, entry)
        for change in changes:
            _put(root, change.path, _wanted(change))
    except OSError as error:
        _undo(root, entry, force=True)
        (_journal_path(root, entry.id)).unlink(missing_ok=True)
        raise ToolError(
            str(root),
            found=f"not writable ({error.strerror})",
            expected="a root folder this user may write",
            advice="Run as root, or name another folder with --root.",
        ) from error
    wrong = [change.path for change in changes if not _same(change, root)]
    if wrong:
        _undo(root, entry, force=True)
        raise ToolError(
            wrong[0],
            found="other contents than were written",
            expected="what the plan says",
            advice="Look at the disk.",
        )
    return entry


def history(root: Path) -> list[JournalEntry]:
    """The journal, oldest first.

    Raises:
        InputError: an entry is damaged.
    """
    entries = []
    for path in sorted((root / JOURNAL_FOLDER).glob("*.json")):
        try:
            loaded = json.loads(path.read_text(encoding="utf-8"))
            loaded = {k: tuple(v) if isinstance(v, list) else v for k, v in loaded.items()}
            entries.append(JournalEntry(**loaded))
        except (OSError, ValueError, TypeError) as error:
            raise InputError(
                str(path), found="a damaged journal entry", expected="an entry of leadline guest", advice="Restore it."
            ) from error
    return entries


def revert(root: Path, entry: JournalEntry, *, force: bool = False) -> list[str]:
    """Put back what every path held before; the paths left alone because somebody changed them since.

    With ``force`` those are put back too.
    """
    left = _undo(root, entry, force=force)
    if not left:
        _write_journal(root, JournalEntry(**{**entry.to_dict(), "reverted": True}))
    return left


def fates(root: Path, entry: JournalEntry, *, force: bool = False) -> dict[str, str]:
    """What `revert` would do with each path: restore, remove, keep (it is as before) or leave (changed since)."""
    by_path = {}
    for file in entry.files:
        state = _state_of(root, file["path"])
        if state == file["before"]:
            by_path[file["path"]] = "keep"
        elif state != file["after"] and not force:
            by_path[file["path"]] = "leave, changed since:"
        else:
            by_path[file["path"]] = "remove" if file["before"] is None else "restore"
    return by_path


def _undo(root: Path, entry: JournalEntry, *, force: bool) -> list[str]:
    left = []
    for file in reversed(entry.files):
        state = _state_of(root, file["path"])
        if state == file["before"]:
            continue
        if state != file["after"] and not force:
            left.append(file["path"])
        else:
            _put(root, file["path"], file["before"])
    for folder in reversed(entry.folders):
        path = _under(root, folder)
        if path.is_dir() and not any(path.iterdir()):
            path.rmdir()
    return left


def _state_of(root: Path, name: str) -> dict[str, Any] | None:
    """What a path holds: contents, mode and owner of a file, or where a link leads; None for nothing."""
    path = _under(root, name)
    if path.is_symlink():
        return {"link": str(path.readlink())}
    if not path.exists():
        return None
    data, stat = path.read_bytes(), path.stat()
    access = {"mode": stat.st_mode & 0o7777, "uid": stat.st_uid, "gid": stat.st_gid}
    return {"content": data.decode("latin-1"), "sha256": _digest(data), **access}


def _wanted(change: FileChange) -> dict[str, Any]:
    if change.link is not None:
        return {"link": change.link}
    data = (change.content or "").encode()
    access = {"mode": FILE_MODE, "uid": os.geteuid(), "gid": os.getegid()}
    return {"content": data.decode("latin-1"), "sha256": _digest(data), **access}


def _put(root: Path, name: str, state: dict[str, Any] | None) -> None:
    """Make a path hold something; written aside and renamed, so it is never half there."""
    path = _under(root, name)
    if state is None:
        path.unlink(missing_ok=True)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    if "link" in state:
        aside = path.with_name(aside_name())
        aside.symlink_to(state["link"])
        aside.replace(path)
        return
    owner = (state["uid"], state["gid"]) if os.geteuid() == 0 and "uid" in state else None
    keep(path, state["content"].encode("latin-1"), mode=state["mode"], owner=owner)


def _write_journal(root: Path, entry: JournalEntry) -> None:
    path = _journal_path(root, entry.id)
    data = json.dumps(entry.to_dict(), indent=1).encode()
    _put(root, "/" + path.relative_to(root).as_posix(), {"content": data.decode("latin-1"), "mode": 0o600})


def _journal_path(root: Path, name: str) -> Path:
    return root / JOURNAL_FOLDER / f"{name}.json"


def _missing_folders(root: Path, paths: set[str]) -> list[str]:
    missing: dict[str, None] = {}
    for name in sorted(paths):
        for parent in reversed(_under(root, name).parents):
            if parent.is_relative_to(root) and parent != root and not parent.exists():
                missing["/" + parent.relative_to(root).as_posix()] = None
    return sorted(missing, key=lambda folder: folder.count("/"))


def _guard(root: Path, name: str) -> None:
    parent = _under(root, name).parent
    if not parent.resolve().is_relative_to(root.resolve()):
        raise ToolError(
            str(parent),
            found="a link that leads out of the root",
            expected="a folder under the root",
            advice="Look at it.",
        )


def _under(root: Path, name: str) -> Path:
    return root / name.lstrip("/")


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
