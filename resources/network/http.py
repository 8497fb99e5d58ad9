"""The one HTTP adapter: cached, conditional, bounded, polite reads over HTTP.

Everything that the pipeline reads from a server (registries, wikis, indexes, archives) goes through `Http.get`. Here
belong timeouts, retries, redirects, the cache, pacing and the errors they end in; what a payload means does not.

Two kinds of failure are types: `TransientError` may pass by itself and says when to come back, `PermanentError` will
not.
"""

from __future__ import annotations

import json
import random
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any

import httpx

from resources.environment import CONTACT
from resources.network.pacing import Pace
from resources.network.redaction import Redactor, redacted
from resources.network.wire import Routes, Wire, cache_over

TRANSIENT_STATUSES = frozenset({408, 425, 429, 500, 502, 503, 504, *range(520, 530)})
"""Statuses that RFC 9110 and its extensions mean as passing (408, 425, 429, 5xx without 501 and 505), and the range in
which Cloudflare says that it did not reach the server behind it."""

RATE_LIMIT_FLOOR = 60.0
"""Seconds to stay away where a rate limit is spent and no reset is told: GitHub's advice for its secondary limits."""


class FetchError(Exception):
    """A read that failed: `url` without credentials, `status` (None where no reply came) and a sentence why."""

    def __init__(self, message: str, *, url: str = "", status: int | None = None) -> None:
        super().__init__(message)
        self.url = url
        self.status = status


class TransientError(FetchError):
    """The server was busy, slow or unreachable within the budget of attempts; `retry_at` says when it asked us back."""

    def __init__(
        self, message: str, *, url: str = "", status: int | None = None, retry_at: datetime | None = None
    ) -> None:
        super().__init__(message, url=url, status=status)
        self.retry_at = retry_at


class PermanentError(FetchError):
    """The server refused, the thing is not there, or the reply is not what was asked for: asking again is no use."""


class ShrunkenFetchError(PermanentError):
    """A fetch returned far less than the last one did; the last good rows stay."""


class MissingContactError(PermanentError):
    """The server's operators ask who is calling, and nobody has said."""


@dataclass(frozen=True)
class Reply:
    """A complete answer. `origin` is `network`, `revalidated` (a 304 confirmed the stored copy) or `cache`."""

    url: str
    status: int
    headers: Mapping[str, str]
    content: bytes
    origin: str = "network"

    @property
    def text(self) -> str:
        """The body as UTF-8, undecodable bytes replaced."""
        return self.content.decode("utf-8", "replace")

    @property
    def etag(self) -> str | None:
        """The validator of this representation, if the server gave one."""
        return self.headers.get("etag")

    def json(self) -> Any:
        """The body as JSON; a body that is something else is a PermanentError that shows how it begins."""
        try:
            return json.loads(self.content)
        except ValueError as error:
            kind = self.headers.get("content-type", "no content type")
            raise PermanentError(
                f"expected JSON from {self.url}, got {kind} beginning {self.text[:120]!r}",
                url=self.url,
                status=self.status,
            ) from error


@dataclass(frozen=True)
class Exchange:
    """One line of the request log: what was asked, when, and what came of it."""

    at: datetime
    method: str
    url: str
    status: int | None
    origin: str
    n_bytes: int
    seconds: float
    attempt: int


@dataclass(frozen=True)
class Limits:
    """What one read may cost. Times in seconds; `max_wait` bounds a single pause that a server may ask of us.

    The defaults balance a person who waits against servers that are slow for a while: a connection that takes 10 s will
    not come; a minute without a byte is a lost connection; 64 MiB is six times the largest npm document that was seen;
    four attempts from one second on bridge a restart of some seconds. A longer outage ends as `TransientError`, and the
    next run asks again.
    """

    connect: float = 10.0
    read: float = 60.0
    total: float = 600.0
    attempts: int = 4
    backoff: float = 1.0
    max_wait: float = 120.0
    max_bytes: int = 64 * 1024 * 1024

    def timeout(self) -> httpx.Timeout:
        """The same limits as httpx takes them."""
        return httpx.Timeout(connect=self.connect, read=self.read, write=self.read, pool=self.read)


def user_agent(contact: str | None, version: str) -> str:
    """`product/version (contact)`: the form that server operators ask of automated clients."""
    return f"strandline/{version} ({contact})" if contact else f"strandline/{version}"


def retry_after_seconds(value: str | None, now: float) -> float | None:
    """Seconds to wait from a Retry-After header, in its number or HTTP-date form; None if absent or unreadable."""
    if value is None:
        return None
    try:
        return max(0.0, float(value.strip()))
    except ValueError:
        pass
    try:
        moment = parsedate_to_datetime(value)
    except (TypeError, ValueError):
        return None
    return max(0.0, moment.replace(tzinfo=moment.tzinfo or UTC).timestamp() - now)


def asked_wait(reply: Reply, now: float) -> float | None:
    """Seconds that this reply asks us to stay away: Retry-After, an exhausted rate limit's reset, or a minute."""
    retry_after = retry_after_seconds(reply.headers.get("retry-after"), now)
    if reply.headers.get("x-ratelimit-remaining", "").strip() == "0":
        reset = reply.headers.get("x-ratelimit-reset", "")
        until = max(0.0, float(reset) - now) if reset.replace(".", "", 1).isdigit() else RATE_LIMIT_FLOOR
        return max(retry_after or 0.0, until)
    if retry_after is None and reply.status == 403 and "rate limit" in reply.text[:2000].lower():
        return RATE_LIMIT_FLOOR
    return retry_after


def is_transient(reply: Reply) -> bool:
    """Whether a refusal may pass by itself. A 403 may only when it speaks of a rate limit or of when to come back."""
    if reply.status in TRANSIENT_STATUSES:
        return True
    return reply.status == 403 and asked_wait(reply, 0.0) is not None


def refuse_shrunken(what: str, before: int | None, now: int, *, keep: float = 0.5) -> None:
    """Raise ShrunkenFetchError where a fetch holds fewer than `keep` of what the last one held.

    A registry that answers with a fraction of its list is far more often broken than cleaned; taking its word would
    mark everything else as withdrawn. `before` None or 0 (nothing known yet) lets anything pass.
    """
    if before and now < keep * before:
        raise ShrunkenFetchError(f"{what} returned {now} where the last fetch held {before}; the last good rows stay")


class Http:
    """Reads over HTTP with an RFC 9111 cache on disk, pacing by host, bounded retries and a log.

    cache_dir: where the cache and the pacing marks of all processes lie; None keeps both in memory and caches nothing.
    contact: who operates this client; the environment's STRANDLINE_CONTACT if None.
    authorization: host -> header value, added below the cache so that no credential is ever stored.
    min_interval: seconds between two requests to one host (none on loopback unless `intervals` names it).
    """

    def __init__(
        self,
        cache_dir: Path | str | None = None,
        *,
        contact: str | None = None,
        version: str = "0",
        limits: Limits | None = None,
        min_interval: float = 0.2,
        intervals: Mapping[str, float] | None = None,
        authorization: Mapping[str, str] | None = None,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.time,
        rng: random.Random | None = None,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self.limits = limits or Limits()
        self.contact = contact or CONTACT.value()
        self.counters: Counter[str] = Counter()
        self.log: deque[Exchange] = deque(maxlen=10_000)
        self._sleep, self._clock = sleep, clock
        self._rng = rng or random.Random()
        self._pace = Pace(Path(cache_dir) / "pace" if cache_dir else None, min_interval, intervals or {}, sleep, clock)
        wire = Wire(transport or Routes(), self._pace, self.counters, dict(authorization or {}))
        headers = {"User-Agent": user_agent(self.contact, version), "Accept-Encoding": "gzip, deflate"}
        self._secrets = Redactor(*(value.split()[-1] for value in (authorization or {}).values() if value.strip()))
        self._plain = self._client(wire, headers)
        self._cached = self._client(cache_over(wire, Path(cache_dir)), headers) if cache_dir else self._plain

    def _client(self, transport: httpx.BaseTransport, headers: Mapping[str, str]) -> httpx.Client:
        return httpx.Client(
            transport=transport, headers=headers, timeout=self.limits.timeout(), follow_redirects=True, trust_env=False
        )

    def close(self) -> None:
        """Close connections and the cache file."""
        self._cached.close()
        self._plain.close()

    def __enter__(self) -> Http:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def require_contact(self, whom: str) -> str:
        """The operator's contact, or MissingContactError naming the setting that `whom` needs."""
        if not self.contact:
            raise MissingContactError(f"{whom} asks who runs a client: set {CONTACT.name} to an address or URL")
        return self.contact

    def get(
        self,
        url: str,
        *,
        params: Mapping[str, str | int] | None = None,
        headers: Mapping[str, str] | None = None,
        revalidate: bool = False,
        byte_range: str | None = None,
        store: bool = True,
        max_bytes: int | None = None,
        busy_if: Callable[[Reply], str | None] | None = None,
    ) -> Reply:
        """Read `url` completely, following redirects.

        revalidate: ask the server even while the stored copy is fresh (a conditional request; 304 costs no body).
        byte_range: such as `bytes=0-1023` or `bytes=-65536`; never cached. A server that ignores it answers 200.
        store: False for bulk that is kept elsewhere: neither taken from the cache nor put there.
        max_bytes: refuse a longer body (after decompression).
        busy_if: reads a complete reply and returns why it is really a "come back later" in a 200, else None.

        Raises TransientError once the attempts are spent or the server asks for a longer pause than `max_wait`, and
        PermanentError for everything that another try would not change.
        """
        wanted = {**(headers or {}), **({"Cache-Control": "no-cache"} if revalidate else {})}
        if byte_range:
            wanted |= {"Range": byte_range, "Accept-Encoding": "identity"}
        client = self._cached if store and not byte_range else self._plain
        address = httpx.URL(url).copy_merge_params(params) if params else httpx.URL(url)
        for attempt in range(1, self.limits.attempts + 1):
            try:
                return self._once(client, address, wanted, max_bytes or self.limits.max_bytes, busy_if, attempt)
            except _AgainError as again:
                self._before_next(again, redacted(address), attempt)
                wanted["Cache-Control"] = "no-cache"
        raise AssertionError("the last attempt either returns or raises")

    def _once(
        self,
        client: httpx.Client,
        url: httpx.URL,
        headers: Mapping[str, str],
        max_bytes: int,
        busy_if: Callable[[Reply], str | None] | None,
        attempt: int,
    ) -> Reply:
        shown, began = redacted(url), self._clock()
        try:
            with self._pace.turn(url.host), _stream(client, url, headers) as response:
                content = self._body(response, max_bytes, shown, began)
        except (httpx.TimeoutException, httpx.TransportError) as error:
            self._note(shown, None, "failed", 0, began, attempt)
            if isinstance(error, httpx.UnsupportedProtocol):
                raise PermanentError(f"{shown}: {error}", url=shown) from error
            raise _AgainError(f"{type(error).__name__}: {error}".rstrip(": "), None, None) from error
        except (httpx.TooManyRedirects, httpx.DecodingError, httpx.InvalidURL) as error:
            self._note(shown, None, "failed", 0, began, attempt)
            raise PermanentError(f"{shown}: {error}", url=shown) from error
        final = redacted(response.url)
        reply = Reply(final, response.status_code, dict(response.headers), content, _origin(response))
        self._note(final, reply.status, reply.origin, len(content), began, attempt)
        return self._judged(reply, busy_if)

    def _judged(self, reply: Reply, busy_if: Callable[[Reply], str | None] | None) -> Reply:
        if is_transient(reply):
            raise _AgainError(f"HTTP {reply.status}", reply.status, asked_wait(reply, self._clock()))
        if reply.status >= 400:
            said = self._secrets.text(reply.text[:2000])[:200]
            raise PermanentError(f"HTTP {reply.status} from {reply.url}: {said!r}", url=reply.url, status=reply.status)
        busy = busy_if(reply) if busy_if else None
        if busy:
            raise _AgainError(busy, reply.status, asked_wait(reply, self._clock()))
        return reply

    def _body(self, response: httpx.Response, max_bytes: int, shown: str, began: float) -> bytes:
        pieces, size = [], 0
        for piece in response.iter_bytes():
            size += len(piece)
            if size > max_bytes:
                raise PermanentError(
                    f"{shown} is larger than {max_bytes} bytes", url=shown, status=response.status_code
                )
            if self._clock() - began > self.limits.total:
                raise _AgainError(f"no complete body within {self.limits.total:g} s", response.status_code, None)
            pieces.append(piece)
        return b"".join(pieces)

    def _before_next(self, again: _AgainError, shown: str, attempt: int) -> None:
        """Wait as long as the server asked or the backoff says, whichever is longer; give up where that is too long."""
        backoff = self.limits.backoff * 2 ** (attempt - 1) * self._rng.uniform(1.0, 1.25)
        wait = max(backoff, again.wait or 0.0)
        if attempt >= self.limits.attempts or wait > self.limits.max_wait:
            retry_at = datetime.fromtimestamp(self._clock() + again.wait, UTC) if again.wait is not None else None
            later = f"; asked to come back at {retry_at:%Y-%m-%d %H:%M:%S} UTC" if retry_at else ""
            raise TransientError(
                f"{shown}: {again} after {attempt} attempts{later}", url=shown, status=again.status, retry_at=retry_at
            ) from again
        self.counters["retries"] += 1
        self._pace.defer(httpx.URL(shown).host, wait)
        self._sleep(wait)

    def _note(self, url: str, status: int | None, origin: str, n_bytes: int, began: float, attempt: int) -> None:
        self.counters[origin] += 1
        self.counters["bytes"] += n_bytes if origin == "network" else 0
        at = datetime.fromtimestamp(began, UTC)
        self.log.append(Exchange(at, "GET", url, status, origin, n_bytes, self._clock() - began, attempt))


class _AgainError(Exception):
    """Inside this module only: an attempt that is worth repeating, with the pause that was asked for."""

    def __init__(self, why: str, status: int | None, wait: float | None) -> None:
        super().__init__(why)
        self.status = status
        self.wait = wait


@contextmanager
def _stream(client: httpx.Client, url: httpx.URL, headers: Mapping[str, str]) -> Iterator[httpx.Response]:
    with client.stream("GET", url, headers=dict(headers)) as response:
        yield response


def _origin(response: httpx.Response) -> str:
    status = response.extensions.get("caching")
    if not status or not status["from_cache"]:
        return "network"
    return "revalidated" if status["revalidated"] else "cache"
