"""SQL Server's error log: what it tells of disks, space and memory."""

from __future__ import annotations

from pathlib import Path

import pytest

from leadline.app.diagnose.diagnosing import diagnose
from leadline.app.read.importing import import_paths
from leadline.core.contracts.importer import Request
from leadline.core.model.answer import Disk
from leadline.core.model.errors import InputError
from leadline.importers import sqlserver_errorlog
from tests.conftest import ROOT
from tests.importers.recordings import source_of

SEED = (ROOT / "tests" / "importers" / "seeds" / "sqlserver_errorlog.txt").read_text()


def counts(folder: Path, text: str, metric: str) -> dict[str, float]:
    source = source_of(folder, text)
    assert sqlserver_errorlog.sniff(source) >= 60
    capture = sqlserver_errorlog.read(source, Request())
    return {
        entity.name: round(float(row.sum() * group.interval_s), 6)
        for group in capture.of(metric)
        for entity, row in zip(group.entities, group.values, strict=True)
    }


def test_slow_requests_are_counted_by_drive(tmp_path: Path) -> None:
    assert counts(tmp_path, SEED, "guest_disk_requests_over_15_s_per_s") == {"E:": 37.0, "F:": 12.0}


def test_full_logs_and_paged_memory_are_the_server_s(tmp_path: Path) -> None:
    assert counts(tmp_path, SEED, "db_out_of_space_errors_per_s") == {"sqlserver": 1.0}
    assert counts(tmp_path, SEED, "db_memory_paged_out_per_s") == {"sqlserver": 1.0}


def test_files_of_linux_and_rows_of_a_csv(tmp_path: Path) -> None:
    message = (
        "SQL Server has encountered 3 occurrence(s) of I/O requests taking longer than 15 seconds to complete on file"
    )
    text = f'"2024-01-02 03:04:05.120","spid5s","{message} [/var/opt/mssql/data/a.mdf] in database [a] (5)."\n'
    assert counts(tmp_path, text, "guest_disk_requests_over_15_s_per_s") == {"/var/opt/mssql/data": 3.0}


def test_utf_16_is_what_the_server_writes(tmp_path: Path) -> None:
    path = tmp_path / "ERRORLOG"
    path.write_bytes(SEED.replace("\n", "\r\n").encode("utf-16"))
    answer = diagnose(import_paths([path]).capture).answer
    assert answer.disk is Disk.YES_AS_SEEN_BY_GUEST
    assert answer.cause is not None
    assert answer.cause.kind == "disk-stalled"


def test_a_message_without_times_is_refused(tmp_path: Path) -> None:
    line = SEED.splitlines()[1].partition("spid7s")[2].strip() + "\n"
    source = source_of(tmp_path, line)
    assert sqlserver_errorlog.sniff(source) == 60
    with pytest.raises(InputError, match="sp_readerrorlog"):
        sqlserver_errorlog.read(source, Request())
