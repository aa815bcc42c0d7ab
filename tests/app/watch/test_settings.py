"""What watch.yaml may say, and what it may not."""

from __future__ import annotations

from pathlib import Path

import pytest

from leadline.app.watch.first_settings import FoundDatabase, settings_text
from leadline.app.watch.opening import sample_interval_s
from leadline.app.watch.settings import WatchSettings, read_settings
from leadline.core.contracts.notifier import NoticeState
from leadline.core.model.errors import InputError

LINUX = {"name": "me", "collector": "linux"}


def settings(tmp_path: Path, text: str) -> WatchSettings:
    path = tmp_path / "watch.yaml"
    path.write_text(text)
    return read_settings(path)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("sources: []", "at least 1"),
        ("sources: [{name: a}]", "either a collector or a file"),
        ("sources: [{name: a, collector: linux, follow: x}]", "either a collector or a file"),
        ("sources: [{name: a, collector: nope}]", "no collector nope"),
        ("sources: [{name: 'a b', collector: linux}]", "pattern"),
        ("sources: [{name: a, collector: linux}, {name: a, follow: x}]", "a is there twice"),
        (
            "sources: [{name: a, collector: postgresql, target: 'postgresql://me:hunter22@db/x'}]",
            "a password in the file",
        ),
        ("sources: [{name: a, collector: linux}]\ntell: [{name: b, notifier: pigeon}]", "no notifier pigeon"),
        ("sources: [{name: a, collector: linux}]\npage: {listen: '0.0.0.0:7177'}", "not this machine alone"),
        ("sources: [{name: a, collector: linux}]\npage: {listen: 'localhost'}", "ADDRESS:PORT"),
        ("sources: [{name: a, collector: linux}]\nsorces: []", "sorces"),
        ("sources: [{name: a, collector: linux, every_s: 0}]", "every_s"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(InputError) as caught:
        settings(tmp_path, text)
    assert said in str(caught.value)
    assert "watch.yaml:" in str(caught.value)
    assert "hunter22" not in str(caught.value)


def test_the_usual_is_usable(tmp_path: Path) -> None:
    chosen = settings(tmp_path, "sources: [{name: a, collector: linux}, {name: vc, collector: vcenter, target: vc}]")
    assert [sample_interval_s(one) for one in chosen.sources] == [1.0, 20.0]
    assert chosen.page.host_port() == ("127.0.0.1", 7177)
    assert chosen.store.path().name == "watch"


def test_a_password_stands_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("hunter22\n")
    text = f"sources: [{{name: a, collector: postgresql, target: 'host=db', password_file: {tmp_path / 'secret'}}}]"
    (source,) = settings(tmp_path, text).sources
    assert source.address().secret.reveal() == "hunter22"
    assert "hunter22" not in repr(source)


def test_first_settings_are_read_back(tmp_path: Path) -> None:
    found = [FoundDatabase("postgresql", "postgresql", "host=/run/postgresql port=5432 dbname=postgres")]
    for mail in (None, ("mail.example.com", "dba@example.com")):
        chosen = settings(tmp_path, settings_text(found, has_linux=True, mail=mail))
        assert [one.kind for one in chosen.sources] == ["linux", "postgresql"]
        assert len(chosen.tell) == (mail is not None)


def test_programs_hear_of_everything_and_people_of_what_matters(tmp_path: Path) -> None:
    tell = "tell: [{name: a, notifier: run-command, settings: {command: ['true']}}, "
    tell += "{name: b, notifier: syslog, settings: {}}, "
    tell += "{name: c, notifier: run-command, hourly_max: 0, when: [worsened], settings: {command: ['true']}}]"
    person, program, chosen = settings(tmp_path, f"sources: [{{name: x, collector: linux}}]\n{tell}").tell
    assert [person.wants(state) for state in NoticeState] == [True, False, True, True, False]
    assert [program.wants(state) for state in NoticeState] == [True, True, True, True, False]
    assert [chosen.wants(state) for state in NoticeState] == [False, True, False, False, False]
    assert [one.hourly_limit() for one in (person, program, chosen)] == [20, None, None]
