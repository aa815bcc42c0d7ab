"""What may leave a PostgreSQL server, without one: also settings of versions that are not installed here."""

from __future__ import annotations

import ast
from importlib import resources
from pathlib import Path

from leadline.estate.knowledge.database_settings import POSTGRESQL_HARMLESS, POSTGRESQL_NAMING
from leadline.importers.pg_settings import _SECRET

_READERS = ("parameter", "by_parameter", "parameter_fact", "postgresql_bytes")


def test_every_parameter_that_is_read_by_name_is_on_the_list() -> None:
    base = Path(str(resources.files("leadline")))
    read: set[str] = set()
    for path in (*base.glob("rules/database/db_pg_*.py"), base / "estate" / "knowledge" / "guest_settings.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _READERS:
                read |= {a.value for a in node.args if isinstance(a, ast.Constant) and isinstance(a.value, str)}
    assert {"huge_pages_status", "shared_memory_size_in_huge_pages", "random_page_cost"} <= read
    assert read - {"postgresql"} - POSTGRESQL_HARMLESS == set()


def test_no_free_text_is_on_the_list() -> None:
    telling = ("_file", "_command", "_directory", "_path", "_name", "_prefix", "_libraries", "addresses", "conninfo")
    assert [name for name in POSTGRESQL_HARMLESS if name.endswith(telling) or "." in name or _SECRET.search(name)] == []
    assert frozenset({"cluster_name", "data_directory", "server_version"}) == POSTGRESQL_NAMING
