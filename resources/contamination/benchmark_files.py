"""Where benchmark files come from: paths beside the project, or public addresses fetched on demand.

The list is ``data/benchmarks.csv``; what a file's bytes mean belongs to ``strandline.contamination.benchmarks``.
"""

from urllib.parse import urlsplit

from resources.environment import BENCHMARK_MIRROR
from resources.network.download_cache import DownloadCache
from resources.network.http import Http
from resources.places import rooted
from strandline.contamination.benchmark_formats import MOST_BYTES
from strandline.contamination.benchmarks import Benchmark, BenchmarkSpec, read_benchmark


def is_remote(spec: BenchmarkSpec) -> bool:
    """Whether the benchmark is fetched over the network."""
    return urlsplit(spec.location).scheme in ("http", "https")


def mirrored(address: str, mirror: str | None = None) -> str:
    """The address to ask: under ``STRANDLINE_BENCHMARK_MIRROR`` (mirror/host/path) where that is set, else as it is."""
    mirror = mirror or BENCHMARK_MIRROR.value()
    parts = urlsplit(address)
    query = f"?{parts.query}" if parts.query else ""
    return f"{mirror.rstrip('/')}/{parts.netloc}{parts.path}{query}" if mirror else address


def load_benchmark(spec: BenchmarkSpec, http: Http, downloads: DownloadCache) -> Benchmark:
    """Open a benchmark's file, or fetch it once, and read it.

    A published version does not change, so what was fetched is kept under its address and version; another version, or
    an emptied cache, is fetched anew. A fetched file that is not what the list says is refused before it is kept.

    Raises:
        ValueError: the file is missing, or is not what the list says.
        resources.network.http.FetchError: it could not be fetched.
    """
    if not is_remote(spec):
        try:
            return read_benchmark(spec, rooted(spec.location).read_bytes())
        except OSError as error:
            raise ValueError(f"{spec.benchmark}: {spec.location} cannot be opened: {error.strerror}") from error
    made: list[Benchmark] = []

    def fetch() -> bytes:
        content = http.get(mirrored(spec.location), store=False, max_bytes=MOST_BYTES).content
        made.append(read_benchmark(spec, content))
        return content

    kept = downloads.read_or(f"{spec.location} {spec.version}", fetch)
    return made[0] if made else read_benchmark(spec, kept)
