"""The release registries: their addresses out of the user's own settings, and one way to ask each of them.

The package registries are where pip and npm are told to look, so that mirrors and private indexes work and no host of
theirs stands here. The others have a public default and an environment variable, by which tests point them at loopback.
What an answer means is decided in `strandline.releases`, one module a source.
"""

from __future__ import annotations

import base64
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

import httpx

from resources.network.http import Http, PermanentError, Reply
from strandline.releases import Listed, Listing, Project, github, nodejs, npm, pypi, python_org

T = TypeVar("T")
PIP_SETTING = "global.index-url"
YARN_ALIAS = "https://registry.yarnpkg.com"
PUBLIC = {
    "STRANDLINE_NODEJS_URL": "https://nodejs.org/dist",
    "STRANDLINE_PYTHON_ORG_URL": "https://www.python.org",
    "STRANDLINE_GITHUB_API": "https://api.github.com",
    "STRANDLINE_GITHUB_URL": "https://github.com",
}
GITHUB_PAGES = 3
GITHUB_TAG_DATES = 20


@dataclass(frozen=True)
class Endpoints:
    """Base addresses without credentials, and the Authorization header of each host that has one."""

    pypi: str
    npm: str
    nodejs: str
    python: str
    github: str
    github_pages: str
    authorization: Mapping[str, str]


@dataclass(frozen=True)
class Fetched:
    """A registry's answer about one package, with the validator of the reply it came in."""

    listing: Listing
    etag: str | None


def configured(
    environment: Mapping[str, str] | None = None, ask: Callable[[list[str]], str | None] | None = None
) -> Endpoints:
    """The addresses that this user's settings name.

    PyPI: PIP_INDEX_URL, else pip's `global.index-url`, else the endpoint constant of pypi-simple. npm:
    NPM_CONFIG_REGISTRY, else what npm itself says, else Yarn's public alias. Credentials in an address, and
    GITHUB_TOKEN, become headers of that host alone. `ask` runs a command and returns its output (for tests).
    """
    env = os.environ if environment is None else environment
    ask = ask or _output
    index = env.get("PIP_INDEX_URL") or ask([sys.executable, "-m", "pip", "config", "list"])
    told = env.get("NPM_CONFIG_REGISTRY") or env.get("npm_config_registry")
    registry = told or ask(["npm", "config", "get", "registry"])
    public = {name: env.get(name) or default for name, default in PUBLIC.items()}
    authorization: dict[str, str] = {}
    python_index = _without_credentials(index or _public_index(), authorization)
    node_registry = _without_credentials(registry or YARN_ALIAS, authorization)
    if token := env.get("GITHUB_TOKEN"):
        authorization[httpx.URL(public["STRANDLINE_GITHUB_API"]).host] = f"Bearer {token}"
    return Endpoints(
        pypi=python_index,
        npm=node_registry,
        nodejs=public["STRANDLINE_NODEJS_URL"],
        python=public["STRANDLINE_PYTHON_ORG_URL"],
        github=public["STRANDLINE_GITHUB_API"],
        github_pages=public["STRANDLINE_GITHUB_URL"],
        authorization=authorization,
    )


def _public_index() -> str:
    from pypi_simple import PYPI_SIMPLE_ENDPOINT

    return PYPI_SIMPLE_ENDPOINT


def _output(command: list[str]) -> str | None:
    if shutil.which(command[0]) is None:
        return None
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True)
    except (subprocess.SubprocessError, OSError):
        return None
    return _address(done.stdout)


def _address(text: str) -> str | None:
    """The address that a command printed: on a line of its own, or as pip lists its setting.

    Not every version of pip finds a setting of PIP_CONFIG_FILE by name; all of them list it.
    """
    for line in text.splitlines():
        value = line.removeprefix(f"{PIP_SETTING}=").strip().strip("'")
        if value.startswith(("http://", "https://")):
            return value
    return None


def _without_credentials(address: str, authorization: dict[str, str]) -> str:
    url = httpx.URL(address)
    if url.userinfo:
        pair = f"{url.username}:{url.password}".encode()
        authorization[url.host] = f"Basic {base64.b64encode(pair).decode()}"
        url = url.copy_with(username=None, password=None)
    return str(url)


def release_page(endpoints: Endpoints, project: Project, version: str) -> str | None:
    """The page of a release, from the same base as its registry; None where no registry is known for the project."""
    sources = {
        "npm": (npm.page, endpoints.npm),
        "pypi": (pypi.page, endpoints.pypi),
        "nodejs": (nodejs.page, endpoints.nodejs),
        "python": (python_org.page, endpoints.python),
        "github": (github.page, endpoints.github_pages),
    }
    if project.registry not in sources or project.name is None:
        return None
    page, base = sources[project.registry]
    return page(project.name, version, base)


class Registries:
    """Asks the registries. Raises what `Http` raises, and PermanentError for an answer that cannot be read."""

    def __init__(self, http: Http, endpoints: Endpoints) -> None:
        self.http = http
        self.endpoints = endpoints

    def fetch(self, project: Project, known: Collection[str] = ()) -> Fetched:
        """All that the project's registry says about it. `known` versions let a long history be read no further."""
        if project.registry is None or project.name is None:
            raise ValueError(f"{project.project} names no registry to ask")
        ask = {
            "npm": self._npm,
            "pypi": self._pypi,
            "nodejs": self._nodejs,
            "python": self._python,
            "github": self._github,
        }.get(project.registry)
        if ask is None:
            raise ValueError(f"{project.project}: {project.registry!r} is not a registry that can be asked")
        return ask(project.name, known)

    def _npm(self, name: str, known: Collection[str]) -> Fetched:
        reply = self._get(npm.url(name, self.endpoints.npm))
        return Fetched(_read(reply, npm.parse), reply.etag)

    def _pypi(self, name: str, known: Collection[str]) -> Fetched:
        reply = self._get(pypi.url(name, self.endpoints.pypi), pypi.ACCEPT)
        return Fetched(_read(reply, pypi.parse), reply.etag)

    def _nodejs(self, name: str, known: Collection[str]) -> Fetched:
        reply = self._get(nodejs.url(name, self.endpoints.nodejs))
        return Fetched(_read(reply, nodejs.parse), reply.etag)

    def _python(self, name: str, known: Collection[str]) -> Fetched:
        reply = self._get(python_org.url(name, self.endpoints.python))
        return Fetched(_read(reply, python_org.parse), reply.etag)

    def _github(self, name: str, known: Collection[str]) -> Fetched:
        found: list[Listed] = []
        etag, incomplete = None, True
        for number in range(1, GITHUB_PAGES + 1):
            reply = self._get(github.url(name, self.endpoints.github, number), "application/vnd.github+json")
            part = _read(reply, lambda payload: github.parse(payload, name))
            etag, incomplete = etag or reply.etag, part.incomplete
            found.extend(part.releases)
            if not incomplete or all(listed.version in known for listed in part.releases):
                break
        if not found:
            return self._github_tags(name, known)
        return Fetched(Listing(name, tuple(found), github.SOURCE, incomplete), etag)

    def _github_tags(self, name: str, known: Collection[str]) -> Fetched:
        """The newest tags where a repository has no releases, each new one dated by its commit, up to a limit."""
        reply = self._get(github.tags_url(name, self.endpoints.github), "application/vnd.github+json")
        listing, commits = _read(reply, lambda payload: github.parse_tags(payload, name))
        new = [listed for listed in listing.releases if listed.version not in known][:GITHUB_TAG_DATES]
        dates = {
            listed.version: github.dated(
                listed, self._get(github.commit_url(name, commits[listed.version], self.endpoints.github)).json()
            )
            for listed in new
        }
        rows = tuple(dates.get(listed.version, listed) for listed in listing.releases)
        return Fetched(replace(listing, releases=rows), reply.etag)

    def _get(self, url: str, accept: str = "application/json") -> Reply:
        return self.http.get(url, headers={"Accept": accept}, revalidate=True)


def _read(reply: Reply, parse: Callable[[object], T]) -> T:
    try:
        return parse(reply.json())
    except ValueError as error:
        raise PermanentError(f"{reply.url}: {error}", url=reply.url, status=reply.status) from error
