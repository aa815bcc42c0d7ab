"""Samples that a watch keeps, read like a recording, of a span and of one machine.

``store:`` is the user's own store, ``store:FOLDER`` another one, ``store:https://HOST:8428`` one in VictoriaMetrics.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import UTC, datetime, time, timedelta
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

from leadline.app.read.importing import Imported, import_paths, no_gc
from leadline.app.read.resolve import resolve
from leadline.core.contracts.importer import Request
from leadline.core.io.clock import to_ns
from leadline.core.model.capture import NS_PER_S, Capture
from leadline.core.model.errors import UsageError
from leadline.core.model.similar import similar
from leadline.core.model.vocabulary import EntityKind
from leadline.core.system.addresses import without_password
from leadline.core.system.leftovers import user_folder
from leadline.core.system.secret import of_environment
from leadline.stores.samples import SampleStore
from leadline.stores.victoriametrics import MetricsServer, VictoriaMetricsStore

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from leadline.core.model.entities import Entity, Inventory

PREFIX = "store:"
USUAL_S = 3600.0  # what is read where no beginning is asked for
EXAMPLE = "For example 14:00, 2026-11-20T14:00, or 20m for twenty minutes before the end."
_ADDRESS = re.compile(r"(https?):/{1,2}([^/].*)")
_AGO = re.compile(r"(\d{1,7}(?:\.\d{1,3})?)([smhd])")
_SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
_MACHINES = (EntityKind.VM, EntityKind.GUEST, EntityKind.DATABASE)


@dataclass(frozen=True, slots=True)
class StoredPart:
    """Which samples are wanted.

    Attributes:
        since: where it begins: a time, a time of day, or how long before the end; an hour before it by default.
        until: where it ends; the newest sample by default.
        vm: name or pattern of a VM, guest or database; everything by default.
        timezone: of times without a zone; UTC by default.
    """

    since: str | None = None
    until: str | None = None
    vm: str | None = None
    timezone: str | None = None

    @property
    def is_whole(self) -> bool:
        """Whether nothing was asked for."""
        return self.since is None and self.until is None and self.vm is None


def is_stored(path: Path) -> bool:
    """Whether a path names a store instead of a file."""
    return str(path).startswith(PREFIX)


def stored_capture(path: Path, part: StoredPart, metrics: Collection[str] | None = None) -> Capture:
    """The samples of a store.

    Raises:
        UsageError: there is no store, a time cannot be read, or nothing was kept of that time or machine.
        ToolError: VictoriaMetrics does not answer.
    """
    with _opened(str(path).removeprefix(PREFIX)) as store, no_gc():
        start_ns, end_ns = _span(store.span_ns(), part, str(path))
        if part.vm is None:
            capture = store.read(start_ns, end_ns, metrics=metrics)
        else:  # which entities first: of a large estate one machine is little
            known = store.read(start_ns, end_ns, metrics=()).inventory
            every = {*store.entities(start_ns, end_ns), *known.facts, *known.links, *known.links.values()}
            wanted = _of_machine(every, known, part.vm)
            if not wanted:
                raise _no_machine(str(path), part.vm, every)
            facts = {one: facts for one, facts in known.facts.items() if one in wanted or not _is_machine(one)}
            capture = store.read(start_ns, end_ns, metrics=metrics, entities=wanted, settings=False)
            capture = replace(capture, inventory=replace(known, facts=facts))
    if not capture.groups:
        raise _nothing(str(path), f"no samples of {part.vm or 'anything'} at that time")
    return capture


def top_of(path: Path, part: StoredPart, metric: str, statistic: str, count: int) -> list[tuple[Entity, float]]:
    """The entities that have most of a metric in a span, the greatest first.

    Raises:
        UsageError: there is no store, a time cannot be read, or nothing of it was kept.
        ToolError: VictoriaMetrics does not answer.
    """
    with _opened(str(path).removeprefix(PREFIX)) as store:
        start_ns, end_ns = _span(store.span_ns(), part, str(path))
        ranked = store.top(metric, start_ns, end_ns, statistic=statistic, count=count)
    if not ranked:
        raise _nothing(str(path), f"nothing of {metric} at that time")
    return ranked


def _span(kept_ns: tuple[int, int] | None, part: StoredPart, where: str) -> tuple[int, int]:
    """The span that is wanted of what a store keeps, UTC nanoseconds, the end not included."""
    if kept_ns is None:
        raise _nothing(where, "no samples yet")
    end_ns = kept_ns[1] + 1 if part.until is None else _moment(part.until, kept_ns[1], part.timezone, "--to")
    usual_ns = end_ns - round(USUAL_S * NS_PER_S)
    start_ns = usual_ns if part.since is None else _moment(part.since, end_ns, part.timezone, "--from")
    if end_ns <= start_ns:
        raise UsageError("--from", found="a time after the end", expected="one before --to", advice=EXAMPLE)
    return start_ns, end_ns


def _opened(place: str) -> SampleStore | VictoriaMetricsStore:
    """The store of a folder or an address, which a path has with one slash less; its password is LEADLINE_PASSWORD."""
    address = _ADDRESS.fullmatch(place)
    folder = user_folder() / "watch"
    if address is None:
        return SampleStore(Path(place or folder).expanduser(), read_only=True)
    user, _, host = without_password(f"{address[1]}://{address[2]}").partition("://")[2].rpartition("@")
    server = MetricsServer(f"{address[1]}://{host}", user=unquote(user), password=of_environment("LEADLINE_PASSWORD"))
    return VictoriaMetricsStore(server, folder, read_only=True)


def import_with_stores(
    paths: Sequence[Path], part: StoredPart | None, request: Request, offsets: dict[str, float] | None
) -> Imported:
    """Read stores and, beside them, recordings, as one capture.

    Raises:
        UsageError, InputError: as `stored_capture` and `import_paths` do.
    """
    wanted = part or StoredPart(timezone=request.timezone)
    captures = [stored_capture(path, wanted, request.metrics) for path in paths if is_stored(path)]
    files = [path for path in paths if not is_stored(path)]
    imported = import_paths(files, request, clock_offsets=offsets) if files else Imported(Capture())
    return replace(imported, capture=resolve(Capture.merged([*captures, imported.capture])))


def _of_machine(entities: set[Entity], inventory: Inventory, pattern: str) -> set[Entity]:
    """The machines whose name fits a pattern with their parts, their hosts, and what their disks lie on.

    A VM, the guest in it and the databases of that are one machine, whichever of them has the name.
    """
    machine_of = {entity: _machine_of(entity, inventory) for entity in entities}
    named = {machine for entity, machine in machine_of.items() if _has_name(entity, pattern.casefold())} - {None}
    chosen = {entity for entity, machine in machine_of.items() if machine in named}
    hosts = {above for entity in chosen if (above := entity.ancestor(EntityKind.HOST)) is not None}
    stores = {(kind, str(inventory.get(entity, kind.value))) for entity in chosen for kind in _STORES}
    rest = {entity for entity, machine in machine_of.items() if machine is None}
    of_hosts = {entity for entity in rest if entity.ancestor(EntityKind.HOST) in hosts}
    shared = {entity for entity in rest if entity.ancestor(EntityKind.HOST) is None}
    lain_on = {entity for entity in shared if any((above.kind, above.name) in stores for above in entity.lineage())}
    return chosen | of_hosts | lain_on


_STORES = (EntityKind.DEVICE, EntityKind.DATASTORE)  # a virtual disk has a setting of this name for what it lies on


def _machine_of(entity: Entity, inventory: Inventory) -> Entity | None:
    """The VM of an entity, else the guest, else the database; None of what belongs to none."""
    vm, guest = entity.ancestor(EntityKind.VM), entity.ancestor(EntityKind.GUEST)
    if vm is None and guest is not None:
        vm = inventory.vm_of(guest)
    return vm or guest or entity.ancestor(EntityKind.DATABASE)


def _is_machine(entity: Entity) -> bool:
    return any(entity.ancestor(kind) is not None for kind in _MACHINES)


def _has_name(entity: Entity, pattern: str) -> bool:
    machines = (above for above in entity.lineage() if above.kind in _MACHINES)
    return any(fnmatchcase(one.name.casefold(), pattern) for one in machines)


def _moment(text: str, end_ns: int, timezone: str | None, option: str) -> int:
    """The UTC nanosecond a text means; a time of day is the last one before the end."""
    ago = _AGO.fullmatch(text.strip())
    if ago is not None:
        return end_ns - round(float(ago[1]) * _SECONDS[ago[2]] * NS_PER_S)
    request = Request(timezone=timezone)
    try:
        return to_ns(datetime.fromisoformat(text.strip()), request)
    except ValueError:
        pass
    try:
        clock = time.fromisoformat(text.strip())
    except ValueError:
        raise UsageError(
            option, found=repr(text), expected="a time, a time of day, or how long before", advice=EXAMPLE
        ) from None
    day = datetime.fromtimestamp(end_ns / NS_PER_S, UTC).date()
    days = (day + timedelta(days=shift) for shift in (1, 0, -1))
    moments = [to_ns(datetime.combine(one, clock), request) for one in days]
    return next(moment for moment in moments if moment <= end_ns)


def _no_machine(where: str, name: str, every: set[Entity]) -> UsageError:
    names = sorted({one.name for one in every if one.kind in _MACHINES})
    shown = similar(name, names) or names[:3]
    more = f" and {len(names) - len(shown)} more" if len(names) > len(shown) else ""
    return UsageError(
        where,
        found=f"nothing of {name} at that time",
        expected="the name of a VM, a guest or a database",
        advice=f"There are {', '.join(shown)}{more}." if names else "No sample of that time is of a machine.",
    )


def _nothing(where: str, problem: str) -> UsageError:
    return UsageError(
        where,
        found=problem,
        expected="samples that leadline watch keeps",
        advice="`leadline watch status` says what there is; --from and --to choose a span.",
    )
