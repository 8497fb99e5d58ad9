"""The network as Dagster configures it: a thin wrapper that opens an `Http`."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from dagster import ConfigurableResource
from pydantic import Field

from resources.http import Http, Limits


def product_version() -> str:
    """The installed version of this product, for the User-Agent."""
    try:
        return version("strandline")
    except PackageNotFoundError:
        return "0"


class NetworkResource(ConfigurableResource):
    """How the pipeline reads from servers. `open()` gives the plain adapter; close it, or use it as a context."""

    cache_dir: str = Field(default="data/cache", description="Folder of the HTTP cache and the pacing marks.")
    contact: str = Field(
        default="",
        description="Who runs this, as an e-mail address or URL, sent in the User-Agent. Empty: STRANDLINE_CONTACT.",
    )
    min_interval: float = Field(default=0.2, ge=0, description="Seconds between two requests to one host.")
    attempts: int = Field(default=4, ge=1, description="Attempts at one read before it is given up.")
    read_timeout: float = Field(default=60.0, gt=0, description="Seconds without a byte before a read is repeated.")
    max_wait: float = Field(default=120.0, ge=0, description="Longest single pause, in seconds, that a server may ask.")

    def open(self) -> Http:
        """A plain `Http` with these settings."""
        limits = Limits(read=self.read_timeout, attempts=self.attempts, max_wait=self.max_wait)
        return Http(
            Path(self.cache_dir),
            contact=self.contact or None,
            version=product_version(),
            limits=limits,
            min_interval=self.min_interval,
        )
