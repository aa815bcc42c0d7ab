"""What people read, kept as it is until somebody looks at the difference: ``pytest --snapshot-update``."""

from __future__ import annotations

import io

import pytest
from rich.console import Console
from syrupy.assertion import SnapshotAssertion

from leadline.app.diagnose.diagnosing import diagnose, metrics_read, rule_modules
from leadline.app.read.importing import import_paths
from leadline.core.contracts.importer import Request
from leadline.faces.terminal import show_diagnosis
from tests.conftest import ROOT

EXAMPLES = ROOT / "examples"
CASES = {
    "generated": EXAMPLES / "generated" / "esxtop.csv.gz",
    "throttled-wal-disk": EXAMPLES / "incidents" / "throttled-wal-disk" / "iostat.txt",
    "cpu-starved-guest": EXAMPLES / "incidents" / "cpu-starved-guest" / "vmstat.txt",
}
# The skeleton of `make new rule` is not what people read yet.
RULES = [name for name, module in rule_modules().items() if "WRITE ME" not in (module.__doc__ or "")]


@pytest.mark.parametrize("everything", [False, True], ids=["short", "all"])
@pytest.mark.parametrize("name", CASES)
def test_the_terminal_output(name: str, everything: bool, snapshot: SnapshotAssertion) -> None:
    capture = import_paths([CASES[name]], Request(metrics=metrics_read())).capture
    stream = io.StringIO()
    console = Console(file=stream, width=80, highlight=False, emoji=False)
    show_diagnosis(console, diagnose(capture, rules=RULES), capture, everything=everything)
    text = stream.getvalue()
    assert max(map(len, text.splitlines())) <= 80
    assert text == snapshot
