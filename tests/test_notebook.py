"""The example notebook executes, and the one that ships is of the same cells."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from scripts import notebook


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_the_notebook_executes_without_an_error(tmp_path: Path) -> None:
    done = notebook.write(tmp_path / "diagnose.ipynb")
    outputs = [output for cell in done.cells for output in cell.get("outputs", [])]
    assert outputs
    assert not [output for output in outputs if output["output_type"] == "error"]


def test_the_shipped_notebook_has_the_same_cells_and_their_outputs() -> None:
    shipped = json.loads(notebook.TARGET.read_text())["cells"]
    assert [(cell["cell_type"], "".join(cell["source"])) for cell in shipped] == notebook.CELLS
    assert [len(cell["outputs"]) for cell in shipped if cell["cell_type"] == "code"] == [1] * 5, (
        "shown once, not printed"
    )
    assert "\\u001b" not in notebook.TARGET.read_text(), "no terminal colours in a notebook"
