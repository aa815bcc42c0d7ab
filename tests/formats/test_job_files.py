"""fio job files and vdbench parameter files as workloads: what is kept, what is noted, what is refused."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from leadline.app.measure.workloads import fio_job_text, translation_text
from leadline.core.model.errors import InputError, LeadlineError, UsageError
from leadline.core.model.workload import parse_workload
from leadline.formats.fio.numbers import NotANumberError, percent_of, plain_number, seconds
from leadline.formats.job_files import translate
from leadline.formats.translation import Fate, Translation
from tests.conftest import SAMPLES

EXAMPLES = int(os.environ.get("LEADLINE_FUZZ_EXAMPLES", "60"))
FIO_SAMPLES = sorted((SAMPLES / "fio_jobs").glob("*.fio"))
VDBENCH_SAMPLES = sorted([*(SAMPLES / "vdbench").glob("*parmfile*"), *(SAMPLES / "vdbench").glob("*parmscan*")])
NEEDS_FIO = pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed")

FIO = """\
; a database and its log
[global]
ioengine=libaio   # asynchronous
direct=1
size=1g
runtime=2m
time_based
[data]
rw=randrw
rwmixread=70
bssplit=8k/60:64k/
iodepth=16
numjobs=2
random_distribution=zipf:1.2
[log]
rw=write
bs=8k
fdatasync=1
rate_iops=200
size=256m
ramp_time=10
"""
VDBENCH = """\
* two disks, one of them busier
compratio=2
sd=default,openflags=o_direct,threads=16
sd=sd1,lun=/dev/sdb,size=10g
sd=sd2,lun=/dev/sdc,size=10g
wd=default,sd=sd*
wd=wd1,xfersize=(8k,50,16k,30,2k,20),rdpct=66,seekpct=random,skew=75
wd=wd2,xfersize=64k,rdpct=0,
seekpct=seq
rd=default,el=5m,warmup=60
rd=run1,wd=(wd1,wd2),iorate=(1000,2000)
rd=run2,wd=wd1,iorate=max,forthreads=(1-8,d)
"""


def made_of(text: str, folder: Path, name: str = "job", pick: str = "") -> Translation:
    path = folder / name
    path.write_text(text)
    found = translate(path, pick)
    assert found is not None
    return found


def fates(found: Translation) -> dict[tuple[int, str], Fate]:
    return {(note.line, note.option): note.fate for note in found.notes}


def test_fio_jobs_become_streams(tmp_path: Path) -> None:
    found = made_of(FIO, tmp_path)
    data, log = found.workload.io
    assert (data.name, data.read_pct, data.random_pct, data.oio, data.jobs) == ("data", 70.0, 100.0, 16, 2)
    assert data.block == {8192: 60.0, 65536: 40.0}
    assert data.working_set == 2 * 2**30  # two jobs with a file of 1 GiB each
    assert (log.read_pct, log.sync_every, log.working_set, log.arrivals) == (0.0, 1, 256 * 2**20, "even")
    assert log.rate_iops is not None
    assert (log.rate_iops.read, log.rate_iops.write) == (0.0, 200.0)
    assert (found.workload.timing.measure_s, found.workload.timing.rounds) == (120.0, 1)
    assert found.workload.timing.warm_up_s == 10.0
    assert not found.workload.io_settings.buffered


def test_every_option_of_fio_has_a_note_with_its_line(tmp_path: Path) -> None:
    found = made_of(FIO, tmp_path)
    lines = FIO.splitlines()
    expected = {
        (number, line.partition("=")[0])
        for number, line in enumerate(lines, start=1)
        if line[0] not in ";[" and line.strip()
    }
    got = fates(found)
    assert expected <= set(got)
    assert got[(4, "direct")] is Fate.KEPT
    assert got[(14, "random_distribution")] is Fate.LOST
    assert got[(5, "size")] is Fate.NEAR
    assert any("random_distribution: left out" in note for note in found.workload.notes)
    assert not any("rwmixread" in note for note in found.workload.notes)


def test_phases_of_fio_are_chosen_by_a_job(tmp_path: Path) -> None:
    text = "[global]\nsize=8m\n[fill]\nrw=write\n[read]\nstonewall\nrw=read\n[too]\nrw=randread\n"
    first = made_of(text, tmp_path)
    assert first.choices == ("fill", "read")
    assert [stream.name for stream in first.workload.io] == ["fill"]
    second = made_of(text, tmp_path, pick="too")
    assert [stream.name for stream in second.workload.io] == ["read", "too"]
    assert second.workload.name == "job-too"


def test_vdbench_runs_become_workloads(tmp_path: Path) -> None:
    found = made_of(VDBENCH, tmp_path)
    first, second = found.workload.io
    assert found.choices == ("run1", "run2")
    assert (first.block, first.read_pct, first.random_pct) == ({2048: 20.0, 8192: 50.0, 16384: 30.0}, 66.0, 100.0)
    assert (second.block, second.read_pct, second.random_pct) == ({65536: 100.0}, 0.0, 0.0)
    assert (first.oio, second.oio) == (24, 8)  # 16 of each disk, by the share of requests
    assert first.rate_iops is not None
    assert (first.rate_iops.read, first.rate_iops.write) == pytest.approx((495.0, 255.0))
    assert first.arrivals == "poisson"
    assert first.working_set == 20 * 2**30
    assert (found.workload.timing.measure_s, found.workload.timing.warm_up_s) == (300.0, 60.0)
    assert (found.workload.io_settings.buffered, found.workload.io_settings.compress_pct) == (False, 50.0)
    got = fates(found)
    assert (got[(11, "iorate")], got[(4, "lun")], got[(7, "skew")]) == (Fate.NEAR, Fate.LOST, Fate.KEPT)
    assert got[(12, "rd=run2")] is Fate.LOST
    other = made_of(VDBENCH, tmp_path, pick="run2").workload
    assert [(s.name, s.oio, s.rate_iops) for s in other.io] == [("wd1", 2, None)]


def test_vdbench_file_workloads(tmp_path: Path) -> None:
    text = (
        "fsd=fsd1,anchor=/d,depth=2,width=2,files=2,size=128k\n"
        "fwd=fwd1,fsd=fsd1,rdpct=70,xfersize=4k,fileio=random,fileselect=random,threads=2\n"
        "rd=rd0,fwd=fwd1,fwdrate=max,format=only\nrd=rd1,fwd=fwd*,fwdrate=100,format=yes,elapsed=10\n"
    )
    found = made_of(text, tmp_path).workload
    stream = found.io[0]
    assert (stream.read_pct, stream.random_pct, stream.oio, stream.working_set) == (70.0, 100.0, 2, 2**20)
    assert found.io_settings.buffered


@pytest.mark.parametrize(
    ("text", "where", "part"),
    [
        ("[a]\nrw=sideways\n", ":2:4", "randread"),
        ("[a]\nbs=8q\n", ":2:4", "sizes as 8k"),
        ("[a]\n  iodepth = many\n", ":2:12", "whole number"),
        ("[a]\nruntime=5 moons\n", ":2:9", "a whole time"),
        ("[a]\nrwmixread=130\nrw=rw\n", ":2:11", "0 to 100"),
        ("[global]\nbs=4k\n", "job", "no job"),
        ("[a]\n???\n", ":2:1", "OPTION=VALUE"),
        ("[a]\nioengine=cpuio\n", ":1:1", "reads and writes of a disk"),
        ("[a]\nread_iolog=x\n", ":1:1", "leadline trace replay"),
        ("[a]\ninclude none.inc\n", ":2:1", "no such file"),
        ("sd=s,lun=/x\nwd=w,sd=t\nrd=r,wd=w\n", ":2:6", "nothing of that name"),
        ("sd=s,lun=/x\nwd=w,sd=s,rdpct=x\nrd=r,wd=w\n", ":2:11", "a number"),
        ("sd=s,lun=/x\nwd=w,xfersize=(4k,50\nrd=r,wd=w\n", ":2:", "not closed"),
        ("sd=s,lun=/x\nwd=w,xfersize=(4k,50,8k,20)\nrd=r,wd=w\n", ":2:6", "100 in all"),
        ("sd=s,lun=/x\nwd=w,sd=s\n", "job", "rd="),
        ("sd=s,lun=$lun\nwd=w\nrd=r\n", ":1:10", "the variable"),
        ("sd=s,lun=/x\nwd=w,skew=150\nrd=r\n", ":2:6", "shares of 0 to 100"),
        ("sd=s,lun=/x\nwd=w\nrd=r,iorate=-5\n", ":3:6", "above 0"),
        ("fsd=f,anchor=/d\nfwd=w,operation=mkdir\nrd=r,fwd=w\n", ":2:1", "reads and writes"),
        ("sd=s,lun=/x\nwd=w\nrd=r,replay=trace.bin\n", ":3:1", "leadline trace replay"),
    ],
)
def test_errors_have_line_and_column_and_one_line(text: str, where: str, part: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        made_of(text, tmp_path)
    assert where in str(caught.value)
    assert part in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_choice_that_is_not_there_names_those_that_are(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="one of data, log"):
        made_of(FIO, tmp_path, pick="none")
    with pytest.raises(InputError, match="one of run1, run2"):
        made_of(VDBENCH, tmp_path, pick="none")


@pytest.mark.parametrize("text", ["leadline_workload: 1\nname: a\nio: [{}]\n", "", "hello\n", "name: x=1\n", "\0\1"])
def test_what_is_no_job_file_is_left_to_others(text: str, tmp_path: Path) -> None:
    (tmp_path / "f").write_text(text)
    assert translate(tmp_path / "f") is None


@pytest.mark.skipif(not FIO_SAMPLES, reason="the sample recordings are not beside this checkout")
@pytest.mark.parametrize("path", [*FIO_SAMPLES, *VDBENCH_SAMPLES], ids=lambda path: path.name)
def test_real_files_translate_and_their_workload_reads_back(path: Path) -> None:
    found = translate(path)
    assert found is not None
    again = parse_workload(translation_text(found), "again.yaml")
    assert again == found.workload.model_copy(update={"notes": ()})
    assert found.notes
    for choice in found.choices:
        other = translate(path, choice)
        assert other is not None
        assert other.workload.io


@NEEDS_FIO
@pytest.mark.real
@pytest.mark.skipif(not FIO_SAMPLES, reason="the sample recordings are not beside this checkout")
def test_fio_itself_reads_what_real_files_become(tmp_path: Path) -> None:
    refused = 0
    for path in [*FIO_SAMPLES, *VDBENCH_SAMPLES]:
        found = translate(path)
        assert found is not None
        job = tmp_path / "there.fio"
        try:
            job.write_text(fio_job_text(found.workload, "/srv/there"))
        except UsageError as error:
            assert "which fio rounds to" in str(error)
            refused += 1
            continue
        done = subprocess.run(
            ["fio", "--parse-only", str(job)], capture_output=True, text=True, check=False, timeout=60
        )
        assert done.returncode == 0, (path.name, done.stderr, job.read_text())
    assert refused <= 1  # a rate too low for fio to keep at random arrivals


NUMBERS = ["512", "4k", "4K", "4KB", "4ki", "4KiB", "1m", "0x1000", "8b"]


@NEEDS_FIO
@pytest.mark.real
def test_numbers_are_read_as_fio_reads_them(tmp_path: Path) -> None:
    """One request each of a null device: its size in fio's report is what fio made of the text."""
    sections = [f"[j{i}]\nbs={text}\n" for i, text in enumerate(NUMBERS)]
    job = tmp_path / "numbers.fio"
    job.write_text("[global]\nioengine=null\nsize=8m\nnumber_ios=1\nthread\n" + "".join(sections))
    done = subprocess.run(
        ["fio", "--output-format=json", str(job)], capture_output=True, text=True, check=True, timeout=60
    )
    found = {row["jobname"]: row["read"]["io_bytes"] for row in json.loads(done.stdout)["jobs"]}
    assert [found[f"j{i}"] for i in range(len(NUMBERS))] == [plain_number(text) for text in NUMBERS]


def test_arithmetic_is_in_parentheses() -> None:
    """Source: fio HOWTO, Parameter types; a fio built without it, as Debian's, refuses it."""
    assert [plain_number(text) for text in ("(2*4k)", "(4k+512)", "((1+2*3)*512)", "(2^10)")] == [
        8192,
        4608,
        3584,
        1024,
    ]


def test_numbers_that_are_none() -> None:
    for text in ("", "1.5k", "k", "4q", "(1/0)", "(" * 50 + "1" + ")" * 50, "9" * 40, "(2^9999)"):
        with pytest.raises(NotANumberError):
            plain_number(text)
    assert (seconds("2m"), seconds("500", 1e-6), percent_of("20%"), percent_of("20")) == (120.0, 5e-4, 20.0, None)


WORDS = (
    *(
        "rw=",
        "randrw",
        "bs=",
        "bssplit=",
        "4k/50:",
        "iodepth=",
        "size=",
        "(",
        ")",
        ",",
        "-",
        "d",
        "1",
        "64k",
        "%",
        "100",
    ),
    *("[global]\n", "[a]\n", "sd=sd1,lun=/x\n", "wd=wd1,sd=sd*,", "rd=r,wd=wd*,", "xfersize=", "rdpct=", "skew=", "="),
    *(
        "iorate=",
        "threads=",
        "range=",
        "size=",
        "count=",
        "fwd=f,",
        "fsd=f,",
        "files=",
        "depth=",
        "\n",
        "\0",
        "$x",
        "é",
    ),
    *("elapsed=", "seekpct=", "openflags=", "compratio=", "rate=", "rate_iops=", "thinktime=", "runtime=", "include "),
)


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    base=st.sampled_from([FIO, VDBENCH, ""]),
    edits=st.lists(st.tuples(st.integers(0, 600), st.integers(0, 6), st.sampled_from(WORDS)), max_size=12),
)
def test_any_text_is_a_workload_or_one_error(base: str, edits: list[tuple[int, int, str]], tmp_path: Path) -> None:
    text = base
    for at, cut, word in edits:
        text = text[:at] + word + text[at + cut :]
    path = tmp_path / "fuzz"
    path.write_bytes(text.encode())
    try:
        found = translate(path)
    except LeadlineError as error:
        assert "\n" not in str(error)
        return
    if found is not None:
        assert parse_workload(translation_text(found), "again.yaml").io == found.workload.io
        fio_job_text(found.workload)
