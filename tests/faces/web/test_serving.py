"""The server of the live page: who may ask, what it answers, and that it comes and goes with the watch."""

from __future__ import annotations

import json
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException, HTTPMessage, HTTPResponse, HTTPSConnection
from pathlib import Path
from urllib.error import HTTPError
from urllib.parse import quote, urlsplit

import pytest
from pydantic import ValidationError

from leadline.app.read.importing import import_paths
from leadline.app.watch.opening import opened
from leadline.app.watch.watching import Watch, WatchEvent
from leadline.core.model.errors import ToolError
from leadline.faces.web.serving import ServedPage, serve
from leadline.faces.words.live import incident_words
from tests.faces.web.conftest import HOSTILE, VMS, get, settings_of, watching

TOKEN = "correct-horse-battery-staple"


@dataclass(frozen=True)
class Answer:
    """An answer as it is, redirects and all."""

    status: int
    headers: HTTPMessage
    body: bytes


@contextmanager
def asking(address: str, path: str, method: str = "GET", body: str = "", **headers: str) -> Iterator[HTTPResponse]:
    """The answer to a request while it comes."""
    parts = urlsplit(address)
    assert parts.hostname is not None
    link: HTTPConnection
    if parts.scheme == "https":
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        link = HTTPSConnection(parts.hostname, parts.port, timeout=20, context=context)
    else:
        link = HTTPConnection(parts.hostname, parts.port, timeout=20)
    with closing(link):
        link.request(method, path, body or None, {name.replace("_", "-"): value for name, value in headers.items()})
        with link.getresponse() as answer:
            yield answer


def ask(address: str, path: str = "/", method: str = "GET", body: str = "", **headers: str) -> Answer:
    """The whole answer to a request."""
    with asking(address, path, method, body, **headers) as answer:
        return Answer(answer.status, answer.headers, answer.read())


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A certificate of this test and its key."""
    folder = tmp_path_factory.mktemp("keys")
    certificate, key = folder / "page.pem", folder / "page.key"
    request = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    files = ["-keyout", str(key), "-out", str(certificate), "-days", "2", "-subj", "/CN=leadline.test"]
    subprocess.run([*request, *files], check=True, capture_output=True)
    return certificate, key


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory, keys: tuple[Path, Path]) -> Iterator[tuple[Watch, str]]:
    """A watch whose page listens on every address, with TLS and a token."""
    folder = tmp_path_factory.mktemp("guarded")
    (folder / "token").write_text(f"{TOKEN}\n", encoding="utf-8")
    page = {"certificate": str(keys[0]), "key": str(keys[1]), "password_file": str(folder / "token")}
    with watching(folder, listen="0.0.0.0:0", **page) as (watch, _):
        served = serve(watch)
        yield watch, served.address.replace("0.0.0.0", "127.0.0.1")
        served.close()


# --- on this machine ---


def test_every_answer_forbids_what_the_page_does_not_need(page: ServedPage) -> None:
    for path in ("/", "/nothing", "/metrics", "/assets/page.css", "/top?metric=no_such"):
        answer = ask(page.address, path)
        policy = answer.headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.headers["Referrer-Policy"] == "no-referrer"
        assert "Server" not in answer.headers


def test_names_are_escaped_everywhere(page: ServedPage, watch: Watch) -> None:
    (incident,) = watch.incidents.open_ones()
    paths = ["", "estate", f"estate?find={quote(HOSTILE)}", f"incidents/{incident.id}", "top?metric=cpu_ready_pct"]
    for path in [*paths, f"entity?name={quote(str(VMS[-1]), safe='')}"]:
        text = get(page.address + path)
        assert "<script>" not in text
        assert "<b>I look" not in text
    with pytest.raises(HTTPError) as refused:
        get(f"{page.address}entity?name={quote(HOSTILE)}")
    assert refused.value.code == 404
    assert "<script>" not in refused.value.read().decode()


def test_another_name_than_this_machines_is_refused(page: ServedPage) -> None:
    for host in ("evil.example.com", "127.0.0.1.evil.example.com", "", "localhost.evil.example.com:80", "[::2]"):
        answer = ask(page.address, "/api/state", Host=host)
        assert answer.status == 421, host
        assert b"sources" not in answer.body
    for host in ("localhost:9999", "127.0.0.1", "[::1]:7177", "LOCALHOST"):
        assert ask(page.address, "/api/state", Host=host).status == 200


def test_the_name_of_the_link_is_this_machines(tmp_path: Path) -> None:
    with watching(tmp_path, link="https://watch.example.com/leadline") as (watch, _):
        served = serve(watch)
        assert ask(served.address, Host="watch.example.com").status == 200
        assert ask(served.address, Host="example.com").status == 421
        served.close()


def test_nothing_can_be_changed_but_by_a_mark_with_a_token(page: ServedPage) -> None:
    for method in ("POST", "PUT", "DELETE", "PATCH"):
        assert ask(page.address, "/", method).status == 405
    answer = ask(page.address, "/api/mark", "POST", '{"text": "x"}')
    assert answer.status == 403
    assert "password_file" in answer.body.decode()


def test_state_and_figures_are_of_the_watch(page: ServedPage, watch: Watch) -> None:
    state = json.loads(get(f"{page.address}api/state"))
    assert state["schema"] == "leadline.watch/1"
    assert state["samples"] == watch.sample_count
    lines = get(f"{page.address}metrics").splitlines()
    values = dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
    assert values['leadline_watch_source_up{source="recorded",kind="postgresql"}'] == "1"
    assert values['leadline_watch_incidents_open{severity="high"}'] == "1"
    assert float(values["leadline_watch_samples_total"]) == watch.sample_count
    named = {line.split()[2] for line in lines if line.startswith("# TYPE")}
    assert {name.split("{")[0] for name in values} <= named


def test_the_recording_of_an_incident_is_one(page: ServedPage, watch: Watch, tmp_path: Path) -> None:
    (incident,) = watch.incidents.open_ones()
    answer = ask(page.address, f"/incidents/{incident.id}/capture.parquet")
    assert answer.headers["Content-Disposition"] == f'attachment; filename="{incident.id}.parquet"'
    path = tmp_path / "capture.parquet"
    path.write_bytes(answer.body)
    assert "db_tps" in import_paths([path]).capture.metrics()


@pytest.mark.parametrize(
    "path", ["incidents/last", "incidents/..%2F..%2Fetc", "incidents/1/capture.parquet", "assets/..%2Fpages.py", "no"]
)
def test_what_is_not_there_is_said(page: ServedPage, path: str) -> None:
    assert ask(page.address, f"/{path}").status == 404


@pytest.mark.parametrize("path", ["top?minutes=<b>", "top?minutes=-1", "top?by=x&metric=db_tps", "entity"])
def test_a_value_that_cannot_be_is_refused_in_words(page: ServedPage, path: str) -> None:
    answer = ask(page.address, f"/{path}")
    assert answer.status in (404, 422)
    assert "This cannot be shown" in answer.body.decode()
    assert "<b>" not in answer.body.decode()


def test_a_part_is_the_main_of_the_whole(page: ServedPage) -> None:
    part = get(page.address, X_Leadline_Fragment="1")
    assert "<html" not in part
    assert "1 incident is open." in part
    assert len(part) < len(get(page.address))


def test_a_change_is_a_few_hundred_bytes(page: ServedPage, watch: Watch) -> None:
    with asking(page.address, "/events") as answer:
        assert answer.headers["Content-Type"].startswith("text/event-stream")
        first = [answer.readline() for _ in range(3)]
        assert first[0] == b"event: change\n"
        watch.events.append(WatchEvent(time.time_ns(), "recorded", "answers again", is_bad=False))
        second = [answer.readline() for _ in range(3)]
    assert second[0] == b"event: change\n"
    assert second[1] != first[1]
    assert len(b"".join(second)) < 300


# --- elsewhere ---


def test_elsewhere_needs_tls_and_a_token(tmp_path: Path, keys: tuple[Path, Path]) -> None:
    tls = {"certificate": str(keys[0]), "key": str(keys[1])}
    for page in ({}, tls, {"password_file": "token"}, {"certificate": str(keys[0]), "password_file": "token"}):
        with pytest.raises(ValidationError, match="not this machine alone"):
            settings_of(tmp_path, listen="0.0.0.0:7177", **page)


def test_without_the_token_nothing_is_shown(guarded: tuple[Watch, str]) -> None:
    _, address = guarded
    for path in ("/", "/api/state", "/metrics", "/events", "/incidents/1/capture.parquet", "/assets", "/nothing"):
        assert ask(address, path).status == 401, path
    for wrong in ("", "x", TOKEN[:-1], f"{TOKEN}x", "ä"):
        bearer = f"Bearer {wrong}"
        assert ask(address, "/api/state", Authorization=bearer).status == 401
        answer = ask(address, f"/login?token={quote(wrong)}")
        assert "Set-Cookie" not in answer.headers
        assert ask(address, "/", Cookie=f"leadline-watch={wrong.encode().hex()}").status == 401
    assert ask(address, "/", Cookie="leadline-watch=; ;;=").status == 401
    body = ask(address, "/").body.decode()
    assert "This page needs a token" in body
    assert ask(address, "/assets/page.css").status == 200


def test_with_the_token_all_is_shown(guarded: tuple[Watch, str]) -> None:
    _, address = guarded
    assert ask(address, "/api/state", Authorization=f"Bearer {TOKEN}").status == 200
    answer = ask(address, f"/login?token={TOKEN}")
    assert (answer.status, answer.headers["Location"]) == (303, "/")
    cookie = answer.headers["Set-Cookie"]
    assert {"HttpOnly", "Secure", "SameSite=lax"} <= {part.strip() for part in cookie.split(";")}
    assert TOKEN not in cookie
    kept = cookie.split(";")[0]
    shown = ask(address, "/", Cookie=kept)
    assert shown.status == 200
    assert shown.headers["Strict-Transport-Security"] == "max-age=31536000"


def test_a_deployment_is_told_with_the_token_and_not_with_the_cookie(guarded: tuple[Watch, str]) -> None:
    watch, address = guarded
    cookie = ask(address, f"/login?token={TOKEN}").headers["Set-Cookie"].split(";")[0]
    change = json.dumps({"text": "orders 4.2 deployed", "entity": "database:db01"})
    assert ask(address, "/api/mark", "POST", change, Cookie=cookie).status == 401
    bearer = f"Bearer {TOKEN}"
    assert ask(address, "/api/mark", "POST", "{}", Authorization=bearer).status == 422
    assert ask(address, "/api/mark", "POST", "x" * 20_000, Authorization=bearer).status == 413
    answer = ask(address, "/api/mark", "POST", change, Authorization=bearer)
    assert answer.status == 201
    at_ns = json.loads(answer.body)["time_ns"]
    (marker,) = watch.incidents.markers(at_ns, at_ns + 1)
    assert (marker.kind, marker.text) == ("deployment", "orders 4.2 deployed")


def test_without_tls_nothing_is_answered(guarded: tuple[Watch, str]) -> None:
    _, address = guarded
    with pytest.raises((OSError, HTTPException)):
        ask(address.replace("https", "http"), Authorization=f"Bearer {TOKEN}")


# --- coming and going ---


def test_an_address_that_is_taken_is_said(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        with watching(tmp_path, listen=f"127.0.0.1:{taken.getsockname()[1]}") as (watch, _):
            with pytest.raises(ToolError, match="cannot be listened on"):
                serve(watch)


def test_a_certificate_that_is_none_is_said(tmp_path: Path) -> None:
    bad = tmp_path / "bad.pem"
    bad.write_text("none", encoding="utf-8")
    (tmp_path / "token").write_text(TOKEN, encoding="utf-8")
    page = {"certificate": str(bad), "key": str(bad), "password_file": str(tmp_path / "token")}
    with watching(tmp_path, listen="0.0.0.0:0", **page) as (watch, _), pytest.raises(ToolError, match="TLS"):
        serve(watch)


def test_it_ends_soon_though_somebody_looks(watch: Watch) -> None:
    served = serve(watch)
    with asking(served.address, "/events") as answer:
        answer.readline()
        began = time.monotonic()
        served.close()
        assert time.monotonic() - began < 4.0
    with pytest.raises(OSError):
        ask(served.address)


def test_the_watch_goes_on_while_many_look(tmp_path: Path) -> None:
    """A real watch of this machine: pages are asked for all the time, and every step is in time."""
    settings = settings_of(tmp_path).model_dump(mode="json")
    settings |= {"sources": [{"name": "here", "collector": "linux"}], "read_every_s": 0.5, "judge_every_s": 1}
    over = threading.Event()
    with opened(type(settings_of(tmp_path)).model_validate(settings), incident_words) as watch:
        served = serve(watch)
        steps: list[float] = []
        thread = threading.Thread(target=watch.run, args=(over, lambda: steps.append(time.monotonic())))
        thread.start()
        try:
            deadline = time.monotonic() + 8.0
            while time.monotonic() < deadline:
                for path in ("", "estate", "sources", "top?metric=guest_load_1m", "top?minutes=60", "metrics"):
                    assert get(served.address + path)
            text = get(served.address)
        finally:
            over.set()
            thread.join(30)
            served.close()
    assert len(steps) >= 5
    assert "here" in text
    assert "1 guest" in text


def test_a_page_does_not_wait_for_ever(watch: Watch, monkeypatch: pytest.MonkeyPatch) -> None:
    """A watch that judges for long does not keep a page waiting for ever."""
    monkeypatch.setattr("leadline.app.watch.views.LOCK_WAIT_S", 0.2)
    served = serve(watch)
    with watch.lock:
        with pytest.raises(HTTPError) as refused:
            get(served.address)
        assert refused.value.code == 503
        assert "judging" in refused.value.read().decode()
        assert get(f"{served.address}incidents")
    served.close()
