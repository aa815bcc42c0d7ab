"""Lengths of time as scenarios name them: a constant, or a distribution to draw from."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from leadline.core.model.workload import Seconds

NS_PER_S = 1e9
Plain: TypeAlias = tuple[str, list[float], list[tuple[float, float, float]]]
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

    def plain(self) -> Plain:
        """As the simulator takes it, in ns: kind, parameters, buckets."""
        if self.kind == "empirical":
            return self.kind, [], [(a * NS_PER_S, b * NS_PER_S, n) for a, b, n in self.buckets or ()]
        times = {
            name: value * NS_PER_S for name in ("mean", "low", "high") if (value := getattr(self, name)) is not None
        }
        numbers = [times[name] if name in times else float(getattr(self, name)) for name in _NEEDS[self.kind]]
        if self.kind == "normal":
            numbers[1] *= numbers[0]  # the simulator takes the deviation itself
        return self.kind, numbers, []


def _draw(given: object) -> Any:  # noqa: ANN401 - whatever the file holds
    return {"mean": given} if isinstance(given, str | int | float) and not isinstance(given, bool) else given


DrawOf = Annotated[Draw, BeforeValidator(_draw)]
