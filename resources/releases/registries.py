"""The release registries: their addresses out of the user's own settings, and one way to ask each of them.

The package registries are where pip and npm are told to look, so that mirrors and private indexes work and no host of
theirs stands here. The others have a public default and an environment variable, by which tests point them at loopback.
What a registry is, and what its answers mean, stands in `strandline.releases`, one module a registry.
"""

from __future__ import annotations

import base64
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

import httpx

from resources.network.http import Http, PermanentError, Reply
from resources.network.redaction import redacted
from strandline.releases import Listing, Project, sources
from strandline.releases.source import Setting, Source

PIP_SETTING = "global.index-url"
"""How pip lists the address of its index."""
Ask = Callable[[list[str]], str | None]
"""Runs a command of a package manager; returns the address that it prints, None where there is none."""


@dataclass(frozen=True)
class Endpoints:
    """Base addresses without credentials by registry: of what is asked, and of the pages of releases.

    `authorization` is the Authorization header of each host that has one.
    """

    bases: Mapping[str, str]
    pages: Mapping[str, str]
    authorization: Mapping[str, str]

    @property
    def pypi(self) -> str:
        """The Python package index."""
        return self.bases["pypi"]


@dataclass(frozen=True)
class Fetched:
    """A registry's answer about one package, with the validator of the first reply it came in."""

    listing: Listing
    etag: str | None


def configured(environment: Mapping[str, str] | None = None, ask: Ask | None = None) -> Endpoints:
    """The addresses that this user's settings name, by the `Setting` of each registry.

    Credentials in an address, and access tokens, become headers of that host alone. `ask` runs a command and returns
    its output (for tests).
    """
    env = os.environ if environment is None else environment
    ask = ask or _output
    bases: dict[str, str] = {}
    pages: dict[str, str] = {}
    authorization: dict[str, str] = {}
    for source in sources.SOURCES:
        base = _base(source.setting, env, ask, authorization)
        bases[source.name] = base
        pages[source.name] = _base(source.page_setting, env, ask, authorization) if source.page_setting else base
        if source.token_variable and (token := env.get(source.token_variable)):
            authorization[httpx.URL(base).host] = f"Bearer {token}"
    return Endpoints(bases, pages, authorization)


def _base(setting: Setting, env: Mapping[str, str], ask: Ask, authorization: dict[str, str]) -> str:
    """The base address that a setting leads to, without credentials."""
    return _without_credentials(_address(setting, env, ask), authorization, setting)


def _address(setting: Setting, env: Mapping[str, str], ask: Ask) -> str:
    """The first variable that is set, else what the user's package manager says, else the default."""
    address = next((env[name] for name in setting.variables if env.get(name)), None)
    if address is None and setting.asked_of:
        address = ask([sys.executable if word == "python" else word for word in setting.asked_of])
    return address or setting.default()


def _output(command: list[str]) -> str | None:
    if shutil.which(command[0]) is None:
        return None
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True)
    except (subprocess.SubprocessError, OSError):
        return None
    return _printed_address(done.stdout)


def _printed_address(text: str) -> str | None:
    """The address that a command printed: on a line of its own, or as pip lists its setting.

    Not every version of pip finds a setting of PIP_CONFIG_FILE by name; all of them list it.
    """
    for line in text.splitlines():
        value = line.removeprefix(f"{PIP_SETTING}=").strip().strip("'")
        if value.startswith(("http://", "https://")):
            return value
    return None


def _without_credentials(address: str, authorization: dict[str, str], setting: Setting) -> str:
    """The address alone; its credentials go to `authorization`. ValueError, without them, for what is no address."""
    try:
        url = httpx.URL(address)
    except httpx.InvalidURL:
        url = httpx.URL()
    if url.scheme not in ("http", "https") or not url.host:
        shown = redacted(url) or "what is set"
        raise ValueError(f"{setting.variables[0]}: {shown} is no http or https address")
    if url.userinfo:
        pair = f"{url.username}:{url.password}".encode()
        authorization[url.host] = f"Basic {base64.b64encode(pair).decode()}"
        url = url.copy_with(username=None, password=None)
    return str(url)


def release_page(endpoints: Endpoints, project: Project, version: str) -> str | None:
    """The page of a release, from the same base as its registry; None where no registry is known for the project."""
    source = sources.named(project.registry)
    if source is None or project.name is None:
        return None
    return source.page(project.name, version, endpoints.pages[source.name])


class Registries:
    """Asks the registries. Raises what `Http` raises, and PermanentError for an answer that cannot be read."""

    def __init__(self, http: Http, endpoints: Endpoints) -> None:
        self.http = http
        self.endpoints = endpoints

    def fetch(self, project: Project, known: Collection[str] = ()) -> Fetched:
        """All that the project's registry says about it. `known` versions let a long history be read no further."""
        if project.registry is None or project.name is None:
            raise ValueError(f"{project.project} names no registry to ask")
        source = sources.named(project.registry)
        if source is None:
            raise ValueError(f"{project.project}: {project.registry!r} is not a registry that can be asked")
        replies: list[Reply] = []
        listing = self._listing(source, project.name, known, replies)
        return Fetched(listing, next((reply.etag for reply in replies if reply.etag), None))

    def _listing(self, source: Source, name: str, known: Collection[str], replies: list[Reply]) -> Listing:
        """What the registry says, each document that it takes added to `replies`.

        Whatever a document does to its parser is that package's trouble: it is told with the address, and the other
        packages go on.
        """

        def get(url: str) -> Any:
            replies.append(self.http.get(url, headers={"Accept": source.accept}, revalidate=True))
            return replies[-1].json()

        try:
            return source.listing(get, name, self.endpoints.bases[source.name], known)
        except (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError) as error:
            said = str(error) if isinstance(error, ValueError) else f"cannot be read: {error!r}"
            last = replies[-1] if replies else None
            url, status = (last.url, last.status) if last else (None, None)
            raise PermanentError(f"{url or source.name}: {said[:300]}", url=url or "", status=status) from error
