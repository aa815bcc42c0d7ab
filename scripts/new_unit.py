"""Write the skeleton of a unit with its test or cases: ``make new importer footop``, of any kind in `FILES`.

A rule's layer is asked for as a third word: ``make new rule cpu-foo-high hypervisor-cpu``. The skeletons are units that
work, and pass every test but the one that lists what is still to be written.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from string import Template

from leadline.core.contracts.discovery import KINDS, load_units, unit_modules
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
SKELETONS = Path(__file__).resolve().parent / "skeletons"
# What `make new` writes of each kind, from which file of `SKELETONS`; tests/test_skeletons.py then says what to do.
FILES = {
    "rule": {
        "src/leadline/rules/$folder/$module.py": "rule.py.txt",
        "tests/cases/rules/$name.yaml": "rule_cases.yaml.txt",
    },
    "importer": {
        "src/leadline/importers/$module.py": "importer.py.txt",
        "tests/importers/seeds/$name.txt": "importer_seed.txt",
        "tests/importers/test_$module.py": "importer_test.py.txt",
    },
    "fault": {"src/leadline/generators/faults/$module.py": "fault.py.txt"},
    "collector": {
        "src/leadline/collectors/$module.py": "collector.py.txt",
        "tests/collectors/test_$module.py": "collector_test.py.txt",
    },
    "target": {
        "src/leadline/targets/$module.py": "target.py.txt",
        "tests/targets/test_$module.py": "target_test.py.txt",
    },
    "benchmark": {
        "src/leadline/benchmarks/$module.py": "benchmark.py.txt",
        "tests/benchmarks/test_$module.py": "benchmark_test.py.txt",
    },
    "scenario": {
        "src/leadline/scenarios/$module.py": "scenario.py.txt",
        "examples/scenarios/$name.yaml": "scenario_example.yaml.txt",
        "tests/scenarios/test_$module.py": "scenario_test.py.txt",
    },
    "experiment": {"src/leadline/experiments/$module.py": "experiment.py.txt"},
    "planner": {
        "src/leadline/planners/$module.py": "planner.py.txt",
        "tests/planners/test_$module.py": "planner_test.py.txt",
    },
    "notifier": {
        "src/leadline/notifiers/$module.py": "notifier.py.txt",
        "tests/notifiers/test_$module.py": "notifier_test.py.txt",
    },
    "guide": {"src/leadline/guides/$module.py": "guide.py.txt"},
}


def main(words: list[str]) -> int:
    """Write the files; exit 2 with one line when the words make no sense or the unit exists."""
    if len(words) < 2 or words[0] not in KINDS:
        return refuse(f"usage: make new KIND NAME [LAYER]; KIND is {', '.join(KINDS)}")
    kind, name = words[0], words[1].replace("_", "-")
    if re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", name) is None:
        return refuse(f"{name} is no name: lower-case letters, digits and hyphens, a letter first")
    if any(name in unit_modules(known) for known in KINDS):
        return refuse(f"{name} exists already")
    if kind == "rule" and (len(words) < 3 or words[2] not in {layer.value for layer in Layer}):
        return refuse(f"a rule needs a layer: {', '.join(layer.value for layer in Layer)}")
    layer = Layer(words[2]) if kind == "rule" else Layer.HOST
    parts = {
        "name": name,
        "module": name.replace("-", "_"),
        "layer": layer.name,
        "folder": layer.value.replace("-", "_"),
    }
    if kind == "rule":
        parts["code"] = next_code(layer)
    files = {ROOT / Template(path).substitute(parts): skeleton for path, skeleton in FILES[kind].items()}
    present = [path for path in files if path.exists()]
    if present:
        return refuse(f"{present[0].relative_to(ROOT)} exists already")
    for path, skeleton in files.items():
        text = (SKELETONS / skeleton).read_text(encoding="utf-8")
        write(path, Template(text).substitute(parts))
    print("Next: replace every WRITE ME, then `make lint test`. docs/guides/units.md has a section for each kind.")
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
