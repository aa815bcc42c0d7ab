"""Users, clients, applications and tables of sessions are not in an anonymised recording."""

from __future__ import annotations

import json
from pathlib import Path

from leadline.app.diagnose.diagnosing import diagnose
from leadline.app.diagnose.who import culprits
from leadline.app.read.importing import import_paths
from leadline.core.contracts.importer import Request
from leadline.core.model.who import WhoKind
from leadline.faces.report.anonymize import anonymized

SECRETS = ("zqmueller", "zqshopapp", "10.9.8.7", "zqorders", "zqstock", "zqvalue")
HEADER = (
    "now,pid,datname,usename,application_name,client_addr,backend_type,state,wait_event_type,wait_event,"
    "blocked_by,query,statement_text\n"
)
SAMPLE = """\
{time},7,shop,zqmueller,zqshopapp,10.9.8.7,client backend,idle in transaction,Client,ClientRead,,UPDATE zqorders,
{time},8,shop,zqmueller,zqshopapp,,client backend,active,Lock,tuple,7,UPDATE zqorders,update zqorders set a='zqvalue'
{time},9,shop,,,,autovacuum worker,active,IO,DataFileRead,,AUTOVACUUM: VACUUM zqstock,
"""


def test_names_of_sessions_are_replaced(tmp_path: Path) -> None:
    rows = "".join(SAMPLE.format(time=f"2026-11-21 00:00:{second:02d}+00") for second in range(10, 30))
    (tmp_path / "pg_active_sessions.csv").write_text(HEADER + rows, encoding="utf-8")
    imported = import_paths([tmp_path], Request())
    plain = culprits(imported.capture, None)
    assert [who.kind for who in plain] == [WhoKind.STATEMENT, WhoKind.SESSION, WhoKind.WORKER]
    shown = json.dumps([who.to_dict() for who in plain])
    assert [secret for secret in SECRETS if secret in shown] == list(SECRETS[:-1])
    _, masked, _ = anonymized(diagnose(imported.capture), imported)
    hidden = json.dumps([who.to_dict() for who in culprits(masked.capture, None)])
    assert [secret for secret in SECRETS if secret in hidden] == []
    assert hidden.count("share") == shown.count("share")
