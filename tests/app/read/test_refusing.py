"""What is said of a file that nobody reads: what it is, what is nearest, and what to record instead."""

from __future__ import annotations

from pathlib import Path

import pytest

from leadline.app.read.importing import import_paths
from leadline.core.model.errors import InputError

CASES = [
    ("perf.blg", b"\x00\x01\x02\x03", "perfmon's binary log", "relog"),
    ("tcp.pcap", b"\xd4\xc3\xb2\xa1\x02\x00\x04\x00" + bytes(30), "capture of packets", "ss -tinm"),
    ("hm_0.csv", b"128166372003061629,hm,0,Read,9056,512,91\n" * 5, "block trace", "leadline trace characterise"),
    ("io_traces.csv", b"419,W,13890551808,16384,1577808000000026\n" * 5, "block trace", "leadline trace characterise"),
    (
        "vmstat.txt",
        b"Time     r  b   swpd   free   buff  cache\n10:00:01 3  1      0  10000   2000  30000\n",
        "vmstat table with a column for the time",
        "vmstat -t",
    ),
    (
        "plan.txt",
        b" Seq Scan on orders  (cost=0.00..18334.00 rows=1000000 width=97)\n   Filter: (note = 'x'::text)\n",
        "plan of a query",
        "leadline collect postgresql",
    ),
    (
        "stat.xml",
        b'<Objs Version="1.1.0.1" xmlns="http://schemas.microsoft.com/powershell/2004/04">',
        "Clixml",
        "Export-Csv",
    ),
]


@pytest.mark.parametrize(("name", "content", "is_what", "advice"), CASES, ids=[name for name, *_ in CASES])
def test_a_file_of_another_kind_is_called_by_its_name(
    tmp_path: Path, name: str, content: bytes, is_what: str, advice: str
) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError) as caught:
        import_paths([tmp_path / name])
    assert is_what in caught.value.found
    assert advice in caught.value.advice


def test_the_nearest_tool_is_named_with_the_line_that_is_like_it(tmp_path: Path) -> None:
    path = tmp_path / "io.txt"
    path.write_text("report of the night\ndisk | r/s | w/s | rkB/s | wkB/s | %util\nsda | 1 | 2 | 3 | 4 | 5\n")
    with pytest.raises(InputError, match=r"nearest to iostat: line 2 names 5 columns of it \(r/s, w/s") as caught:
        import_paths([path])
    assert caught.value.advice.startswith("Record it as: ")


def test_prose_is_near_to_nothing(tmp_path: Path) -> None:
    path = tmp_path / "mail.txt"
    path.write_text("Dear all,\nthe database is slow again since the update of last night, free memory is fine.\n" * 9)
    with pytest.raises(InputError, match="begins with 'Dear all,'"):
        import_paths([path])
