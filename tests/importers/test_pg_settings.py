"""PostgreSQL's settings; the recordings are those of the shipped incidents, odd inputs are composed here."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from leadline.app.read.importing import import_paths, recognise
from leadline.core.contracts.discovery import load_units
from leadline.core.contracts.importer import Request
from leadline.core.io.source import Source
from leadline.core.model.capture import Capture
from leadline.core.model.entities import Entity
from leadline.core.model.errors import InputError
from leadline.core.model.vocabulary import EntityKind
from leadline.importers import pg_settings
from tests.conftest import ROOT

HEALTHY = ROOT / "examples" / "incidents" / "healthy"
HEADER = "name,setting,unit\n"
CONF = """# a comment
listen_addresses = '*'            # another
shared_buffers = 8GB
max_connections 200
log_line_prefix = '%m [%p] it''s \\'here\\' # not a comment '
checkpoint_completion_target=0.9
Work_Mem = 16MB
work_mem = 32MB
"""


def read(path: Path) -> Capture:
    return pg_settings.read(Source(str(path), path), Request())


def written(tmp_path: Path, text: str | bytes, name: str = "pg_settings.csv") -> Path:
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def of_rows(tmp_path: Path, *rows: str) -> dict[str, Any]:
    return parameters(read(written(tmp_path, HEADER + "shared_buffers,16384,8kB\n" + "".join(f"{r}\n" for r in rows))))


def database(capture: Capture) -> Entity:
    (found,) = capture.inventory.of_kind(EntityKind.DATABASE)
    return found


def parameters(capture: Capture) -> dict[str, Any]:
    held: dict[str, Any] = capture.inventory.get(database(capture), "parameters")
    return held


def sniffed(path: Path) -> int:
    return pg_settings.sniff(Source(str(path), path))


def test_a_recorded_view() -> None:
    capture = read(HEALTHY / "pg_settings.csv")
    main = database(capture)
    assert str(main) == "guest:guest/database:main"
    assert capture.inventory.get(main, "engine") == "postgresql"
    assert capture.inventory.get(main, "version") == "15.18 (Debian 15.18-0+deb12u1)"
    assert capture.inventory.get(main, "shared_memory_mib") == 279
    known = parameters(capture)
    assert len(known) == 354
    assert (known["shared_buffers"], known["max_wal_size"], known["fsync"]) == (32768, 2048, "on")
    assert known["DateStyle"] == "ISO, MDY"
    assert known["data_directory_mode"] == "0700"  # octal, no number
    assert capture.sources[0].warnings == ()


def test_it_is_the_database_of_the_incident() -> None:
    capture = import_paths([HEALTHY / "pg_settings.csv", HEALTHY / "inventory.yaml"]).capture
    main = Entity.parse("guest:db01/database:main")
    assert capture.inventory.of_kind(EntityKind.DATABASE) == [main]
    assert capture.inventory.get(main, "version").startswith("15")
    assert capture.inventory.get(main, "parameters")["wal_level"] == "replica"


def test_other_multiples_become_text(tmp_path: Path) -> None:
    known = of_rows(
        tmp_path, "max_wal_size,64,16MB", "wal_buffers,512,32kB", "temp_file_limit,-1,16MB", "work_mem,4,kB"
    )
    assert known["max_wal_size"] == "1024MB"
    assert known["wal_buffers"] == "16384kB"
    assert known["temp_file_limit"] == -1
    assert known["work_mem"] == 4


def test_what_looks_like_a_number_and_is_none(tmp_path: Path) -> None:
    known = of_rows(tmp_path, "server_version,16.10,", "unix_socket_permissions,0777,", "geqo_seed,0,", "a,1e400,")
    assert known["server_version"] == "16.10"
    assert known["unix_socket_permissions"] == "0777"
    assert known["geqo_seed"] == 0
    assert known["a"] == "1e400"


@pytest.mark.parametrize(
    ("row", "kept"),
    [
        ("primary_conninfo,host=a password=hunter2,", "(set)"),
        ("archive_command,aws s3 cp %p s3://hunter2,", "(set)"),
        ("archive_command,(disabled),", "(disabled)"),
        ("ssl_passphrase_command,echo hunter2,", "(set)"),
        ("ssl_passphrase_command_supports_reload,off,", "off"),
        ("app.jwt,hunter2,", "(set)"),
        ("pg_stat_statements.track,all,", "all"),
        ("recovery_target_name,postgresql://u:hunter2@h/d,", "(set)"),
        ("primary_conninfo,,", ""),
    ],
)
def test_secrets_are_never_kept(tmp_path: Path, row: str, kept: str) -> None:
    known = of_rows(tmp_path, row)
    assert known[row.split(",", 1)[0]] == kept
    assert "hunter2" not in str(known)


def test_secrets_of_a_configuration_file(tmp_path: Path) -> None:
    text = CONF + "primary_conninfo = 'host=a user=b password=''hunter2'''\n"
    capture = read(written(tmp_path, text, "postgresql.conf"))
    assert parameters(capture)["primary_conninfo"] == "(set)"
    assert "hunter2" not in str(capture)


@pytest.mark.parametrize(
    ("cluster", "folder", "name"),
    [
        ("15/main", "/srv/x", "main"),
        ("", "/var/lib/postgresql/15/sales", "sales"),
        ("", "/var/lib/pgsql/15/data", "postgresql"),
        ("", "", "postgresql"),
    ],
)
def test_the_name(tmp_path: Path, cluster: str, folder: str, name: str) -> None:
    rows = f"shared_buffers,16384,8kB\ncluster_name,{cluster},\ndata_directory,{folder},\n"
    assert database(read(written(tmp_path, HEADER + rows))).name == name


@pytest.mark.parametrize("separator", [";", "\t", "|"])
def test_other_separators_and_psqls_footer(tmp_path: Path, separator: str) -> None:
    lines = ["name,setting,unit,context", "shared_buffers,16384,8kB,postmaster", "work_mem,4096,kB,user"]
    text = "\r\n".join(line.replace(",", separator) for line in lines) + "\r\n(2 rows)\r\n"
    path = written(tmp_path, text)
    assert sniffed(path) == 95
    assert parameters(read(path)) == {"shared_buffers": 16384, "work_mem": 4096}


def test_a_row_cut_at_the_end_is_dropped_and_said(tmp_path: Path) -> None:
    capture = read(written(tmp_path, HEADER + "shared_buffers,16384,8kB\nwork_mem,40"))
    assert parameters(capture) == {"shared_buffers": 16384}
    assert [warning.code for warning in capture.sources[0].warnings] == ["cut"]


def test_a_quoted_value_cut_at_the_end_is_dropped_and_said(tmp_path: Path) -> None:
    capture = read(written(tmp_path, HEADER + 'shared_buffers,16384,8kB\nDateStyle,"ISO, M'))
    assert parameters(capture) == {"shared_buffers": 16384}
    assert [warning.code for warning in capture.sources[0].warnings] == ["cut"]


@pytest.mark.parametrize(
    ("text", "where"),
    [
        (HEADER + "shared_buffers,16384\nwork_mem,4096,kB\n", "csv:2"),
        (HEADER + "shared_buffers,16384,8kB\nx,y\n", "csv:3"),
        (HEADER + 'shared_buffers,16384,8kB\nx,"a"b,\n', "csv:3"),
    ],
)
def test_a_broken_row_says_where(tmp_path: Path, text: str, where: str) -> None:
    with pytest.raises(InputError) as caught:
        read(written(tmp_path, text))
    assert caught.value.where.endswith(where)


def test_somebody_elses_settings(tmp_path: Path) -> None:
    path = written(tmp_path, HEADER + "max_heap,1,GB\n")
    assert sniffed(path) == 0
    with pytest.raises(InputError, match="no setting of PostgreSQL"):
        read(path)


def test_a_configuration_file(tmp_path: Path) -> None:
    path = written(tmp_path, CONF, "postgresql.conf")
    assert sniffed(path) == 90
    capture = read(path)
    assert parameters(capture) == {
        "listen_addresses": "*",
        "shared_buffers": "8GB",
        "max_connections": 200,
        "log_line_prefix": "%m [%p] it's 'here' # not a comment ",
        "checkpoint_completion_target": 0.9,
        "work_mem": "32MB",  # of two the last counts, whatever the case
    }
    fact = capture.inventory.fact(database(capture), "parameters")
    assert fact is not None
    assert fact.guessed  # the server may run with others


def test_the_view_wins_over_the_file(tmp_path: Path) -> None:
    file = written(tmp_path, CONF, "postgresql.conf")
    view = written(tmp_path, HEADER + "shared_buffers,16384,8kB\n", "z.csv")
    for paths in ([file, view], [view, file]):
        assert parameters(import_paths(paths).capture) == {"shared_buffers": 16384}


def test_a_configuration_file_by_shape_and_others_files(tmp_path: Path) -> None:
    assert sniffed(written(tmp_path, CONF, "tuned.conf")) == 70
    assert sniffed(written(tmp_path, "vm.swappiness = 1\nkernel.sem = 1\n", "sysctl.conf")) == 0
    assert sniffed(written(tmp_path, CONF, "notes.md")) == 0


def test_includes_are_said(tmp_path: Path) -> None:
    capture = read(written(tmp_path, CONF + "include_dir = 'conf.d'\n", "postgresql.conf"))
    assert [warning.code for warning in capture.sources[0].warnings] == ["included"]


def test_a_bad_line_of_a_configuration_file_says_where(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        read(written(tmp_path, CONF + "?\nfsync = on\n", "postgresql.conf"))
    assert caught.value.where.endswith("postgresql.conf:9")
    cut = read(written(tmp_path, CONF + "log_filename = 'postgr", "postgresql.conf"))
    assert [warning.code for warning in cut.sources[0].warnings] == ["cut"]


@pytest.mark.parametrize(
    ("name", "values"),
    [
        (
            "cmu-db__ottertune__settings.csv",
            {"shared_buffers": 16384, "max_wal_size": "1024MB", "server_version": "9.6.3"},
        ),
        ("felipebrgs1__pgbench_13x18beta__postgresql.conf", {"shared_buffers": "512MB", "random_page_cost": 1.1}),
    ],
)
def test_samples(samples: Path, name: str, values: dict[str, Any]) -> None:
    path = samples / "pgconf" / name
    known = recognise(Source(str(path), path), load_units("importer"))
    assert known is not None
    assert known[0] == "pg-settings"
    held = parameters(read(path))
    assert {key: held[key] for key in values} == values


def test_the_incidents_are_recognised_among_all() -> None:
    importers = load_units("importer")
    for path in sorted((ROOT / "examples" / "incidents").glob("*/pg_settings.csv")):
        known = recognise(Source(str(path), path), importers)
        assert known is not None
        assert known[0] == "pg-settings"
