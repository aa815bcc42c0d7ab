"""Secrets that a file of settings names and does not hold: in a file, a variable or the user's keyring.

Source: keyring documentation, "Using Keyring in Python"; systemd.exec(5), credentials (a file for each secret).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, model_validator

from leadline.core.model.errors import ToolError
from leadline.core.system.extras import require
from leadline.core.system.secret import Secret, take_variable

SECRET_BYTES_MAX = 64 * 1024


@dataclass(frozen=True, slots=True)
class SecretSource:
    """Where one secret is; at most one place is not empty.

    Attributes:
        purpose: for errors: ``password of mail.example.org``.
        file: its first line is the secret.
        variable: of the environment; it is taken out of it, so that no child process gets it.
        keyring: ``SERVICE/USER``.
    """

    purpose: str
    file: Path | None = None
    variable: str | None = None
    keyring: str | None = None

    def read(self) -> Secret:
        """The secret; an empty one where no place is named. It is read anew each time, so that it may be changed.

        Raises:
            ToolError: it is not where it should be.
        """
        if self.file is not None:
            return Secret(first_line(self.file, self.purpose))
        if self.variable is not None:
            secret = take_variable(self.variable)
            return secret or self._refuse(
                f"the variable {self.variable} is not set", "Set it where Leadline is started."
            )
        if self.keyring is not None:
            return self._of_keyring(self.keyring)
        return Secret()

    def _of_keyring(self, name: str) -> Secret:
        service, _, user = name.rpartition("/")
        keyring: Any = require("keyring")
        try:
            secret = Secret(keyring.get_password(service, user) or "")
        except (keyring.errors.KeyringError, OSError, RuntimeError) as error:
            return self._refuse(f"the keyring does not answer ({error})", "Unlock it, or use a file of secrets.")
        return secret or self._refuse(f"the keyring has no {name}", f"Run: keyring set {service} {user}")

    def _refuse(self, problem: str, advice: str) -> Secret:
        raise _refusal(self.purpose, problem, advice)


def first_line(path: Path, purpose: str) -> str:
    """The first line of a file that holds a secret; never empty.

    Raises:
        ToolError: it cannot be read, or its first line is empty; names the purpose and the file.
    """
    try:
        with path.expanduser().open("rb") as stream:
            lines = stream.read(SECRET_BYTES_MAX).decode("utf-8").splitlines()
    except (OSError, ValueError, RuntimeError) as error:
        reason = getattr(error, "strerror", None) or type(error).__name__
        raise _refusal(purpose, f"the file {path} cannot be read ({reason})", "Write it into the first line.") from None
    if not lines or not lines[0]:
        raise _refusal(purpose, f"the file {path} begins with an empty line", "Write it into the first line.")
    return lines[0]


def _refusal(purpose: str, problem: str, advice: str) -> ToolError:
    return ToolError(purpose, found=problem, expected="the secret that the settings name", advice=advice)


class SecretSettings(BaseModel):
    """Settings with a password that stands elsewhere: ``password_file``, ``password_env`` or ``password_keyring``."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    password_file: Path | None = None
    password_env: str | None = None
    password_keyring: str | None = None

    @model_validator(mode="after")
    def _one_place(self) -> Self:
        if sum(place is not None for place in (self.password_file, self.password_env, self.password_keyring)) > 1:
            message = "one of password_file, password_env and password_keyring, not several"
            raise ValueError(message)
        _check_places(self.password_env, self.password_keyring)
        return self

    def password(self, purpose: str) -> Secret:
        """The password; an empty one where the settings name none.

        Raises:
            ToolError: it is not where the settings say.
        """
        return SecretSource(purpose, self.password_file, self.password_env, self.password_keyring).read()

    @property
    def has_password(self) -> bool:
        """Whether the settings name a place of a password."""
        return any((self.password_file, self.password_env, self.password_keyring))

    def secret_variables(self) -> tuple[str, ...]:
        """Variables of the environment that hold secrets of these settings."""
        return (self.password_env,) if self.password_env else ()


def withhold(settings: BaseModel) -> None:
    """Take the secrets that settings name out of our environment, before any child process could inherit them."""
    if isinstance(settings, SecretSettings):
        for name in settings.secret_variables():
            take_variable(name)


def _check_places(variable: str | None, keyring: str | None) -> None:
    if variable is not None and not variable.replace("_", "a").isalnum():
        # It may be the secret itself, which no error may repeat.
        Secret(variable)
        message = "the name of a variable of the environment, not its content"
        raise ValueError(message)
    if keyring is not None and not all(keyring.rpartition("/")[::2]):
        Secret(keyring)
        message = "SERVICE/USER, as `keyring set SERVICE USER` has them"
        raise ValueError(message)
