"""What a watch does, as ``watch.yaml`` says it: sources, store, who is told, the page. Secrets stand elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, Self, cast

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from leadline.app.watch.telling import Receiver
from leadline.core.contracts.collector import RecordingCollector
from leadline.core.contracts.discovery import load_unit, unit_modules
from leadline.core.contracts.notifier import NoticeState, Notifier
from leadline.core.io.yaml_files import read_model
from leadline.core.model.vocabulary import Severity
from leadline.core.system.addresses import Address, address_of
from leadline.core.system.leftovers import user_folder
from leadline.core.system.secret_sources import SecretSettings
from leadline.stores.victoriametrics import MetricsServer

GUIDE = "docs/guides/watch.md"
SEVERITIES = tuple(severity.name.lower() for severity in Severity)
FILE_NAME = "watch.yaml"
EVERY_S_MIN = 0.1
PORT = 7177
HOURLY_MAX = 20  # notices to a person
_ADDRESS = r"^https?://[!->A-~]+$"  # without user, password and query
_STRICT = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)


class SourceSettings(SecretSettings):
    """A source: a collector with its target, or a file that grows.

    Attributes:
        name: as people call it; letters, digits, ``-``, ``_`` and ``.``.
        collector: linux, postgresql, mysql, qemu or vcenter; left out for a file.
        target: what it samples: a connection string, an address; left out for this machine.
        follow: a file of a known format that something else appends to.
        every_s: the interval of samples; the collector's own where it is left out.
        options: of the collector.
    """

    name: str = Field(pattern=r"^[A-Za-z0-9][\w.-]{0,63}$")
    collector: str | None = None
    target: str = ""
    follow: Path | None = None
    every_s: float | None = Field(default=None, ge=EVERY_S_MIN, le=3600)
    options: dict[str, str | int | float | bool] = Field(default_factory=dict)

    @field_validator("collector")
    @classmethod
    def _known(cls, value: str | None) -> str | None:
        known = watched_collectors()
        if value is not None and value not in known:
            message = f"no collector {value}; one of {', '.join(known)}"
            raise ValueError(message)
        return value

    @field_validator("target")
    @classmethod
    def _without_secret(cls, value: str) -> str:
        if address_of(value).secret:
            message = "a password in the file; name it by password_file, password_env or password_keyring"
            raise ValueError(message)
        return value

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        if (self.collector is None) == (self.follow is None):
            message = "either a collector or a file to follow"
            raise ValueError(message)
        return self

    @property
    def kind(self) -> str:
        """The collector, or ``file``."""
        return self.collector or "file"

    def address(self) -> Address:
        """The target with its password, read from where it stands.

        Raises:
            ToolError: the secret is not where it should be.
        """
        address = address_of(self.target)
        return Address(address.text, self.password(f"password of {self.name}")) if self.has_password else address


class VictoriaMetricsSettings(SecretSettings):
    """A VictoriaMetrics that keeps samples; its retention is set there.

    Attributes:
        address: ``http://HOST:8428``; of a cluster that of vmselect, with ``/select/0/prometheus``.
        write_address: of a cluster that of vminsert, with ``/insert/0/prometheus``.
        user: with a password; without a user the password is a bearer token.
        ca_file: authorities of its certificate; the system's where it is left out.
    """

    address: str = Field(pattern=_ADDRESS)
    write_address: str = Field(default="", pattern=f"{_ADDRESS}|^$")
    user: str = ""
    ca_file: Path | None = None

    def server(self) -> MetricsServer:
        """The server, with its password read from where it stands.

        Raises:
            ToolError: the secret is not where it should be.
            UsageError: the address is none.
        """
        password = self.password("password of VictoriaMetrics")
        return MetricsServer(self.address, self.write_address, self.user, password, self.ca_file)


class StoreSettings(BaseModel):
    """Where samples are kept, and for how long.

    Attributes:
        folder: of the store; the user's own where it is left out. Incidents and facts are always here.
        victoriametrics: where samples are kept instead: an address, or all of its settings.
        raw_days: samples as they came; those that are far apart stay as long as the roll-ups that they stand for.
        minute_days, ten_minutes_days, two_hours_days: roll-ups.
        gib_max: of all of it; the oldest goes first.
    """

    model_config = _STRICT

    folder: Path | None = None
    victoriametrics: VictoriaMetricsSettings | None = None
    raw_days: float = Field(default=7.0, gt=0, le=3660)
    minute_days: float = Field(default=30.0, gt=0, le=3660)
    ten_minutes_days: float = Field(default=365.0, gt=0, le=3660)
    two_hours_days: float = Field(default=1825.0, gt=0, le=3660)
    gib_max: float = Field(default=20.0, gt=0)

    @field_validator("victoriametrics", mode="before")
    @classmethod
    def _of_address(cls, value: object) -> object:
        return {"address": value} if isinstance(value, str) else value

    def path(self) -> Path:
        """The folder of the store."""
        return (self.folder.expanduser() if self.folder is not None else user_folder() / "watch").absolute()


class ReceiverSettings(BaseModel):
    """Who is told of incidents.

    Attributes:
        severity: of incidents he is told of, at least.
        when: which notices are sent: of an opening, a worsening, an end, a return. By default people get all but
            worsenings, and programs get all.
        hourly_max: how many notices an hour; more are summed up in one. People get 20 where it is left out, programs
            as many as there are; 0 is no limit.
        settings: of the notifier; ``leadline explain notifier:NAME`` lists them.
    """

    model_config = _STRICT

    name: str = Field(pattern=r"^[A-Za-z0-9][\w.-]{0,63}$")
    notifier: str
    severity: Literal["low", "medium", "high", "critical"] = "medium"
    when: tuple[Literal["opened", "worsened", "closed", "reopened"], ...] | None = None
    hourly_max: int | None = Field(default=None, ge=0)
    settings: dict[str, Any] = Field(default_factory=dict)

    @property
    def is_machine(self) -> bool:
        """Whether a program is told."""
        return cast("Notifier", load_unit("notifier", self.notifier)).META.is_machine

    def wants(self, state: NoticeState) -> bool:
        """Whether he is told of it."""
        usual = ("opened", "closed", "reopened", *(("worsened",) if self.is_machine else ()))
        return state.value in (usual if self.when is None else self.when)

    def hourly_limit(self) -> int | None:
        """How many notices an hour; None for no limit."""
        if self.hourly_max is None:
            return None if self.is_machine else HOURLY_MAX
        return self.hourly_max or None

    @model_validator(mode="after")
    def _fits(self) -> Self:
        self.receiver()
        return self

    def receiver(self) -> Receiver:
        """The receiver with the notifier's own settings, checked.

        Raises:
            ValueError: there is no such notifier, or it has other settings.
        """
        known = unit_modules("notifier")
        if self.notifier not in known:
            message = f"no notifier {self.notifier}; one of {', '.join(known)}"
            raise ValueError(message)
        unit = cast("Notifier", load_unit("notifier", self.notifier))
        return Receiver(self.name, self.notifier, unit.Settings.model_validate(self.settings))


class PageSettings(SecretSettings):
    """The live page.

    Attributes:
        listen: address and port; empty for no page.
        certificate, key: files for TLS; needed elsewhere than on this machine, with a token as the password.
        link: the address people reach it by, for links in notices.
    """

    listen: str = f"127.0.0.1:{PORT}"
    certificate: Path | None = None
    key: Path | None = None
    link: str = ""

    @model_validator(mode="after")
    def _is_safe(self) -> Self:
        if not self.listen:
            return self
        host, port = self.host_port()
        if not 0 <= port < 1 << 16:
            message = "listen: ADDRESS:PORT, such as 127.0.0.1:7177"
            raise ValueError(message)
        if host not in {"127.0.0.1", "localhost", "::1"} and not (self.certificate and self.key and self.has_password):
            message = f"{host} is not this machine alone: it needs certificate, key and a token (password_file)"
            raise ValueError(message)
        return self

    def host_port(self) -> tuple[str, int]:
        """Host and port; a port below zero where it is none."""
        host, _, port = self.listen.rpartition(":")
        return host.strip("[]") or "127.0.0.1", int(port) if port.isdigit() else -1


class WatchSettings(BaseModel):
    """All of ``watch.yaml``.

    Attributes:
        window_minutes: how much of the past the live verdict looks at.
        judge_every_s: how often it is made.
        limits: a profile of a site's own limits.
    """

    model_config = _STRICT

    sources: tuple[SourceSettings, ...] = Field(min_length=1)
    store: StoreSettings = Field(default_factory=StoreSettings)
    window_minutes: float = Field(default=20.0, ge=2, le=240)
    read_every_s: float = Field(default=5.0, ge=0.5, le=60)
    judge_every_s: float = Field(default=10.0, ge=1, le=600)
    limits: Path | None = None
    tell: tuple[ReceiverSettings, ...] = ()
    page: PageSettings = Field(default_factory=PageSettings)

    @model_validator(mode="after")
    def _names_differ(self) -> Self:
        for names in ([one.name for one in self.sources], [one.name for one in self.tell]):
            twice = next((name for name in names if names.count(name) > 1), None)
            if twice is not None:
                message = f"{twice} is there twice"
                raise ValueError(message)
        return self


def watched_collectors() -> Sequence[str]:
    """The collectors that can be watched: those that sample over time."""
    return [name for name in unit_modules("collector") if _samples(name)]


def _samples(name: str) -> bool:
    unit = load_unit("collector", name)
    return hasattr(unit, "record") or hasattr(unit, "watch")


def has_files(collector: str) -> bool:
    """Whether a collector appends to files; else it gives captures."""
    unit = load_unit("collector", collector)
    return hasattr(cast("RecordingCollector", unit), "record") and not hasattr(unit, "watch")


def read_settings(path: Path) -> WatchSettings:
    """The settings of a file.

    Raises:
        InputError: it cannot be read, or is wrong; with line and column.
    """
    return read_model(path, WatchSettings, "settings of a watch", GUIDE)


def settings_path() -> Path:
    """Where the settings are when no file is named: here, or in the user's folder."""
    here = Path(FILE_NAME)
    return here if here.exists() else user_folder() / FILE_NAME
