"""powercfg: the plan in force, from the plan alone, the list and the query, in any language."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from leadline.app.read.importing import recognise
from leadline.core.contracts.discovery import load_units
from leadline.core.contracts.importer import UNNAMED_GUEST, Request
from leadline.core.model.errors import InputError
from leadline.importers import powercfg
from tests.conftest import ROOT
from tests.importers.recordings import codes, source_of

LIST = (ROOT / "tests" / "importers" / "seeds" / "powercfg.txt").read_text()
QUERY = """Power Scheme GUID: 8C5E7FDA-E8BF-4A96-9A85-A6E23A8C635C  (High performance)
  GUID Alias: SCHEME_MIN
  Subgroup GUID: 54533251-82be-4824-96c1-47b60b740d00  (Processor power management)
    GUID Alias: SUB_PROCESSOR
    Power Setting GUID: 893dee8e-2bef-41e0-89c6-b55d0929964c  (Minimum processor state)
      GUID Alias: PROCTHROTTLEMIN
      Minimum Possible Setting: 0x00000000
      Maximum Possible Setting: 0x00000064
    Current AC Power Setting Index: 0x00000064
    Current DC Power Setting Index: 0x00000005
"""


def plan(folder: Path, text: str, command: str = "") -> str:
    source = replace(source_of(folder, text), command=command)
    assert powercfg.sniff(source) == 95
    capture = powercfg.read(source, Request())
    assert codes(capture) == ["no-guest"]
    return str(capture.inventory.get(UNNAMED_GUEST, "power_plan"))


def test_the_marked_plan_of_the_list(tmp_path: Path) -> None:
    assert plan(tmp_path, LIST) == "Balanced"
    assert plan(tmp_path, LIST.replace(" *\n", "\n").replace("performance)", "performance) *")) == "High performance"


def test_the_plan_alone(tmp_path: Path) -> None:
    line = "Power Scheme GUID: 17bccb59-a850-4fd0-b768-b162ef063876  (Ultimate Performance (LM))\n"
    assert plan(tmp_path, line) == "Ultimate Performance (LM)"
    assert plan(tmp_path, f"C:\\>powercfg /getactivescheme\n{line}") == "Ultimate Performance (LM)"
    assert plan(tmp_path, "Power Scheme GUID: e9a42b02-d5df-448d-aa00-03f14749eb61\n") == "Ultimate Performance"


def test_the_query_of_the_active_plan(tmp_path: Path) -> None:
    assert plan(tmp_path, QUERY) == "High performance"
    assert plan(tmp_path, QUERY, "powercfg /q SCHEME_CURRENT SUB_PROCESSOR") == "High performance"


@pytest.mark.parametrize("command", ["powercfg /query SCHEME_MIN", "powercfg -q 8c5e7fda-e8bf-4a96-9a85-a6e23a8c635c"])
def test_the_query_of_another_plan_is_refused(tmp_path: Path, command: str) -> None:
    with pytest.raises(InputError, match="alone; expected the plan that Windows runs with"):
        plan(tmp_path, QUERY, command)


def test_a_list_without_mark_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="3 power plans, none marked as active"):
        plan(tmp_path, LIST.replace(" *\n", "\n"))


def test_the_known_plans_in_another_language(tmp_path: Path) -> None:
    spanish = "GUID de plan de energía: 381b4222-f694-41f0-9685-ff5bb260df2e  (Equilibrado)\n"
    assert plan(tmp_path, spanish) == "Balanced"
    assert plan(tmp_path, spanish.encode("cp1251", errors="replace").decode("cp1251")) == "Balanced"


def test_a_plan_without_name_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="without a name"):
        plan(tmp_path, "Power Scheme GUID: 17bccb59-a850-4fd0-b768-b162ef063876\n")


def test_as_powershell_redirects_it(tmp_path: Path) -> None:
    known = recognise(source_of(tmp_path, LIST.replace("\n", "\r\n").encode("utf-16")), load_units("importer"))
    assert known is not None
    assert known[0] == "powercfg"


def test_other_texts_are_not_taken(tmp_path: Path) -> None:
    text = "set the Power Scheme GUID: 381b4222-f694-41f0-9685-ff5bb260df2e (Balanced) and reboot\n"
    assert powercfg.sniff(source_of(tmp_path, f"To save power, {text}")) == 0
