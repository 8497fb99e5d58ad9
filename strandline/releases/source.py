"""What a release registry is: one record that says where it is, how it is asked, and what its answer means.

A registry is one file beside this one that makes a `Source`, and its name in the tuple of `sources`. Fetching is not
done here: `Source.read` is handed a function that returns the JSON document behind an address.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import date
from typing import Any

from strandline.releases import Listing

# The media type that a source asks for unless it names another (RFC 8259).
JSON = "application/json"
Get = Callable[[str], Any]
"""The JSON document behind an address, as parsed; raises what the fetching adapter raises."""


@dataclass(frozen=True)
class Setting:
    """Where the base address comes from: the first variable that is set, else what a command prints, else a default.

    `asked_of` is the command of the user's own package manager, `python` standing for this interpreter.
    """

    variables: tuple[str, ...]
    default: Callable[[], str]
    asked_of: tuple[str, ...] = ()


@dataclass(frozen=True)
class Source:
    """A release registry.

    `url(package, base)` is what is asked and `parse(payload, package)` what the answer says: a `Listing`, or
    ValueError for what is no answer of this registry. `page(package, version, base)` is the page of a release; its
    base is `page_setting` where that is another address. `uncertainty_days` is by how much its days may be off,
    `since` the day before which it held nothing. `is_first_hand` means that releases are published there.
    `token_variable` names the variable of an access token. `read` is how several documents become one listing; by
    default one document is asked for.
    """

    name: str
    url: Callable[[str, str], str]
    parse: Callable[[Any, str], Listing]
    page: Callable[[str, str, str], str]
    setting: Setting
    uncertainty_days: int
    since: date
    is_first_hand: bool = True
    accept: str = JSON
    page_setting: Setting | None = None
    token_variable: str | None = None
    read: Callable[[Get, str, str, Collection[str]], Listing] | None = None

    def listing(self, get: Get, package: str, base: str, known: Collection[str] = ()) -> Listing:
        """All that the registry says about a package. `known` versions let a long history be read no further."""
        if self.read is not None:
            return self.read(get, package, base, known)
        return self.parse(get(self.url(package, base)), package)
