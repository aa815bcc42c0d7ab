"""Lengths of time as scenarios name them: a constant, or a distribution to draw from."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from leadline.core.model.workload import Seconds

NS_PER_S = 1e9
_NEEDS = {
    "constant": ("mean",),
    "exponential": ("mean",),
    "uniform": ("low", "high"),
    "erlang": ("mean", "stages"),
    "normal": ("mean", "cv"),
    "lognormal": ("mean", "cv"),
    "pareto": ("mean", "shape"),
    "empirical": ("buckets",),
}
_Time = Annotated[Seconds, Field(ge=0)]


def ns_of(seconds: float) -> int:
    """Seconds in whole ns, as the simulator counts."""
    return round(seconds * NS_PER_S)


class Draw(BaseModel):
    """A length of time.

    ``cv`` is standard deviation by mean, ``shape`` the exponent of a Pareto tail (above 1), ``buckets`` a measured
    histogram as (lower, upper, count).
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: Literal["constant", "exponential", "uniform", "erlang", "normal", "lognormal", "pareto", "empirical"] = (
        "constant"
    )
    mean: _Time | None = None
    low: _Time | None = None
    high: _Time | None = None
    cv: Annotated[float, Field(ge=0)] | None = None
    stages: Annotated[int, Field(ge=1, le=1000)] | None = None
    shape: Annotated[float, Field(gt=1)] | None = None
    buckets: tuple[tuple[_Time, _Time, Annotated[float, Field(ge=0)]], ...] | None = None

    @model_validator(mode="after")
    def _complete(self) -> Draw:
        needed = _NEEDS[self.kind]
        given = {name for name in type(self).model_fields if name != "kind" and getattr(self, name) is not None}
        if given != set(needed):
            message = f"{self.kind} has {' and '.join(needed)}, not {', '.join(sorted(given)) or 'nothing'}"
            raise ValueError(message)
        return self

    def document(self) -> dict[str, Any]:
        """As the simulator takes it."""
        return self.model_dump(mode="json", exclude_none=True)

    def mean_ns(self) -> float:
        """The mean of what is drawn, ns."""
        if self.mean is not None:
            return self.mean * NS_PER_S
        if self.buckets is None:
            return ((self.low or 0.0) * NS_PER_S + (self.high or 0.0) * NS_PER_S) / 2.0
        weight = sum(count for _, _, count in self.buckets)
        return sum((low * NS_PER_S + high * NS_PER_S) / 2.0 * count for low, high, count in self.buckets) / weight


def _draw(given: object) -> Any:  # noqa: ANN401 - whatever the file holds
    return {"mean": given} if isinstance(given, str | int | float) and not isinstance(given, bool) else given


DrawOf = Annotated[Draw, BeforeValidator(_draw)]
