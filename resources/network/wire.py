"""The transports below the HTTP adapter: routes and proxies, pacing and credentials, and the cache on top of them."""

from __future__ import annotations

import urllib.request
from collections import Counter
from pathlib import Path

import httpx

from resources.network.pacing import Pace, is_loopback


class Wire(httpx.BaseTransport):
    """The layer below the cache: paces each request that really goes out, counts it and adds its credentials."""

    def __init__(
        self, inner: httpx.BaseTransport, pace: Pace, counters: Counter[str], authorization: dict[str, str]
    ) -> None:
        self._inner, self._pace, self._counters, self._authorization = inner, pace, counters, authorization

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        self._pace.wait(request.url.host)
        self._counters["requests"] += 1
        kept = request.headers
        if value := self._authorization.get(request.url.host):
            request.headers = httpx.Headers([*kept.raw, (b"Authorization", value.encode())])
        try:
            return self._inner.handle_request(request)
        finally:
            request.headers = kept

    def close(self) -> None:
        self._inner.close()


class Routes(httpx.BaseTransport):
    """Straight to the server, or through the proxy that the environment names for its scheme (`no_proxy` respected)."""

    def __init__(self) -> None:
        self._direct = httpx.HTTPTransport()
        self._proxies = {
            scheme: httpx.HTTPTransport(proxy=address)
            for scheme, address in urllib.request.getproxies().items()
            if scheme in ("http", "https")
        }

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        proxy = self._proxies.get(request.url.scheme)
        if proxy is None or is_loopback(request.url.host) or urllib.request.proxy_bypass(request.url.host):
            return self._direct.handle_request(request)
        return proxy.handle_request(request)

    def close(self) -> None:
        for transport in (self._direct, *self._proxies.values()):
            transport.close()


def cache_over(wire: httpx.BaseTransport, cache_dir: Path) -> httpx.BaseTransport:
    """A private RFC 9111 cache in a file of `cache_dir`, shared by all processes."""
    from hishel import CacheOptions, SqliteStorage
    from hishel.httpx import CacheTransport

    cache_dir.mkdir(parents=True, exist_ok=True)
    storage = SqliteStorage(database_path=cache_dir / "http.sqlite")
    return CacheTransport(wire, storage=storage, rfc=CacheOptions(shared=False))
