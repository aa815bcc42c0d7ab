"""A map: what the columns of a table mean, as a YAML file says it."""

from __future__ import annotations

import re
from datetime import date, datetime
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from leadline._core import CoreError, LinearRegex
from leadline.core.io.yaml_files import parse_model, read_text
from leadline.core.model.entities import Entity
from leadline.core.model.errors import LeadlineError, UsageError
from leadline.core.model.metrics import RAW_PREFIX, metric
from leadline.core.model.units import UNITS, factor
from leadline.core.model.vocabulary import EntityKind

KIND, GUIDE = "a table map", "docs/guides/tables.md"
STRICT = ConfigDict(extra="forbid", frozen=True)
# What a counted or summed thing becomes per second: its rate's unit, and what to multiply by.
RATES = {
    "count": ("per_s", 1.0),
    "bytes": ("bytes_per_s", 1.0),
    "kib": ("kib_per_s", 1.0),
    "mib": ("mib_per_s", 1.0),
    "gib": ("mib_per_s", 1024.0),
    "mb": ("mb_per_s", 1.0),
    "sectors": ("sectors_per_s", 1.0),
    "s": ("ratio", 1.0),
    "ms": ("ratio", 1e-3),
    "us": ("ratio", 1e-6),
    "ns": ("ratio", 1e-9),
}
NAME_MAX = 500
Text = Annotated[str, Field(min_length=1, max_length=NAME_MAX)]


class MapTime(BaseModel):
    """Where the moment of a row stands, and how it is written.

    Attributes:
        unit: of numbers: s, ms, us or ns since 1970; by their size when it is left out.
        format: of texts, as strptime has it; ISO 8601 when it is left out.
        timezone: IANA name, for texts without a zone.
        start: ISO 8601 moment that numbers count from, where it is not 1970.
    """

    model_config = STRICT

    column: Text
    unit: Literal["s", "ms", "us", "ns"] | None = None
    format: Text | None = None
    timezone: Text | None = None
    start: Text | None = None

    @field_validator("start", mode="before")
    @classmethod
    def _as_text(cls, given: object) -> object:
        return given.isoformat() if isinstance(given, date) else given  # YAML has times of its own

    @field_validator("format")
    @classmethod
    def _readable(cls, given: str | None) -> str | None:
        try:
            datetime.strptime("", given or "")  # noqa: DTZ007 - only whether it is a format
        except re.error as error:  # a directive that stands twice becomes a group that does
            message = f"{given!r} names a directive twice ({error.msg}); expected each at most once"
            raise ValueError(message) from None
        except ValueError as error:
            if "time data" not in str(error):  # what the empty text lacks is no fault of the format
                message = f"{given!r} is no format of times ({error}); expected the directives of strptime"
                raise ValueError(message) from None
        return given


class MapEntity(BaseModel):
    """Whose numbers these are: a name, or the column that has the names."""

    model_config = STRICT

    kind: EntityKind
    name: Text | None = None
    column: Text | None = None

    @model_validator(mode="after")
    def _one(self) -> MapEntity:
        if (self.name is None) == (self.column is None):
            message = "an entity has either a name, or the column with its names"
            raise ValueError(message)
        return self


class MapLong(BaseModel):
    """A table with one number a row: the columns that name what it is, and hold it."""

    model_config = STRICT

    name: Text
    value: Text


class MapColumn(BaseModel):
    """What one column, or every column that matches, means.

    Attributes:
        column: its name; in a long table the text of its name column.
        match: instead of it, a regular expression for whole names; the group ``entity`` is the name of the entity.
        metric: the canonical metric.
        unit: the unit of the numbers; the metric's own when it is left out. Of counters and amounts the unit of what
            is counted.
        counts: ``level`` as it is; ``counter`` since some start; ``amount`` since the row before.
        kind: of the entity whose name ``match`` finds.
        entity: whose numbers they are, if not the table's.
        scale: what to multiply by, after the unit.
    """

    model_config = STRICT

    column: Text | None = None
    match: Text | None = None
    metric: Text
    unit: Text | None = None
    counts: Literal["level", "counter", "amount"] = "level"
    kind: EntityKind | None = None
    entity: MapEntity | None = None
    scale: Annotated[float, Field(gt=0, le=1e12)] = 1.0

    @cached_property
    def pattern(self) -> LinearRegex:
        """The expression of ``match``, in an engine that no name can make slow; of nothing where there is none.

        Raises:
            ValueError: no regular expression, or one that cannot be matched in linear time.
        """
        try:
            return LinearRegex(self.match or "")
        except CoreError as error:
            expected = "one without look-around and back-references"
            message = f"{self.label}: no regular expression that can be used ({error.found}); expected {expected}"
            raise ValueError(message) from None

    @property
    def label(self) -> str:
        """What the map calls it."""
        return self.column or f"match {self.match}"

    @model_validator(mode="after")
    def _sound(self) -> MapColumn:
        if (self.column is None) == (self.match is None):
            message = "a column has either its name (column) or a pattern (match)"
            raise ValueError(message)
        if ("entity" in self.pattern.groups) != (self.kind is not None):
            message = f"{self.label}: kind and the group (?P<entity>...) of match go together"
            raise ValueError(message)
        try:
            self.factor()
        except LeadlineError as error:
            message = f"{self.label}: {error.where}: {error.found}; expected {error.expected}"
            raise ValueError(message) from None
        return self

    def factor(self) -> float:
        """What to multiply a number (of counters and amounts a number per second) by to have it in the metric's unit.

        Raises:
            UsageError: no such metric or unit, or a unit of another kind.
        """
        wanted = metric(self.metric).unit
        if self.metric.startswith(RAW_PREFIX):
            return self.scale
        if self.unit is not None and self.unit not in UNITS:
            raise UsageError(
                f"unit {self.unit}", found="unknown", expected=f"one of {', '.join(UNITS)}", advice=f"See {GUIDE}."
            )
        if self.counts == "level":
            return self.scale * factor(self.unit or wanted, wanted)
        if self.unit not in RATES:
            raise UsageError(
                f"unit {self.unit}",
                found=f"nothing that a {self.counts} counts",
                expected=f"one of {', '.join(RATES)}",
                advice=f"See {GUIDE}.",
            )
        unit, times = RATES[self.unit]
        return self.scale * times * factor(unit, wanted)


class TableMap(BaseModel):
    """What a table means."""

    model_config = STRICT

    leadline_table: Literal[1] = 1
    about: str = ""
    delimiter: Annotated[str, Field(min_length=1, max_length=1)] | None = None
    decimal: Literal[".", ","] = "."
    time: MapTime
    entity: MapEntity = MapEntity(kind=EntityKind.GUEST, name="guest")
    long: MapLong | None = None
    columns: tuple[MapColumn, ...] = ()

    def plain(self) -> dict[str, Any]:
        """Plain data that validates to the same map."""
        return self.model_dump(mode="json", exclude_defaults=True)

    def fixed(self) -> Entity | None:
        """The entity of the whole table, where it is not by row."""
        return None if self.entity.name is None else Entity(self.entity.kind, self.entity.name)


def read_map(path: Path) -> TableMap:
    """The map of a file.

    Raises:
        InputError: not readable, not YAML, or no map; with line and column of the first fault.
    """
    return parse_model(read_text(path, KIND, GUIDE), str(path), TableMap, KIND, GUIDE)
