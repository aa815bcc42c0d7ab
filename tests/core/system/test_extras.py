"""Modules of extras: the table agrees with pyproject.toml, and an error names the command that installs one."""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

import pytest

from leadline.core.model.errors import ToolError
from leadline.core.system.extras import EXTRAS, install_command, lacking, require
from tests.conftest import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def names(requirements: list[str]) -> set[str]:
    return {re.split(r"[\[><=;, ]", requirement)[0].lower() for requirement in requirements}


def test_every_module_is_of_the_extra_that_the_package_declares() -> None:
    declared = PROJECT["optional-dependencies"]
    for module, (extra, _) in EXTRAS.items():
        assert module.lower() in names(declared[extra])
    brought = set().union(*(names(packages) for packages in declared.values())) - {"leadline"}
    assert brought == {module.lower() for module in EXTRAS}
    assert not brought & names(PROJECT["dependencies"])


def test_all_brings_every_extra_but_dask() -> None:
    declared = PROJECT["optional-dependencies"]
    (words,) = declared["all"]
    assert set(words.removeprefix("leadline[").removesuffix("]").split(",")) == set(declared) - {"all", "dask"}


def test_the_error_has_four_parts_and_the_command() -> None:
    error = lacking(ModuleNotFoundError("No module named 'pyVmomi'", name="pyVmomi.SoapAdapter"))
    assert str(error) == (
        "vCenter: the Python package pyVmomi is not installed; expected Leadline with its extra 'vcenter'. "
        "Run: pip install 'leadline[vcenter]'"
    )
    assert lacking(ModuleNotFoundError(name="sesame")) is None


def test_a_missing_module_is_required(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(ToolError, match=r"pip install 'leadline\[frames\]'"):
        require("polars")
    with pytest.raises(ModuleNotFoundError):
        require("leadline_sesame")


def test_an_environment_of_uv_tool_is_changed_by_uv(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    receipt = tmp_path / "uv-receipt.toml"
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    for text in ("", "damaged", '[tool]\nrequirements = [{ name = "other" }]', "[tool]\nrequirements = 3"):
        receipt.write_text(text)
        assert install_command("ssh") == "uv tool install 'leadline[ssh]'"


def test_uv_tool_gets_the_file_and_extras_it_had(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    requirement = '{ name = "leadline", extras = ["vcenter"], path = "/srv/leadline-0.1.0-abi3.whl" }'
    (tmp_path / "uv-receipt.toml").write_text(f"[tool]\nrequirements = [{requirement}]\n")
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    wanted = "uv tool install 'leadline[ssh,vcenter] @ file:///srv/leadline-0.1.0-abi3.whl'"
    assert install_command("ssh") == wanted
