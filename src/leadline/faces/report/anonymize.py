"""Names replaced consistently, so that a report can be sent to somebody outside: vm-1, host-2, ip-3.

The capture and the diagnosis are replaced before anything is drawn, so nothing downstream can leak a name. It is a
list of what may stay, not of what must go: names machines give (``sda``, ``scsi0:1``, ``vmhba2``), well-known
programs, numbers, times, and words that are Leadline's own vocabulary (its rules, importers and catalogues). Names of
entities, jobs and files, and network addresses, UUIDs, WWNs and NAA ids are replaced as a whole; after that every
word left that is not of the vocabulary, wherever it stands, also in fields nobody thought of.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields, is_dataclass, replace
from functools import cache, partial
from importlib import resources
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, cast

from leadline.app.read.importing import Imported
from leadline.core.contracts.discovery import unit_modules
from leadline.core.model.capture import Capture
from leadline.core.model.entities import Entity, Fact, Inventory
from leadline.core.model.errors import LeadlineError
from leadline.core.model.metrics import RAW_PREFIX, metrics
from leadline.core.model.vocabulary import EntityKind, Layer, LayerState, Role

if TYPE_CHECKING:
    from leadline.app.diagnose.comparing import Comparison
    from leadline.core.model.finding import Diagnosis

# Given by kernels, hypervisors and tools, the same everywhere: they tell nobody whose machine it is.
_GENERIC = re.compile(
    r"""(?ix) [\W\d_]* | (sd|vd|xvd|hd)[a-z]{1,3}\d* | (nvme\d+n|nbd|loop|dm-|md|sr|fd|ram|zram|mmcblk|pmem)\d+(p\d+)?
    | (scsi|sata|ide|nvme)\d+(:\d+)? | vm(hba|nic|k)\d+(:c\d+:t\d+:l\d+)? | (lo|eth|ens|eno|enp|bond|wlan|virbr)[\ds]*
    | (v|dv)switch\d+ | [a-z]:? | _?total | all | idle | system | helper | guest | host | database | server
    | disk\ ?\d+ | physicaldrive\d+ | harddiskvolume\d+ | \d+\ [a-z]:(\ [a-z]:)*"""
)
# Programs of the field; any other process may be somebody's own and is replaced.
_PROGRAMS = re.compile(
    r"(?i)(postgres(ql)?|postmaster|mysqld?|mariadbd|sqlservr|sqlserver|oracle|mongod|redis-server|irisdb|iris|cache"
    r"|pgbench|fio|ioping|iperf3?|sysbench|hammerdb|vdbench|qemu[\w-]*|kvm|java|python3?|systemd[\w-]*|kworker|init|sshd"
    r"|vmstat|iostat|sar|sadc|pidstat|mpstat|top|bash|sh)(?:[\[(/:]\d+[\])]?)?"
)
_ADDRESSES = {
    "ip": re.compile(
        r"(?<![\w.])(?:\d{1,3}\.){3}\d{1,3}(?![\w.]*\d)"
        r"|(?<![\w:])(?:[0-9a-f]{1,4}:){7}[0-9a-f]{1,4}(?![\w:])"
        r"|(?<![\w:])(?:[0-9a-f]{1,4}:){1,6}(?::[0-9a-f]{1,4}){1,6}(?![\w:])",
        re.IGNORECASE,
    ),
    "mac": re.compile(r"(?<![\w:])(?:[0-9a-f]{2}[:-]){5}[0-9a-f]{2}(?![\w:])", re.IGNORECASE),
    "wwn": re.compile(r"(?<![\w:])(?:[0-9a-f]{2}:){7}[0-9a-f]{2}(?![\w:])", re.IGNORECASE),
    "uuid": re.compile(r"\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b", re.IGNORECASE),
    "device": re.compile(r"\b(?:naa|eui|t10|mpx)\.[\w:.]+", re.IGNORECASE),
}
_NAMED_FACTS = {"device", "datastore", "virtual_disk", "file", "mount", "hostname", "cluster", "path", "vm", "host"}
_OWN_FIELDS = frozenset({"rule", "rules_run", "code", "metric", "unit", "caused_by", "needs"})
_WORD = re.compile(r"[^\W\d_]+")
_TOKEN = re.compile(r"\w(?:[\w.$@+-]*\w)?")
# Where the words are that recordings are translated into and findings are written in.
_VOCABULARY = ("core", "estate", "formats", "importers", "rules", "collectors", "app")
_STEMS = {EntityKind.BLOCK_DEVICE: "disk", EntityKind.DEVICE: "device", EntityKind.WORLD: "world"}


class Replacer:
    """Names to aliases, the same name always to the same alias, letter case and a domain after a host name ignored."""

    def __init__(self) -> None:
        self._aliases: dict[str, str] = {}
        self._counts: dict[str, int] = {}
        self._given: set[str] = set()
        self._pattern: re.Pattern[str] | None = None

    def add(self, name: str, stem: str, suffix: str = "") -> str:
        """The alias of a name, a new one of the stem when it has none; generic names stay."""
        key = name.casefold()
        if key not in self._aliases:
            self._aliases[key] = name if _is_generic(name) else self._next(stem) + suffix
            self._pattern = None
        return self._aliases[key]

    def share(self, name: str, alias: str) -> None:
        """Give a name the alias of another one, unless it has its own."""
        if name.casefold() not in self._aliases:
            self._aliases[name.casefold()] = alias
            self._pattern = None

    def alias(self, name: str) -> str:
        """The alias of a name already added, else the name as a text with names replaced."""
        return self._aliases.get(name.casefold()) or self.text(name)

    def text(self, text: str) -> str:
        """A text with every known name, and every address, replaced."""
        if self._pattern is None:
            changed = [name for name, alias in self._aliases.items() if name != alias.casefold()]
            known = [name for name in changed if name not in _own_words()]
            self._pattern = re.compile(rf"(?<![^\W_])(?:{_alternatives(known)})(?![^\W_])", re.IGNORECASE)
        replaced = self._pattern.sub(lambda match: self._aliases[match[0].casefold()], text)
        for stem in ("wwn", "mac", "uuid", "device", "ip"):
            replaced = _ADDRESSES[stem].sub(partial(self._address, stem), replaced)
        return _TOKEN.sub(self._unknown, replaced)

    def _unknown(self, match: re.Match[str]) -> str:
        """Return the word itself when all its parts are in the vocabulary, else its alias."""
        token = match[0]
        if all(len(word) == 1 or word.casefold() in _vocabulary() for word in _WORD.findall(token)):
            return token
        if _is_generic(token) or token.casefold() in self._given:
            return token
        if token.casefold() not in self._aliases:
            self._aliases[token.casefold()] = self._next("name")
        return self._aliases[token.casefold()]

    def _address(self, stem: str, match: re.Match[str]) -> str:
        key = match[0].casefold()
        if key not in self._aliases:
            self._aliases[key] = self._next(stem)
        return self._aliases[key]

    def _next(self, stem: str) -> str:
        self._counts[stem] = self._counts.get(stem, 0) + 1
        alias = f"{stem}-{self._counts[stem]}"
        self._given.add(alias)
        return alias


def anonymized(
    diagnosis: Diagnosis, imported: Imported, comparison: Comparison | None = None
) -> tuple[Diagnosis, Imported, Comparison | None]:
    """Diagnosis, capture and comparison with names replaced by the same aliases; numbers stay as they are."""
    replacer = _replacer_of(imported, comparison)
    entities: dict[Entity, Entity] = {}

    def renamed(entity: Entity) -> Entity:
        if entity not in entities:
            parent = None if entity.parent is None else renamed(entity.parent)
            entities[entity] = Entity(entity.kind, replacer.alias(entity.name), parent)
        return entities[entity]

    capture = imported.capture
    anonymous = Capture(
        [
            group.relabelled(metric=_metric(group.metric, replacer), entities=[renamed(e) for e in group.entities])
            for group in capture.groups
        ],
        [_deep(source, replacer, renamed) for source in capture.sources],
        _inventory(capture.inventory, replacer, renamed),
        [_deep(result, replacer, renamed) for result in capture.results],
    )
    masked = Imported(
        anonymous,
        [replacer.text(name) for name in imported.unrecognised],
        [_error(error, replacer) for error in imported.left_out],
    )
    return (
        cast("Diagnosis", _deep(diagnosis, replacer, renamed, _OWN_FIELDS)),
        masked,
        cast("Comparison | None", _deep(comparison, replacer, renamed, _OWN_FIELDS | {"setting", "statistic"})),
    )


def _replacer_of(imported: Imported, comparison: Comparison | None) -> Replacer:
    """Return aliases for every name in a recording. Machines come first: disks named after one get its alias."""
    replacer = Replacer()
    capture = imported.capture
    seen = dict.fromkeys(e for group in capture.groups for e in group.entities)
    every = dict.fromkeys(
        part for entity in (*seen, *capture.inventory.facts, *_entities_of(comparison)) for part in entity.lineage()
    )
    machines = (EntityKind.CLUSTER, EntityKind.HOST, EntityKind.VM, EntityKind.GUEST)
    for kind in (*machines, *(kind for kind in EntityKind if kind not in machines)):
        for entity in every:
            if entity.kind is kind:
                _add_entity(replacer, entity)
    _add_measured(replacer, capture)
    settings = [(name, fact.value) for facts in capture.inventory.facts.values() for name, fact in facts.items()]
    for change in () if comparison is None else comparison.settings:
        settings += [(change.setting, change.before), (change.setting, change.after)]
    for name, value in settings:
        if name in _NAMED_FACTS and isinstance(value, str):
            replacer.add(value, name.replace("_", "-"))
    paths = [s.name for s in capture.sources] + imported.unrecognised + [e.where for e in imported.left_out]
    fact_sources = [fact.source for facts in capture.inventory.facts.values() for fact in facts.values()]
    # The others say how a fact was guessed.
    paths += [source for source in fact_sources if "/" in source or "." in source]
    for path in dict.fromkeys(paths):
        _add_path(replacer, path)
    return replacer


def _add_measured(replacer: Replacer, capture: Capture) -> None:
    """The machines sources and results are of, and the jobs people named; a job called ``read`` tells nothing."""
    for source in capture.sources:
        if source.host:
            _add_machine(replacer, source.host, "guest")
    for result in capture.results:
        if result.host:
            _add_machine(replacer, result.host, "guest")
        if result.job.casefold() not in _own_words():
            replacer.add(result.job, "job")


def _entities_of(comparison: Comparison | None) -> Iterator[Entity]:
    """What a comparison names; things that are gone are in no capture any more."""
    if comparison is None:
        return
    for finding in (*comparison.new, *comparison.gone):
        yield finding.entity
        yield from (evidence.entity for evidence in finding.evidence if evidence.entity is not None)
    yield from (change.entity for change in comparison.changes)
    yield from (setting.entity for setting in comparison.settings)


def _add_entity(replacer: Replacer, entity: Entity) -> None:
    stem = _STEMS.get(entity.kind, entity.kind.value)
    if entity.kind in (EntityKind.HOST, EntityKind.VM, EntityKind.GUEST):
        _add_machine(replacer, entity.name, stem)
    else:
        replacer.add(entity.name, stem)


def _add_machine(replacer: Replacer, name: str, stem: str) -> None:
    """A machine's name with and without its domain is one machine; an address is not cut."""
    short = name.split(".", maxsplit=1)[0]
    if short == name or _is_generic(short):
        replacer.add(name, stem)
    else:
        replacer.share(name, replacer.add(short, stem))


def _add_path(replacer: Replacer, path: str) -> None:
    """A file's path and its bare name are one alias, which keeps the ending: ``file-1.csv``."""
    bare = PurePosixPath(path.replace("!", "/")).name
    suffix = "".join(PurePosixPath(bare).suffixes[-2:])
    suffix = suffix if re.fullmatch(r"(\.[a-z]{1,7}){1,2}", suffix) else PurePosixPath(bare).suffix
    alias = replacer.add(path, "file", suffix)
    # A file called like its tool does not make the tool's name a secret.
    if bare and not _is_generic(bare) and bare.casefold() not in _own_words():
        replacer.share(bare, alias)


@cache
def _own_words() -> frozenset[str]:
    """Words of the field: a VM called ``disk`` is renamed as an entity, but not in every sentence."""
    texts = [*EntityKind, *Layer, *LayerState, *Role, *(f"{m.name} {m.unit}" for m in metrics().values())]
    return frozenset(_WORD.findall(" ".join([*texts, *unit_modules("importer")]).casefold().replace("_", " ")))


@cache
def _vocabulary() -> frozenset[str]:
    """Every word of Leadline's own texts, names of metrics, settings and values, in small letters."""
    words: set[str] = set()
    folders = [resources.files("leadline").joinpath(name) for name in _VOCABULARY]
    while folders:
        for entry in folders.pop().iterdir():
            if entry.is_dir():
                folders.append(entry)
            elif entry.name.endswith((".py", ".csv")):
                words.update(_WORD.findall(entry.read_text(encoding="utf-8").casefold()))
    return frozenset(words)


def _is_generic(name: str) -> bool:
    return bool(_GENERIC.fullmatch(name) or _PROGRAMS.fullmatch(name))


def _metric(name: str, replacer: Replacer) -> str:
    if not name.startswith(RAW_PREFIX):
        return name
    return RAW_PREFIX + replacer.text(name.removeprefix(RAW_PREFIX))


def _inventory(inventory: Inventory, replacer: Replacer, renamed: Callable[[Entity], Entity]) -> Inventory:
    facts = {
        renamed(entity): {
            replacer.text(name): Fact(_deep(fact.value, replacer, renamed), replacer.text(fact.source), fact.guessed)
            for name, fact in settings.items()
        }
        for entity, settings in inventory.facts.items()
    }
    return Inventory(facts, {renamed(guest): renamed(vm) for guest, vm in inventory.links.items()})


def _deep(
    value: Any,  # noqa: ANN401 - whatever findings and sources are made of
    replacer: Replacer,
    renamed: Callable[[Entity], Entity],
    keep: frozenset[str] = frozenset(),
) -> Any:  # noqa: ANN401
    """The same structure with entities renamed and texts replaced; fields in ``keep`` are Leadline's own words."""
    if isinstance(value, Entity):
        return renamed(value)
    if type(value) is str:  # not an enumeration, whose members are strings too
        return replacer.alias(value)
    if is_dataclass(value) and not isinstance(value, type):
        changed = {
            f.name: _deep(getattr(value, f.name), replacer, renamed, keep)
            for f in fields(value)
            if f.init and f.name not in keep
        }
        return replace(value, **changed)
    if isinstance(value, dict):
        return {_deep(key, replacer, renamed): _deep(child, replacer, renamed, keep) for key, child in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_deep(item, replacer, renamed, keep) for item in value)
    return value


def _error(error: LeadlineError, replacer: Replacer) -> LeadlineError:
    parts = {name: replacer.text(getattr(error, name)) for name in ("found", "expected", "advice")}
    return type(error)(replacer.text(error.where), **parts)


def _alternatives(names: Iterable[str]) -> str:
    """A pattern that matches any of the names, the longest first; a tree, so that thousands cost little."""
    root: dict[str, Any] = {}
    for name in names:
        node = root
        for letter in name:
            node = node.setdefault(letter, {})
        node[""] = {}
    return _branch(root) if root else r"(?!)"


def _branch(node: dict[str, Any]) -> str:
    """The pattern of a node of the tree; runs of single letters are walked in a loop to keep nesting shallow."""
    prefix = ""
    while len(node) == 1 and "" not in node:
        letter, node = next(iter(node.items()))
        prefix += re.escape(letter)
    branches = [re.escape(letter) + _branch(child) for letter, child in sorted(node.items()) if letter]
    if not branches:
        return prefix
    return f"{prefix}(?:{'|'.join(branches)}){'?' if '' in node else ''}"
