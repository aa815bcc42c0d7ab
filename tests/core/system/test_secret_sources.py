"""Secrets that settings name: where they are read, and that nothing repeats them."""

from __future__ import annotations

import os
import subprocess
import sys
import types
from pathlib import Path

import pytest
from pydantic import ValidationError

from leadline.core.model.errors import ToolError
from leadline.core.system.secret import Secret
from leadline.core.system.secret_sources import SecretSettings, SecretSource, first_line, withhold

PASSWORD = "kaleidoscope-88-okapi"


def test_a_file_has_it_in_its_first_line(tmp_path: Path) -> None:
    path = tmp_path / "password"
    path.write_bytes(f" {PASSWORD} \r\nmore\n".encode())
    settings = SecretSettings(password_file=path)
    assert settings.password("password") == Secret(f" {PASSWORD} ")
    assert settings.has_password
    assert PASSWORD not in f"{settings!r} {settings.model_dump_json()}"
    path.write_text("another-88\n")
    assert settings.password("password") == Secret("another-88")


def test_a_variable_is_taken_out_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WATCH_MAIL_PW", PASSWORD)
    settings = SecretSettings(password_env="WATCH_MAIL_PW")
    withhold(settings)
    assert "WATCH_MAIL_PW" not in os.environ
    assert [settings.password("password") == Secret(PASSWORD) for _ in range(2)] == [True, True]


@pytest.mark.skipif(sys.platform != "linux", reason="/proc")
def test_the_kernel_does_not_show_a_variable_that_was_taken() -> None:
    code = (
        "from pathlib import Path\n"
        "from leadline.core.system.secret_sources import SecretSettings, withhold\n"
        "withhold(SecretSettings(password_env='WATCH_MAIL_PW'))\n"
        "print(Path('/proc/self/environ').read_bytes() + Path('/proc/self/cmdline').read_bytes())\n"
    )
    env = {**os.environ, "WATCH_MAIL_PW": PASSWORD, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
    assert "WATCH_MAIL_PW=***" in done.stdout
    assert PASSWORD not in done.stdout


def _keyring(monkeypatch: pytest.MonkeyPatch, answer: str | Exception | None) -> None:
    module, errors = types.ModuleType("keyring"), types.ModuleType("keyring.errors")

    class KeyringError(Exception):
        pass

    def get_password(service: str, user: str) -> str | None:
        assert (service, user) == ("smtp/example", "me")
        if isinstance(answer, Exception):
            raise KeyringError(str(answer))
        return answer

    monkeypatch.setattr(errors, "KeyringError", KeyringError, raising=False)
    monkeypatch.setattr(module, "errors", errors, raising=False)
    monkeypatch.setattr(module, "get_password", get_password, raising=False)
    monkeypatch.setitem(sys.modules, "keyring", module)


def test_the_keyring_is_asked_by_service_and_user(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = SecretSettings(password_keyring="smtp/example/me")
    _keyring(monkeypatch, PASSWORD)
    assert settings.password("password") == Secret(PASSWORD)
    _keyring(monkeypatch, None)
    with pytest.raises(ToolError, match=r"has no smtp/example/me.*keyring set smtp/example me"):
        settings.password("password")
    _keyring(monkeypatch, RuntimeError("locked"))
    with pytest.raises(ToolError, match=r"does not answer \(locked"):
        settings.password("password")


def test_a_keyring_that_is_not_installed_is_named_with_its_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "keyring", None)
    with pytest.raises(ToolError, match=r"leadline\[.*keyring"):
        SecretSettings(password_keyring="smtp/me").password("password")


@pytest.mark.parametrize("content", [None, b"", b"\nsecond line\n", b"\xff\xfe"])
def test_a_file_without_a_secret_is_an_error(content: bytes | None, tmp_path: Path) -> None:
    path = tmp_path / "password"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ToolError, match=r"password of mail: the file .*; expected the secret that the settings name"):
        first_line(path, "password of mail")


def test_a_variable_without_a_secret_is_an_error_and_no_place_is_none() -> None:
    with pytest.raises(ToolError, match="WATCH_NOT_SET is not set"):
        SecretSource("password", variable="WATCH_NOT_SET").read()
    assert not SecretSettings().password("password")
    assert not SecretSettings().has_password


def test_a_secret_in_the_wrong_place_is_not_repeated() -> None:
    for place in ({"password": PASSWORD}, {"password_env": PASSWORD}, {"password_keyring": PASSWORD}):
        with pytest.raises(ValidationError) as caught:
            SecretSettings.model_validate(place)
        assert PASSWORD not in str(caught.value)
