"""The READMEs of the packages installed beside this program: a real corpus whose truth is known.

Each document is the description in a package's METADATA, cleaned like the `readme` resource; `revision` is the version
that is installed, and `source_id` the package's normalised name, which is that resource's topic.
"""

from collections.abc import Iterator
from hashlib import sha256
from importlib.metadata import Distribution, distributions
from pathlib import PurePath

from packaging.utils import canonicalize_name

from strandline.corpus import BrokenRecord, Document, Location
from strandline.spans.readme import CLEANER, clean, readme_of

SUBCORPUS = "installed"
"""The one part of this corpus."""


def fingerprint() -> str:
    """Changes when a package is installed, removed or updated, or READMEs are cleaned in another way."""
    installed = sorted(f"{_name(each)} {each.version}" for each in _distributions())
    return sha256("\n".join([CLEANER, *installed]).encode()).hexdigest()[:24]


def read() -> Iterator[Document | BrokenRecord]:
    """A document for each installed package with a README, by name; a package without one is a broken record."""
    for each in sorted(_distributions(), key=_name):
        location = Location(_place(each), "record", 1)
        try:
            readme = readme_of((each.read_text("METADATA") or each.read_text("PKG-INFO") or "").encode())
        except (ValueError, OSError) as error:
            yield BrokenRecord(location, "metadata", str(error))
            continue
        text = clean(readme) if readme else ""
        if not text:
            yield BrokenRecord(location, "no_text", f"{_name(each)} {each.version} has no README in its metadata")
            continue
        yield Document(text, location, SUBCORPUS, source_id=_name(each), revision=each.version)


def _distributions() -> list[Distribution]:
    """The installed packages, each once: the first on the path is the one that imports find."""
    found: dict[str, Distribution] = {}
    for each in distributions():
        if each.metadata["Name"]:
            found.setdefault(_name(each), each)
    return list(found.values())


def _name(each: Distribution) -> str:
    return str(canonicalize_name(each.metadata["Name"]))


def _place(each: Distribution) -> str:
    """The METADATA file, without the folder that the environment happens to lie in."""
    files = [file for file in each.files or [] if file.name in ("METADATA", "PKG-INFO")]
    return str(PurePath(files[0])) if files else f"{_name(each)}-{each.version}/METADATA"
