"""Iometer's configuration files as workloads, and workloads as configuration files."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.app.measure.workloads import iometer_text, translation_of, workload_of
from leadline.core.model.errors import InputError, LeadlineError, UsageError
from leadline.core.model.workload import parse_workload
from leadline.formats.iometer.configurations import translate_iometer
from leadline.formats.translation import Fate
from tests.conftest import FIXTURES

ICF = (FIXTURES / "iometer" / "nightly.icf").read_text()


def written(folder: Path, text: str = ICF) -> Path:
    path = folder / "nightly.icf"
    path.write_text(text)
    return path


def test_a_specification_is_a_workload(tmp_path: Path) -> None:
    translation = translation_of(str(written(tmp_path)))
    (stream,) = translation.workload.io
    assert stream.block == {8192: 60.0, 65536: 40.0}
    assert (stream.read_pct, stream.random_pct) == (70.0 * 0.6 + 0.0, 60.0)
    assert (stream.oio, stream.jobs, stream.working_set) == (32, 2, 20971520 * 512)
    assert (translation.workload.timing.measure_s, translation.workload.timing.warm_up_s) == (630.0, 30.0)
    assert translation.choices == ("mixed; 8K, 64K", "4 KiB; 100% Read; 0% random")
    fates = {(note.line, note.option): note.fate for note in translation.notes}
    assert fates[46, "mixed; 8K, 64K"] is Fate.NEAR  # sizes differ in their reads
    assert (49, "65536 bytes") not in fates  # aligned to its size
    assert fates[48, "8192 bytes"] is Fate.NEAR


def test_another_specification_is_chosen_by_name(tmp_path: Path) -> None:
    path = written(tmp_path)
    workload = workload_of(f"{path}#4 KiB; 100% Read; 0% random")
    (stream,) = workload.io
    assert (stream.block, stream.read_pct, stream.random_pct) == ({4096: 100.0}, 100.0, 0.0)
    assert stream.think_time_s == pytest.approx(0.005 / 4)
    assert workload.name.endswith("4-kib-100-read-0-random")
    with pytest.raises(InputError, match="no access specification of that name"):
        workload_of(f"{path}#none")


@pytest.mark.parametrize(
    ("before", "after", "where"),
    [
        ("8192,60,", "8192,50,", r":46:1: .*shares of 90 %"),
        ("8192,60,", "8k,60,", r":48:1: .*8 whole numbers"),
        ("8192,60,", "0,60,", r":48:1: .*size of 0"),
        ("8192,60,70,", "8192,60,170,", r":48:1: .*shares of 0 to 100"),
    ],
)
def test_damage_has_its_line(before: str, after: str, where: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=where):
        workload_of(str(written(tmp_path, ICF.replace(before, after))))


def test_a_file_without_specifications(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no access specification"):
        workload_of(str(written(tmp_path, ICF.split("'ACCESS")[0])))


def test_there_and_back(tmp_path: Path) -> None:
    for name in ("hci-4k-70-30", "hci-8k-50-50", "hci-256k-write"):
        workload = workload_of(name)
        again = workload_of(str(written(tmp_path, iometer_text(workload, "1: DATA"))))
        for before, after in zip(workload.io, again.io, strict=True):
            assert after.working_set == workload.working_set_bytes(before)
            assert after.model_copy(update={"working_set": None}) == before.model_copy(update={"working_set": None})
        assert again.timing.measure_s == workload.timing.measure_s


def test_shares_are_whole_percents(tmp_path: Path) -> None:
    text = "name: t\nio: [{block: {4k: 33.4, 8k: 33.3, 64k: 33.3}}]\n"
    again = workload_of(str(written(tmp_path, iometer_text(parse_workload(text, "t.yaml")))))
    assert again.io[0].block == {4096: 34.0, 8192: 33.0, 65536: 33.0}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("io: [{rate_iops: 100}]", "rate_iops, which Iometer cannot do"),
        ("io: [{block: {4k: 99.6, 8k: 0.4}}]", "less than 1 %"),
        ("database: {}", "Iometer does I/O only"),
    ],
)
def test_what_iometer_cannot_do(text: str, reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        iometer_text(parse_workload(f"name: t\n{text}\n", "t.yaml"))


@given(cut=st.integers(0, len(ICF)), line=st.integers(0, 90), text=st.text(max_size=30))
def test_any_text_is_a_workload_or_one_error(
    cut: int, line: int, text: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    lines = ICF[:cut].splitlines()
    lines.insert(line, f"\t{text}")
    path = tmp_path_factory.mktemp("icf") / "x.icf"
    path.write_text("\n".join(lines), encoding="utf-8")
    try:
        assert translate_iometer(path).workload.io
    except LeadlineError as error:
        assert str(path) in str(error)
