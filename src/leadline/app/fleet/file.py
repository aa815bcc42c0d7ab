"""Files that order a fleet of worker VMs: where, what is cloned, which disks, which load.

``docs/guides/fleet.md`` explains every key with an example. There is no key for a password: others read the file.
Shapes are checked here, with line and column; values are checked with the rest of the order
(`leadline.app.fleet.model`), so that one error lists everything that is wrong with it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from leadline.app.fleet.model import FleetSpec
from leadline.core.io.yaml_files import read_model
from leadline.core.model.errors import UsageError
from leadline.core.model.workload import Seconds, Size
from leadline.core.system.addresses import host_name

_STRICT = ConfigDict(extra="forbid", frozen=True)
_Port = Annotated[int, Field(ge=1, le=65535)]
SSH_USER = r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}"  # a name that is no part of an address
WHAT, GUIDE = "a fleet file", "docs/guides/fleet.md"
PASSWORD_FAULT = "a password does not belong in this file: name a password_file, or set LEADLINE_PASSWORD"


class VCenter(BaseModel):
    """Which vCenter, as whom; ``verify`` is whether its certificate is checked, by ``ca_file`` where one is named."""

    model_config = _STRICT

    host: str
    user: str
    port: _Port = 443
    verify: bool = True
    ca_file: Path | None = None
    password_file: Path | None = None

    @model_validator(mode="before")
    @classmethod
    def _no_secret(cls, given: Any) -> Any:  # noqa: ANN401 - whatever the file holds
        if isinstance(given, dict) and "password" in given:
            raise ValueError(PASSWORD_FAULT)
        return given

    @field_validator("host")
    @classmethod
    def _host(cls, given: str) -> str:
        try:
            return host_name(given)
        except UsageError:
            raise ValueError(PASSWORD_FAULT) from None


class Places(BaseModel):
    """Where the workers go; what is left out is all there is, or as the template has it."""

    model_config = _STRICT

    datastores: Annotated[tuple[str, ...], Field(min_length=1)]
    cluster: str | None = None
    hosts: tuple[str, ...] = ()
    network: str | None = None
    resource_pool: str | None = None
    folder: str | None = None
    storage_policy: str | None = None


class Disks(BaseModel):
    """Disks added to each worker, and the paravirtual controllers they are spread over."""

    model_config = _STRICT

    count: Annotated[int, Field(ge=0)] = 1
    size: Size = 10 * 2**30
    controllers: int | None = None

    @field_validator("size")
    @classmethod
    def _some(cls, given: int) -> int:
        if given < 2**20:
            message = "at least 1m"
            raise ValueError(message)
        return given


class FleetLoad(BaseModel):
    """What each worker does: a shipped workload or a file beside this one, and where in the worker.

    With ``ssh_user`` workers are reached over SSH, and need no fio server.
    """

    model_config = _STRICT

    workload: str
    paths: Annotated[tuple[str, ...], Field(min_length=1)]
    working_set: Size | None = None
    warm_up_s: Annotated[Seconds | None, Field(ge=0)] = None
    measure_s: Annotated[Seconds | None, Field(ge=1)] = None
    rounds: Annotated[int | None, Field(ge=1, le=100)] = None
    seed: int = 1
    fio_port: _Port = 8765
    ssh_user: Annotated[str, Field(pattern=f"^{SSH_USER}$")] | None = None
    ssh_port: _Port = 22

    @field_validator("paths", mode="before")
    @classmethod
    def _one(cls, given: object) -> object:
        return (given,) if isinstance(given, str) else given


class FleetFile(BaseModel):
    """A fleet file."""

    model_config = _STRICT

    leadline_fleet: Literal[1] = 1
    vcenter: VCenter
    template: str
    count: int
    name_prefix: str = "leadline"
    place: Places
    disks: Disks = Disks()
    load: FleetLoad
    address_wait_s: Annotated[Seconds, Field(ge=1)] = 600.0
    clones_at_a_time: Annotated[int, Field(ge=1, le=32)] = 4
    keep_going: bool = False

    def spec(self) -> FleetSpec:
        """What is asked of vCenter."""
        return FleetSpec(
            template=self.template,
            count=self.count,
            disk_count=self.disks.count,
            disk_bytes=self.disks.size,
            controller_count=self.disks.controllers,
            cluster=self.place.cluster,
            hosts=self.place.hosts,
            datastores=self.place.datastores,
            network=self.place.network,
            pool=self.place.resource_pool,
            folder=self.place.folder,
            prefix=self.name_prefix,
            policy=self.place.storage_policy,
        )


def read_fleet(path: Path) -> FleetFile:
    """The order in a file; relative paths in it are of its folder.

    Raises:
        InputError: not readable, or no fleet file; with line and column.
    """
    fleet = read_model(path, FleetFile, WHAT, GUIDE)
    secret = fleet.vcenter.password_file
    if secret is None:
        return fleet
    return fleet.model_copy(
        update={"vcenter": fleet.vcenter.model_copy(update={"password_file": path.parent / secret.expanduser()})}
    )
