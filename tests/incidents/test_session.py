"""What runs throughout is cut to each recording's time, line by line, and nothing of it is changed."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

from incidents import session

START = datetime(2026, 11, 23, 22, 0, tzinfo=UTC)


def recording(folder: Path) -> session.Recording:
    variant = session.Variant("iops-limit-wal", 1)
    return session.Recording(variant, folder, {}, START, START + timedelta(seconds=10))


def test_pgbenchs_lines(tmp_path: Path) -> None:
    source = tmp_path / "load.txt"
    times = [START.timestamp() + second for second in (-1, 0, 10, 11)]
    lines = ["pgbench (15.18)\n", *(f"progress: {time:.3f} s, 1.0 tps\n" for time in times), "latency average = 1 ms\n"]
    source.write_text("".join(lines))
    session._slice(source, recording(tmp_path), "pgbench.txt", session._stamp_pgbench)
    assert (tmp_path / "pgbench.txt").read_text() == lines[0] + lines[2] + lines[3]


def test_a_line_of_the_log_without_a_time_belongs_to_the_one_before(tmp_path: Path) -> None:
    source = tmp_path / "server.log"
    source.write_text(
        "2026-11-23 21:59:59.000 UTC [1] LOG:  before\n\tmore of it\n"
        "2026-11-23 22:00:01.500 UTC [1] LOG:  inside\n\tmore of it\n"
        "2026-11-23 22:00:11.000 UTC [1] LOG:  after\n\tmore of it\n"
    )
    session._slice(source, recording(tmp_path), "postgresql.log", session._stamp_log)
    assert (tmp_path / "postgresql.log").read_text() == ("2026-11-23 22:00:01.500 UTC [1] LOG:  inside\n\tmore of it\n")
