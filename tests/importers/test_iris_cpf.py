from __future__ import annotations

from pathlib import Path

import pytest

from leadline.app.diagnose.auditing import audit
from leadline.app.read.importing import import_paths
from leadline.core.contracts.importer import Request
from leadline.core.io.source import Source
from leadline.core.model.errors import InputError
from leadline.core.model.vocabulary import EntityKind
from leadline.importers import iris_cpf

SEED = Path(__file__).parent / "seeds" / "iris.cpf"


def test_parameters_are_kept_under_their_own_names_and_secrets_are_not() -> None:
    capture = import_paths([SEED]).capture
    (instance,) = capture.inventory.of_kind(EntityKind.DATABASE)
    parameters = capture.inventory.get(instance, "parameters")
    assert parameters["gmheap"] == 102400
    assert parameters["globals"] == "0,0,8192,0,0,0"
    assert parameters["CurrentDirectory"] == "/srv/iris/journal/"
    assert (capture.inventory.get(instance, "engine"), capture.inventory.get(instance, "version")) == ("iris", "2024.1")
    kept = str(parameters)
    assert "do-not-keep" not in kept
    assert "10.0.0.7" not in kept


def test_the_rules_read_it() -> None:
    assert "db-iris-gmheap" in {finding.rule for finding in audit(import_paths([SEED]).capture).findings}


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("[ConfigFile]\n[config]\nwhat is this\n", ":3"),
        ("[ConfigFile]\nVersion=1\n[Databases]\n[Journal]\n", "a.cpf"),
        ("[ConfigFile]\n[config]\nlocksiz=1e999\n", ":3"),
        ("[ConfigFile]\n[config]\ngmheap=0\nlocksiz=-1e400\n", ":4"),
    ],
)
def test_a_damaged_file_is_one_error(tmp_path: Path, text: str, where: str) -> None:
    path = tmp_path / "a.cpf"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        iris_cpf.read(Source(str(path), path), Request())
    assert caught.value.where.endswith(where)


def test_words_for_no_number_are_texts(tmp_path: Path) -> None:
    path = tmp_path / "a.cpf"
    path.write_text("[ConfigFile]\n[config]\nlocksiz=inf\ngmheap=nan\n")
    capture = import_paths([path]).capture
    (instance,) = capture.inventory.of_kind(EntityKind.DATABASE)
    assert capture.inventory.get(instance, "parameters") == {"locksiz": "inf", "gmheap": "nan"}
    audit(capture)
