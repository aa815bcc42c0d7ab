"""Write the skeleton of a unit with its file of cases: ``make new rule cpu-foo-high`` (or importer, fault,
collector, target, scenario, experiment, planner).

A rule's layer is asked for as a third word: ``make new rule cpu-foo-high hypervisor-cpu``.
"""

from __future__ import annotations

import sys
from pathlib import Path

from leadline.core.contracts.discovery import KINDS, load_units, unit_modules
from leadline.core.contracts.docstrings import HEADINGS
from leadline.core.model.vocabulary import Layer

ROOT = Path(__file__).resolve().parent.parent
PREFIXES = {
    Layer.DATABASE: "DBS",
    Layer.GUEST: "GST",
    Layer.VM: "VMC",
    Layer.HYPERVISOR_CPU: "CPU",
    Layer.HYPERVISOR_MEMORY: "MEM",
    Layer.STORAGE_PATH: "STO",
    Layer.DATASTORE: "DST",
    Layer.NETWORK: "NET",
    Layer.HOST: "HST",
}
RULE_BODY = '''
from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import Layer, Severity
from leadline.estate.templates import Over, over_threshold

META = RuleMeta(
    code="{code}",
    layer=Layer.{layer},
    severity=Severity.MEDIUM,
    needs=("cpu_ready_pct",),  # WRITE ME: the metric that shows it
    thresholds={{
        "warn": Threshold(10_000.0, "pct", "WRITE ME: title and section, or Judgement: and why"),  # none reaches this
        "duration": Threshold(15.0, "s", "WRITE ME: title and section, or Judgement: and why"),
    }},
    clears=False,  # WRITE ME: only a rule whose silence speaks for its layer clears it
)

_SPEC = Over(metric="cpu_ready_pct", noun="WRITE ME: what a person calls the metric")


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per entity."""
    yield from over_threshold(context, _SPEC)
'''
IMPORTER_BODY = '''
from __future__ import annotations

from leadline.core.model.capture import Capture, CaptureBuilder
from leadline.core.contracts.importer import ImporterMeta, Request
from leadline.core.io.source import Source

META = ImporterMeta(tool="{name}", layers=(), fields={{}}, record="COMMAND")


def sniff(source: Source) -> int:
    """How sure it is, 0 to 100."""
    return 0


def read(source: Source, request: Request) -> Capture:
    """The capture."""
    builder = CaptureBuilder(source.name, "{name}", META.tool)
    return builder.build()
'''
FAULT_BODY = '''
from __future__ import annotations

from leadline.core.model.entities import Entity
from leadline.core.model.vocabulary import Layer
from leadline.generators.fault import FaultMeta, FaultTarget, vm_entity
from leadline.generators.host_model import HostModel

META = FaultMeta(rules=("RULE",), layer=Layer.HOST, target=FaultTarget.VM)


def inject(model: HostModel, target: int, window: slice) -> Entity:
    """WHAT IT DOES."""
    return vm_entity(model, target)
'''
COLLECTOR_BODY = '''
from __future__ import annotations

from collections.abc import Callable

from leadline.core.model.capture import Capture, CaptureBuilder
from leadline.core.contracts.collector import Access, CollectorMeta

META = CollectorMeta(tool="{name}", layers=(), privilege="LEAST PRIVILEGE")


def collect(access: Access, progress: Callable[[int, int], None] | None = None) -> Capture:
    """What is there now."""
    builder = CaptureBuilder(f"{name}:{{access.host}}", "{name}", META.tool)
    return builder.build(host=access.host)
'''
TARGET_BODY = '''
from __future__ import annotations

from pathlib import Path

from leadline.core.contracts.target import FileChange, Item


def plan(items: list[Item], root: Path) -> list[FileChange]:
    """The files that would be written."""
    return []
'''
SCENARIO_BODY = '''
from __future__ import annotations

from typing import Literal

from leadline.core.contracts.scenario import Outcome, Progress, Scenario, ScenarioMeta

META = ScenarioMeta(policy_key="KEY", policies=("POLICY",), columns=(("MEASURE", "HEADING"),))


class System(Scenario):
    """A scenario file of this system."""

    system: Literal["{name}"] = "{name}"


MODEL = System


def simulate(scenario: Scenario, progress: Progress) -> Outcome:
    """One run."""
    return Outcome((), (), (), (), (), "", 0)
'''
PLANNER_BODY = '''
from __future__ import annotations

from leadline.core.contracts.planner import Plan, PlanContext, PlanInput, PlannerMeta

META = PlannerMeta(about="THE QUESTION.", example={{}})


class Inputs(PlanInput):
    """What is known."""


MODEL = Inputs


def plan(inputs: PlanInput, context: PlanContext) -> Plan:
    """The answer."""
    return Plan("THE ANSWER.")
'''
EXPERIMENT_BODY = '''
from __future__ import annotations

from leadline.core.contracts.experiment import ExperimentMeta, Findings, Published, Simulated

META = ExperimentMeta(
    claim="WHAT WAS PUBLISHED, IN OUR WORDS",
    source="WHERE",
    verified="read",
    kind="numeric",
    by=("simulation",),
    tolerance=0.1,
)


def reproduce(simulated: Simulated) -> Findings:
    """What came out beside what was published."""
    return Findings((Published("WHAT IS COMPARED", 1.0, float("nan"), "per_s"),))
'''
RULE_CASES = """# WRITE ME: one minute beyond the limit.
case: fires
interval_s: 5
series:
  - {entity: "host:esx01/vm:db01", metric: cpu_ready_pct, values: [[1, 12], [20000, 12], [1, 12]]}
expect:
  - {entity: "host:esx01/vm:db01", severity: medium, start_s: 60, end_s: 120}
---
# WRITE ME: what it must not be mistaken for.
case: quiet
interval_s: 5
series:
  - {entity: "host:esx01/vm:db01", metric: cpu_ready_pct, values: [[1, 60]]}
expect: []
---
# WRITE ME: exactly at the limit, not beyond it.
case: threshold
interval_s: 5
series:
  - {entity: "host:esx01/vm:db01", metric: cpu_ready_pct, values: [[10000, 60]]}
expect: []
"""


def main(words: list[str]) -> int:
    """Write the files; exit 2 with one line when the words make no sense or the unit exists."""
    if len(words) < 2 or words[0] not in KINDS:
        return refuse(f"usage: make new KIND NAME [LAYER]; KIND is {', '.join(KINDS)}")
    kind, name = words[0], words[1].replace("_", "-")
    if any(name in unit_modules(known) for known in KINDS):
        return refuse(f"{name} exists already")
    if kind == "rule" and (len(words) < 3 or words[2] not in {layer.value for layer in Layer}):
        return refuse(f"a rule needs a layer: {', '.join(layer.value for layer in Layer)}")
    folder = ROOT / "src" / KINDS[kind].replace(".", "/")
    body = {
        "rule": RULE_BODY,
        "importer": IMPORTER_BODY,
        "fault": FAULT_BODY,
        "collector": COLLECTOR_BODY,
        "target": TARGET_BODY,
        "scenario": SCENARIO_BODY,
        "planner": PLANNER_BODY,
        "experiment": EXPERIMENT_BODY,
    }[kind]
    layer = Layer(words[2]) if kind == "rule" else Layer.HOST
    if kind == "rule":
        folder /= layer.value.replace("-", "_")
        write(ROOT / "tests" / "cases" / "rules" / f"{name}.yaml", RULE_CASES)
    headings = "\n\n".join(f"{heading}:\n    WRITE ME." for heading in HEADINGS[kind])
    text = f'"""ONE SENTENCE.\n\n{headings}\n"""\n' + body.format(name=name, code=next_code(layer), layer=layer.name)
    write(folder / f"{name.replace('-', '_')}.py", text)
    if kind == "importer":
        write(ROOT / "tests" / "importers" / f"test_{name.replace('-', '_')}.py", f'"""Tests of {name}."""\n')
    return 0


def next_code(layer: Layer) -> str:
    """The lowest code of the layer that was never used here."""
    prefix = PREFIXES[layer]
    used = [int(m.META.code[3:]) for m in load_units("rule").values() if m.META.code.startswith(prefix)]
    return f"{prefix}{max([100, *used]) + 1}"


def write(path: Path, text: str) -> None:
    """Write a new file and say so."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    print(path.relative_to(ROOT))


def refuse(why: str) -> int:
    """One line on stderr, exit status 2."""
    print(why, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
