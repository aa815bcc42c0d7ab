"""Where fio works: places planned, opened and named so that fio reads no path a user wrote.

fio cuts a file name at ``:`` and a job file's line at ``#``, ``;`` and a newline, and expands ``${x}`` everywhere.

Source: fio HOWTO, filename; fio 3.33 init.c, filesetup.c (a file that is too short is removed and made anew).
"""

from __future__ import annotations

import re
from dataclasses import replace
from zlib import crc32

from leadline.benchmarks._fio import dax
from leadline.core.contracts.benchmark import LoadPlan, Place
from leadline.core.contracts.load_target import Target
from leadline.core.model.errors import UsageError
from leadline.core.model.workload import Stream, Workload
from leadline.core.system.opened import Identity, is_uri, printable
from leadline.core.system.safety import require_apart, require_named, require_usable, usable

ALIGN = 1024**2
ENGINES = {"nbd": "nbd", "nbd+unix": "nbd", "rbd": "rbd", "dax": "dev-dax", "pmem": "libpmem"}  # by scheme
_OF_PATHS = ("dax", "pmem")
_PLAIN_URI = re.compile(r"[a-z+]+://[A-Za-z0-9._~:/?@&=+,%\[\]!*()-]*")
_CUT = ("#", ";", "${", '"')
_ODD = re.compile(r"[^A-Za-z0-9 ._+-]")


def place_of(workload: Workload, stream: Stream, target: Target, *, read_only: bool) -> Place:
    """Where a stream works.

    Raises:
        UsageError: the target may not be used, or not be overwritten.
    """
    named = target.of_role(stream.role)
    name = named.name
    size = -(-workload.working_set_bytes(stream) // ALIGN) * ALIGN
    device = dax_of(name)
    if device is not None:
        dax.refuse_unfit(stream, workload.io_settings)
        path = require_usable(path_of(name) or name)
        destroyed = None if target.destroy is None else path_of(target.destroy)
        return dax.place(path, device, workload.working_set_bytes(stream), destroyed, writes=not read_only)
    if named.is_address:
        require_plain_uri(name)
        if not read_only:
            require_named(name, target.destroy)
        file = path_of(name)
        identity = None if file is None else Identity.of(require_usable(file).stat())
        return Place(name, size, is_made=False, identity=identity)
    path = require_usable(name)
    if path.is_dir():
        file_path = path / f"leadline-bench-{plain_name(stream.name)}.dat"
        return Place(str(file_path), size, is_made=True, identity=Identity.of(path.stat()))
    existing = usable(path, target.destroy, writes=not read_only)
    there = existing.size_bytes // ALIGN * ALIGN
    if not there:
        raise UsageError(
            printable(name),
            found=f"{existing.size_bytes} bytes",
            expected="at least 1 MiB",
            advice="Name a larger target.",
        )
    return Place(str(path), min(size, there), is_made=False, is_device=existing.is_device, identity=existing.identity)


def dax_of(name: str) -> dax.DaxDevice | None:
    """The DAX device that a target names, by its path or as ``dax://PATH``; None for every other target.

    Raises:
        UsageError: ``dax://`` leads to something else.
    """
    path = path_of(name)
    device = None if path is None else dax.dax_device(require_usable(path))
    if device is None and name.startswith("dax://"):
        raise UsageError(
            printable(name),
            found="no DAX device",
            expected="a device such as /dev/dax0.0",
            advice="`ndctl create-namespace --mode=devdax` makes one of a namespace, whose data is lost.",
        )
    return device


def named_plainly(places: dict[str, Place]) -> dict[str, Place]:
    """Places with the plain names fio knows them by: one for each path, none for exports."""
    paths = list(dict.fromkeys(place.path for place in places.values() if path_of(place.path) is not None))
    links = {path: f"t{number}" for number, path in enumerate(paths)}
    return {name: replace(place, link=links.get(place.path, "")) for name, place in places.items()}


def require_roles_apart(target: Target, workload: Workload, places: dict[str, Place]) -> None:
    """Refuse two roles on one file or device; streams without a role share the target's."""
    named = {}
    for stream in workload.io:
        place = places[stream.name]
        if place.identity is not None and not place.is_made:
            role = stream.role if stream.role in target.roles else None
            named["--on" if role is None else f"--{role}"] = place.identity
    require_apart(named)


def plain_name(name: str) -> str:
    """A name that fio and the file system read as it is written: streams of job files have any name."""
    plain = _ODD.sub("_", name)
    # Two names stay two, and fio's own section stays its own.
    return plain if plain == name and name != "global" else f"{plain}-{crc32(name.encode(errors='replace')):08x}"


def path_of(name: str) -> str | None:
    """The file or device of this machine a target is; None for exports."""
    scheme, mark, rest = name.partition("://")
    if not is_uri(name) or not mark:
        return name
    return rest if scheme in _OF_PATHS else None


def require_plain_uri(name: str) -> None:
    """Refuse an address that fio would read in another way than it is written."""
    scheme = name.partition("://")[0]
    if scheme not in ENGINES:
        raise UsageError(
            printable(name),
            found=f"a target of kind {scheme}",
            expected=f"one of {', '.join(ENGINES)}, or a path",
            advice="For example nbd://127.0.0.1:10809/disk",
        )
    if scheme not in _OF_PATHS and _PLAIN_URI.fullmatch(name) is None:
        raise UsageError(
            printable(name),
            found="an address with a blank, a quote or one of # ; $ { } \\",
            expected="letters, digits and - . _ ~ : / ? @ & = + , % [ ]",
            advice="Write others as %XX, or name the export otherwise.",
        )


def reach(plan: LoadPlan) -> None:
    """Open and lock every place of this machine, make those that are to be made; a second time is nothing.

    Raises:
        UsageError: one is not what the plan identified, is locked, or is there already.
        ToolError: one cannot be made.
    """
    sizes: dict[str, int] = {}
    for place in plan.places.values():
        sizes[place.path] = max(place.size_bytes, sizes.get(place.path, 0))
    for place in plan.places.values():
        path = path_of(place.path)
        if path is None:
            continue
        if place.is_made:
            plan.targets.make(path, place.link, place.identity, sizes[place.path])
        else:
            plan.targets.open(path, place.link, place.identity, writes=not plan.read_only)


def every_way(place: Place) -> list[Place]:
    """Return a place once for each way to it."""
    return [replace(place, path=path, further=()) for path in (place.path, *place.further)]


def where(place: Place) -> str:
    """The option, as a line of a job file, that tells fio where to work.

    Raises:
        UsageError: there is no plain name, and fio would read the path in another way than it is written.
    """
    scheme, _, rest = place.path.partition("://")
    if place.link:
        return f"filename={place.link}"
    if is_uri(place.path) and scheme not in _OF_PATHS:
        return f"rbdname={rest}" if scheme == "rbd" else f"uri={place.path}"
    return f"filename={plain_path(path_of(place.path) or '')}"


def plain_path(path: str) -> str:
    """A path as fio takes it where it can be given no plain name: on a machine where nothing but fio runs.

    Raises:
        UsageError: fio would read it in another way than it is written.
    """
    if not path.isprintable() or any(mark in path for mark in _CUT) or path != path.strip():
        raise UsageError(
            printable(path),
            found="a path that fio would cut or change",
            expected='one without # ; ${ " control characters, and blanks at an end',
            advice="Name it by a link with a plain name, made on that machine.",
        )
    return path.replace(":", chr(92) + ":")
