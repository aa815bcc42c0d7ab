"""Names replaced consistently, so that a report can be sent to somebody outside: vm-1, host-2, ip-3.

The capture and the diagnosis are replaced before anything is drawn, so nothing downstream can leak a name. It is a
list of what may stay, not of what must go: names machines give (``sda``, ``scsi0:1``, ``vmhba2``), well-known
programs, numbers, times, versions, and words that are Leadline's own vocabulary (its messages, rules and catalogues).
Names of entities, jobs and files, and network addresses, UUIDs, WWNs and NAA ids are replaced as a whole; after that
everything left that is not of the vocabulary, wherever it stands, also in fields nobody thought of. A name made of
everyday words (``db-prod-east``, ``user_17``) is not of the vocabulary. In SQL every identifier and literal goes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields, is_dataclass, replace
from functools import cache, partial
from importlib import resources
from ipaddress import AddressValueError, IPv6Address
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, cast

from leadline.app.read.importing import Imported
from leadline.core.contracts.discovery import unit_modules
from leadline.core.model.capture import Capture
from leadline.core.model.entities import Entity, Fact, Inventory
from leadline.core.model.errors import LeadlineError
from leadline.core.model.metrics import RAW_PREFIX, metrics
from leadline.core.model.vocabulary import EntityKind, Layer, LayerState, Role
from leadline.core.model.who import Who
from leadline.faces.report.sql import sql_start, without_names

if TYPE_CHECKING:
    from leadline.app.compare.comparing import Comparison
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
    "device": re.compile(
        r"\b(?:naa|eui|t10|mpx|vml|iqn|nqn|fc|ua)\.[\w:.+-]*\w|\b(?:wwn|nvme|scsi|ata|usb|dm-uuid|lvm-pv-uuid)-[\w.:+-]*\w",
        re.IGNORECASE,
    ),
    "wwn": re.compile(
        r"(?<![\w:])(?:[0-9a-f]{2}:){7}(?:[0-9a-f]{2}:){0,24}[0-9a-f]{2}(?![\w:])"
        r"|\b(?:wwn-|nvme-|scsi-|ata-|fc\.)?0x[0-9a-f]{8,32}\b|\b(?=\d*[a-f])(?=[a-f]*\d)(?:[0-9a-f]{16}|[0-9a-f]{32,33})\b",
        re.IGNORECASE,
    ),
    "mac": re.compile(r"(?<![\w:])(?:[0-9a-f]{2}[:-]){5}[0-9a-f]{2}(?![\w:])", re.IGNORECASE),
    "uuid": re.compile(r"\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b", re.IGNORECASE),
    "ip": re.compile(
        r"(?<![\w.])(?:\d{1,3}\.){3}\d{1,3}(?![\w.]*\d)|(?<![\w:.])[0-9a-f:]*:[0-9a-f:]*:(?:[0-9a-f.]*\w)?(?:%\w+)?",
        re.IGNORECASE,
    ),
}
# As ESXi (naa., eui.), udev (wwn-0x, scsi-3) and lsblk (0x) write the same number.
_WRITTEN_WWN = re.compile(
    r"(?:naa\.|eui\.|(?:wwn|nvme|scsi)-(?:0x|eui\.|3(?=[0-9a-f]{32}$))?|0x)?([0-9a-f]{16}|[0-9a-f]{32})"
)
_UNSPECIFIED = IPv6Address("::")
_SESSION_FACTS = {"user", "application", "table"}  # a client is an address
_NAMED_FACTS = _SESSION_FACTS | {
    "device",
    "datastore",
    "virtual_disk",
    "file",
    "mount",
    "hostname",
    "cluster",
    "path",
    "vm",
    "host",
}
_OWN_FIELDS = frozenset({"rule", "rules_run", "code", "metric", "unit", "caused_by", "needs"})
_WORD = re.compile(r"[^\W\d_]+")
_TOKEN = re.compile(r"\w(?:[\w.$@+-]*\w)?")
_DOCSTRING = re.compile(r'(?:\A|:\n\s*)r?"{3}.*?"{3}', re.DOTALL)
_STRING = re.compile(r'"{3}.*?"{3}|"(?:[^"\\\n]|\\.)*"', re.DOTALL)
_PLACE = re.compile(r"\b(?:africa|america|asia|australia|europe|pacific)/\w+")  # examples of time zones
# Numbers with a unit, versions, and times in the form of ISO 8601, which a token holds up to the hour.
_MEASURE = re.compile(
    r"(?i)v?\d[\d.,]*[a-zµ]?[+-]?\d*|\d{4}-\d\d-\d\dT\d*|\d[\d.,]*-?([^\W\d_]{1,5})(?:[/.]([^\W\d_]{1,3}))?"
)
_VERSION = re.compile(
    r"\d+(?:\.\d+)+(?:[-+~._](?:\d+|amd64|x86_64|aarch64|generic|cloud|lts|uek|deb\d+u?\d*|el\d+\w{0,2}|fc\d*|rc\d+))+"
)
_ALIAS = re.compile(r"([a-z-]+-\d+)([._:$@+-].*)")
# Where the texts are that findings are written in, and the names of what recordings are translated into.
_VOCABULARY = ("core", "estate", "formats", "importers", "rules", "collectors", "app")
_STEMS = {EntityKind.BLOCK_DEVICE: "disk", EntityKind.DEVICE: "device", EntityKind.WORLD: "world"}


class Replacer:
    """Names to aliases, the same name always to the same alias, letter case and a domain after a host name ignored."""

    def __init__(self) -> None:
        self._aliases: dict[str, str] = {}  # of names that were added
        self._met_aliases: dict[str, str] = {}  # of what was met in texts
        self._counts: dict[str, int] = {}
        self._given: set[str] = set()
        self._pattern: re.Pattern[str] | None = None
        self._texts: dict[str, str] = {}  # replaced already; an estate says the same of thousands of machines

    def add(self, name: str, stem: str, suffix: str = "") -> str:
        """The alias of a name, a new one of the stem when it has none; generic names stay."""
        key = name.casefold()
        if key not in self._aliases:
            self._know(
                key, name if _is_generic(name) else self._met_aliases.get(_device_id(key)) or self._next(stem, suffix)
            )
        return self._aliases[key]

    def share(self, name: str, alias: str) -> None:
        """Give a name the alias of another one, unless it has its own."""
        if name.casefold() not in self._aliases:
            self._know(name.casefold(), alias)

    def alias(self, name: str) -> str:
        """The alias of a name already added, else the name as a text with names replaced."""
        return self._aliases.get(name.casefold()) or self.text(name)

    def text(self, text: str) -> str:
        """A text with every known name, every address and every word replaced that is not of the vocabulary."""
        replaced = self._texts.get(text)
        if replaced is None:
            start = sql_start(text)
            replaced = self._prose(text[:start]) + without_names(text[start:], self._identifier)
            self._texts[text] = replaced
        return replaced

    def _know(self, key: str, alias: str) -> None:
        self._aliases[key] = alias
        if alias.casefold() != key:
            self._met_aliases.setdefault(_device_id(key), alias)
        self._pattern = None
        self._texts.clear()

    def _prose(self, text: str) -> str:
        if self._pattern is None:
            changed = [name for name, alias in self._aliases.items() if name != alias.casefold()]
            known = [name for name in changed if name not in _own_words()]
            self._pattern = re.compile(rf"(?<![^\W_])(?:{_alternatives(known)})(?![^\W_])", re.IGNORECASE)
        replaced = self._pattern.sub(lambda match: self._aliases[match[0].casefold()], text)
        for stem, pattern in _ADDRESSES.items():
            replaced = pattern.sub(partial(self._address, stem), replaced)
        return _TOKEN.sub(self._unknown, replaced)

    def _unknown(self, match: re.Match[str]) -> str:
        """Return the token itself when the vocabulary has it or it is a measure, else its alias."""
        token = match[0]
        alias = _ALIAS.match(token)
        is_given = token in self._given or (alias is not None and alias[1] in self._given and _is_known(alias[2]))
        if is_given or _is_of_vocabulary(token) or _is_generic(token):
            return token
        return self._met("name", token)

    def _identifier(self, name: str) -> str:
        """Return the alias of a name in a statement, also of one that is a word of the vocabulary elsewhere."""
        alias = self._aliases.get(name.casefold())
        return self._met("name", name) if alias is None or alias == name else alias

    def _address(self, stem: str, match: re.Match[str]) -> str:
        if stem == "ip" and ":" in match[0] and not _is_ipv6(match[0]):
            return match[0]
        return match[0] if match[0].casefold() in self._given else self._met(stem, match[0])

    def _met(self, stem: str, name: str) -> str:
        key = _device_id(name.casefold())
        if key not in self._met_aliases:
            known = self._aliases.get(name.casefold(), name)
            self._met_aliases[key] = self._next(stem) if known == name else known
        return self._met_aliases[key]

    def _next(self, stem: str, suffix: str = "") -> str:
        self._counts[stem] = self._counts.get(stem, 0) + 1
        alias = f"{stem}-{self._counts[stem]}{suffix}"
        self._given.add(alias)
        return alias


def _device_id(name: str) -> str:
    """The number in a device's world wide name, in small letters, however it is written; any other name as it is.

    >>> _device_id("naa.5000c500a1b2c3d4"), _device_id("wwn-0x5000c500a1b2c3d4"), _device_id("sda")
    ('5000c500a1b2c3d4', '5000c500a1b2c3d4', 'sda')
    """
    match = _WRITTEN_WWN.fullmatch(name)
    return name if match is None else match[1]


def _is_ipv6(text: str) -> bool:
    """Whether a text with colons is an address rather than a time; ``::`` alone tells nothing."""
    try:
        return IPv6Address(text.rstrip(":.") if not text.endswith("::") else text) > _UNSPECIFIED
    except AddressValueError:
        return False


def _is_known(rest: str) -> bool:
    """Whether what follows an alias in a token is numbers and words of the vocabulary: ``vm-1_1.vmdk``."""
    return all(_is_of_vocabulary(word) for word in _WORD.findall(rest))


@cache
def _is_of_vocabulary(token: str) -> bool:
    """Whether a token is a word of Leadline's texts, stands in them as a whole, or is a number with a unit.

    A name made of everyday words (``db-prod-east``, ``user_17``) is none of these.
    """
    words, tokens = _vocabulary()
    folded = token.casefold()
    if folded in tokens or folded in words or len(token) == 1:
        return True
    tool, _, field = token.partition(".")
    if field and tool in unit_modules("importer"):  # a metric that only its tool knows
        return all(_is_of_vocabulary(part) for part in field.split("."))
    if _VERSION.fullmatch(folded):
        return True
    measure = _MEASURE.fullmatch(token)
    return measure is not None and all(unit is None or unit.casefold() in words for unit in measure.groups())


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
    elif entity.kind not in (EntityKind.STATEMENT, EntityKind.SESSION, EntityKind.SETTING):  # SQL and words of ours
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
def _vocabulary() -> tuple[frozenset[str], frozenset[str]]:
    """Words and whole tokens of Leadline's own texts, names of metrics, settings and values, in small letters.

    Of code these are its strings; of docstrings only the rules', which findings quote. The others' show samples of
    recordings, which are full of names.
    """
    words: set[str] = set()
    tokens: set[str] = set()
    folders = [(name, resources.files("leadline").joinpath(name)) for name in _VOCABULARY]
    while folders:
        base, folder = folders.pop()
        for entry in folder.iterdir():
            if entry.is_dir():
                folders.append((base, entry))
            elif entry.name.endswith((".py", ".csv")):
                text = _PLACE.sub("", entry.read_text(encoding="utf-8").casefold())
                if entry.name.endswith(".py"):
                    kept = _DOCSTRING.findall(text) if base == "rules" else []
                    text = "\n".join([*kept, *_STRING.findall(_DOCSTRING.sub("", text))])
                words.update(_WORD.findall(text))
                tokens.update(_TOKEN.findall(text))
    return frozenset(words), frozenset(tokens)


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
    if isinstance(value, Who):
        keep |= {"of"}
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
