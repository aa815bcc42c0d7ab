"""The contract of rules: a file in ``rules/<layer>/`` with ``META`` and ``check``.

A rule's module docstring opens with one sentence and carries the headings *Finds, Why, Do, When it is wrong, Sources*;
it is its documentation page, its ``leadline explain`` text, and *Do* is the remedy of its findings.

``check(context: RuleContext) -> Iterable[Finding]`` looks at the capture and inventory through the context. It is only
called when everything in ``META.needs`` is there; otherwise the rule is reported as skipped.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, Protocol, cast

import numpy as np

from leadline.core.contracts.docstrings import flowed, paragraphs, sections
from leadline.core.contracts.unit_index import unit_index
from leadline.core.model.finding import Evidence, Finding, Window
from leadline.core.model.result import run_together
from leadline.core.model.vocabulary import Blames, EntityKind, Layer, Role, Severity
from leadline.core.statistics.changes import change_of, changes_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from leadline.core.model.capture import Capture, SeriesGroup
    from leadline.core.model.derived import P, T, TableDefinition
    from leadline.core.model.entities import Entity, Inventory
    from leadline.core.model.incident import Change, Incident
    from leadline.core.model.result import Result


STORAGE = (Layer.STORAGE_PATH, Layer.DATASTORE)  # the layers that are the disk itself, not somebody's view of it
_FOR_SOME = re.compile(r"Where [^,.;:]+:")  # advice for single kinds of finding (`RuleContext.advice`)
DISKS = "disks"  # the part of a layer whose rules tell of disks (`RuleMeta.examines`)
_LEVELS = frozenset({"warn", "crit"})


@dataclass(frozen=True, slots=True)
class Threshold:
    """A limit a rule compares with: value, unit, and where the number comes from.

    ``source`` is a title or section, or starts with ``Judgement:`` and says why.
    """

    value: float
    unit: str
    source: str


@dataclass(frozen=True, slots=True)
class RuleMeta:
    """What is known about a rule before it looks.

    Attributes:
        code: stable short code, never reused: three letters of the layer and a number.
        layer: the layer a finding accuses.
        severity: severity at the critical threshold (one lower between warning and critical).
        needs: what must be there: a metric, several joined by ``|`` of which one is enough, or ``kind.setting`` of
            the inventory (``vm.snapshot_count``).
        uses: metrics it also reads where they are there.
        thresholds: limits by name; a profile may override each.
        catalogue: ids of the entries of the researched catalogue it implements beside the one of its name.
        explains: rules whose findings are symptoms where this one fires on a related entity at the same time.
        clears: this rule running without a finding counts as having examined its layer.
        examines: the part of its layer it looks at ("CPU", "memory", "disks"); a layer is cleared when each part that
            any of its rules looks at was examined.
        causes: kinds of cause a finding names, most likely first.
        accuses: what a finding blames; None: what `blames` makes of the rest.
        of_incident: it compares an incident with its normal, and is skipped where there is none.
        clears_with: metrics without one of which the rule may find, but not clear: what it reads beside them is the
            view from another layer.
        is_wait: a finding states that something is waited for, never why: it is a symptom, also where nothing
            explains it.
        judgement: its numbers are ours, not a source's; then severity is at most medium.
    """

    code: str
    layer: Layer
    severity: Severity
    needs: tuple[str, ...]
    uses: tuple[str, ...] = ()
    thresholds: Mapping[str, Threshold] = field(default_factory=dict)
    catalogue: tuple[str, ...] = ()
    explains: tuple[str, ...] = ()
    clears: bool = True
    examines: str = ""
    causes: tuple[str, ...] = ()
    accuses: Blames | None = None
    of_incident: bool = False
    clears_with: tuple[str, ...] = ()
    is_wait: bool = False
    judgement: bool = False

    def to_plain(self) -> dict[str, Any]:
        """All of it as JSON can hold it."""
        limits = {name: [limit.value, limit.unit, limit.source] for name, limit in self.thresholds.items()}
        plain = {each.name: getattr(self, each.name) for each in fields(self)}
        return plain | {"layer": self.layer.value, "severity": int(self.severity), "thresholds": limits}

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> RuleMeta:
        """What `to_plain` was made of."""
        fields: dict[str, Any] = {n: tuple(v) if isinstance(v, list) else v for n, v in plain.items()}
        fields["layer"], fields["severity"] = Layer(plain["layer"]), Severity(plain["severity"])
        fields["accuses"] = None if plain["accuses"] is None else Blames(plain["accuses"])
        fields["thresholds"] = {name: Threshold(*limit) for name, limit in plain["thresholds"].items()}
        return cls(**fields)

    @property
    def blames(self) -> Blames:
        """What a finding blames: as stated, a wait, a setting, or the storage where it is of a layer of storage."""
        if self.accuses is not None:
            return self.accuses
        if self.is_wait:
            return Blames.WAIT
        if self.needs and all("." in part for need in self.needs for part in need.split("|")):
            return Blames.SETTING
        return Blames.DEVICE if self.layer in STORAGE else Blames.NOTHING

    def level_of(self, name: str, level: str) -> str | None:
        """The name of the limit of another level that belongs to one: of ``wal_warn`` and ``crit``, ``wal_crit``."""
        other = re.sub("warn|crit", level, name)
        return other if other in self.thresholds else None

    def is_below(self, name: str) -> bool:
        """Whether bad is below a limit: its critical limit is lower than its warning."""
        warn, crit = (self.level_of(name, level) for level in ("warn", "crit"))
        return warn is not None and crit is not None and self.thresholds[crit].value < self.thresholds[warn].value

    def metrics(self) -> set[str]:
        """Every metric the rule may read."""
        return {name for need in (*self.needs, *self.uses) for name in need.split("|") if "." not in name}


class Rule(Protocol):
    """The type of a rule module."""

    META: RuleMeta

    def check(self, context: RuleContext) -> Iterable[Finding]:
        """The findings."""


@cache
def rule_metas() -> dict[str, RuleMeta]:
    """META of every rule by name, without importing the rules."""
    known = unit_index("rule", lambda module: cast("Rule", module).META.to_plain())
    return {name: RuleMeta.from_plain(plain) for name, plain in known.items()}


@dataclass(frozen=True, slots=True)
class Scope:
    """What a rule is asked about.

    Attributes:
        incident: what is compared with its normal; None where all of a recording is looked at.
        longest_s: the longest duration a rule may ask for, so that a short incident or recording is judged too.
        effect_ratio: how many times its limits what a rule finds must be: more than 1 where a recording is too short
            for the duration, less than 1 to ask what is near a limit.
        load_ratio: how many times its least load (``load_min``) counts: less than 1 to ask of a disk that does little.
    """

    incident: Incident | None = None
    longest_s: float = float("inf")
    effect_ratio: float = 1.0
    load_ratio: float = 1.0


class RuleContext:
    """What a rule sees: capture, inventory, its own limits; and how it makes findings."""

    def __init__(
        self,
        name: str,
        meta: RuleMeta,
        doc: str,
        capture: Capture,
        overrides: Mapping[str, float] | None = None,
        scope: Scope | None = None,
    ) -> None:
        self.name = name
        self.meta = meta
        self.capture = capture
        self.incident = None if scope is None else scope.incident
        self._doc = doc
        self._overrides = dict(overrides or {})
        self._scope = scope or Scope()

    @property
    def inventory(self) -> Inventory:
        """What is known about settings."""
        return self.capture.inventory

    @cached_property
    def remedy(self) -> str:
        """The *Do* section of the rule's docstring as one paragraph, without the advice for single kinds of finding."""
        return " ".join(one for one in self._advised if not _FOR_SOME.match(one))

    @cached_property
    def _advised(self) -> list[str]:
        return [flowed(paragraph) for paragraph in paragraphs(sections(self._doc).get("Do", ""))]

    def advice(self, start: str) -> str:
        """The paragraph of *Do* that starts with some words ("Where only writes are slow"); the remedy where none does.

        What starts with "Where ...:" is the advice for such findings, and no part of the remedy of the others.
        """
        return next((paragraph for paragraph in self._advised if paragraph.startswith(start)), self.remedy)

    def limit(self, name: str) -> float:
        """The threshold of that name, as overridden by the profile; in the unit META gives.

        A duration is never longer than what an incident, or a recording, gives to see of it. Limits (``warn``,
        ``crit`` and those that end so) are those of the effect asked for: a large one is beyond the critical limit too.
        A limit of zero has no multiple, so no effect is large against it.
        """
        limit = self.stated_limit(name)
        if name == "duration":
            return min(limit, self._scope.longest_s)
        if name == "load_min":
            return limit * self._scope.load_ratio
        ratio = self._scope.effect_ratio
        if ratio == 1.0 or _LEVELS.isdisjoint(name.split("_")):
            return limit
        is_below = self.meta.is_below(name)
        scaled = limit / ratio if is_below else limit * ratio
        if ratio < 1.0:
            return scaled
        if limit <= 0.0:
            return float("inf")
        critical = self.meta.level_of(name, "crit")
        least = scaled if critical is None else self.stated_limit(critical)
        return min(scaled, least) if is_below else max(scaled, least)

    def stated_limit(self, name: str) -> float:
        """The threshold of that name as META or the profile gives it, whatever effect is asked for."""
        return self._overrides.get(name, self.meta.thresholds[name].value)

    def has_limit(self, name: str) -> bool:
        """Whether META names such a threshold."""
        return name in self.meta.thresholds

    @cached_property
    def results(self) -> list[Result]:
        """What load tools measured; jobs that ran at the same time on one disk are one result (``run_together``)."""
        return run_together(self.capture.results)

    def of(self, metric: str, *kinds: EntityKind) -> list[SeriesGroup]:
        """Groups of a metric (since-boot samples left out), of some entity kinds or of all."""
        return self.capture.of(metric, *kinds)

    def aligned(self, group: SeriesGroup, metric: str) -> NDArray[np.floating[Any]] | None:
        """Another metric of the same entities at the same times: [k, n] like ``group.values``.

        Rows are NaN where that entity has no such series with these times. None when no entity has one.
        """
        return self.capture.aligned(group, metric)

    def table(self, definition: TableDefinition[P, T], *key: P.args, **named: P.kwargs) -> T:
        """A table over all entities, computed once for all rules; its key is given in order, without names."""
        return self.capture.table(definition, *key, **named)

    def changes(self, metric: str, *kinds: EntityKind) -> list[Change]:
        """What each series of a metric did inside the incident and outside; empty without an incident."""
        return [] if self.incident is None else changes_of(self.capture, metric, self.incident, *kinds)

    def change_of(self, metric: str, entity: Entity) -> Change | None:
        """What an entity's series did inside the incident and outside; None where it was not recorded in both."""
        return None if self.incident is None else change_of(self.capture, metric, self.incident, entity)

    def change(self, metric: str, *kinds: EntityKind) -> Change | None:
        """The change of the series that had most of a metric, inside or outside; None where it was not recorded."""
        return max(
            self.changes(metric, *kinds), key=lambda change: max(abs(change.normal), abs(change.during)), default=None
        )

    def source_name(self, group: SeriesGroup) -> str:
        """The file a group was read from."""
        return self.capture.sources[group.source].name

    def role(self, entity: Entity) -> tuple[Role, bool] | None:
        """What a disk is for, and whether that is a guess; None when nothing hints at it."""
        fact = self.inventory.fact(entity, "role")
        return None if fact is None else (Role(fact.value), fact.guessed)

    def finding(  # noqa: PLR0913 - what a finding is made of
        self,
        entity: Entity,
        summary: str,
        evidence: Sequence[Evidence],
        *,
        severity: Severity | None = None,
        windows: Sequence[Window] = (),
        score: float = 1.0,
        guessed: Sequence[str] = (),
    ) -> Finding:
        """A finding of this rule; severity is META's unless given, and never above medium for a judgement."""
        level = self.meta.severity if severity is None else severity
        if self.meta.judgement:
            level = min(level, Severity.MEDIUM)
        return Finding(
            rule=self.name,
            code=self.meta.code,
            layer=self.meta.layer,
            entity=entity,
            severity=level,
            summary=summary,
            evidence=tuple(evidence),
            remedy=self.remedy,
            windows=tuple(windows),
            score=score,
            guessed=tuple(guessed),
            is_wait=self.meta.is_wait,
        )
