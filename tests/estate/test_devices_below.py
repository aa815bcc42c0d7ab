"""Which device is below a capped disk, where nothing names it: a slow one is found among many that are busier."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from leadline.core.contracts.discovery import load_unit
from leadline.core.contracts.rule import RuleContext
from leadline.core.model.finding import Finding
from tests.rule_cases import capture_of, rule_cases

RULE = "vm-iops-limit-hit"


def device(name: str, latency: list[Any], rate: list[Any]) -> list[dict[str, Any]]:
    entity = f"host:esx01/device:{name}"
    return [
        {"entity": entity, "metric": "disk_device_latency_ms", "values": latency},
        {"entity": entity, "metric": "disk_iops", "values": rate},
    ]


def findings(*devices: list[dict[str, Any]]) -> list[Finding]:
    """What the rule says of its first case beside these devices."""
    case = next(case for case in rule_cases()[RULE] if case.name == "fires")
    document = deepcopy(case.document)
    document["series"] = [one for one in document["series"] if "/device:" not in one["entity"]]
    document["series"] += [series for one in devices for series in one]
    module = load_unit("rule", RULE)
    return list(module.check(RuleContext(RULE, module.META, module.__doc__ or "", capture_of(document))))


BUSY = [device(f"naa.busy{i:02}", [[0.4, 72]], [[5000 + 100 * i, 72]]) for i in range(12)]
OWN_RATE = [[150, 24], [700, 24], [150, 24]]


def test_a_limit_is_told_beside_devices_that_are_all_quick() -> None:
    (finding,) = findings(*BUSY, device("naa.quick", [[0.6, 72]], OWN_RATE))
    assert any("device " in evidence.statement for evidence in finding.evidence)


def test_a_slow_device_is_no_limit_however_many_are_busier() -> None:
    assert findings(*BUSY, device("naa.slow", [[0.6, 24], [29.0, 24], [0.6, 24]], OWN_RATE)) == []


def test_a_slow_device_that_does_too_little_cannot_be_it() -> None:
    assert len(findings(*BUSY, device("naa.idle", [[60, 72]], [[3, 72]]))) == 1
