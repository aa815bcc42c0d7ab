"""What a reader of `independent` returns, and the comparison of it with what Leadline reads from the same file."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from leadline.core.model.capture import Capture
from leadline.core.model.result import Operation, Result
from tests.importers.recordings import group_of

NAN = float("nan")
RELATIVE = 1e-6  # wide recordings keep float32


@dataclass(frozen=True, slots=True)
class Reading:
    """The numbers of one file, in the units of metrics.csv.

    ``series`` is (metric, entity) -> all samples; ``results`` is (job, operation) -> quantity -> value, where a
    quantity is a field of `Operation` or a key of its latencies and ``job#2`` is the third result of a job that ran
    several times; ``facts`` is (entity, fact) -> value, which may be a table of values.
    """

    series: dict[tuple[str, str], list[float]] = field(default_factory=dict)
    results: dict[tuple[str, str], dict[str, float]] = field(default_factory=dict)
    facts: dict[tuple[str, str], object] = field(default_factory=dict)

    @property
    def count(self) -> int:
        """How many numbers are compared."""
        samples = sum(len(values) for values in self.series.values())
        facts = sum(len(value) if isinstance(value, dict) else 1 for value in self.facts.values())
        return samples + sum(len(each) for each in self.results.values()) + facts


def assert_same(capture: Capture, reading: Reading) -> None:
    """Compare every number of a reading with the capture's."""
    for (metric, entity), values in reading.series.items():
        measured = np.asarray(group_of(capture, metric, entity).values[0], dtype=np.float64)
        np.testing.assert_allclose(measured, values, rtol=RELATIVE, atol=1e-9, err_msg=f"{metric} of {entity}")
    for (job, name), quantities in reading.results.items():
        operation = _operation(capture.results, job, name)
        for quantity, value in quantities.items():
            measured_value = _quantity(operation, quantity)
            assert math.isclose(measured_value, value, rel_tol=RELATIVE), f"{job} {name} {quantity}"
    facts = {str(entity): known for entity, known in capture.inventory.facts.items()}
    for (entity, fact), expected in reading.facts.items():
        assert facts[entity][fact].value == expected, f"{fact} of {entity}"


def _operation(results: list[Result], job: str, name: str) -> Operation:
    job, _, place = job.partition("#")
    matching = [each for result in results if result.job == job for each in result.operations if each.name == name]
    assert place or len(matching) == 1, f"{job} {name}: {len(matching)} operations"
    return matching[int(place or 0)]


def _quantity(operation: Operation, quantity: str) -> float:
    if quantity in operation.latency_ms:
        return operation.latency_ms[quantity]
    return float(getattr(operation, quantity))
