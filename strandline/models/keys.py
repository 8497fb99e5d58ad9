"""Partition keys for model names: safe to store, to show and to take apart again.

Only the encoding belongs here; which models have a partition is decided elsewhere.
"""

from urllib.parse import unquote_to_bytes

_PLAIN = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-")
"""Bytes that stand for themselves: what every file system, URL and Dagster's own selection syntax leave alone."""


def partition_key(name: str) -> str:
    """Encode a model name with the characters ``[A-Za-z0-9._%-]`` alone.

    Letters, digits, ``_`` and ``-`` stand for themselves, and so does a dot inside the name that follows none; every
    other byte of the UTF-8 form becomes ``%XX``. Two names never share a key (``model_name`` takes the key back), no
    key is empty, ``.`` or ``..``, and none contains ``...``, which Dagster reads as a range.

    Raises ValueError for an empty name.
    """
    if not isinstance(name, str) or not name:
        raise ValueError(f"a model needs a name, which is a text and not empty: {name!r} has no partition key")
    data = name.encode("utf-8", "surrogatepass")
    return "".join(_encoded(data, i) for i in range(len(data)))


def model_name(key: str) -> str:
    """The name that ``partition_key`` made this key from; ValueError for a text that it never makes."""
    try:
        name = unquote_to_bytes(key).decode("utf-8", "surrogatepass") if isinstance(key, str) else ""
    except UnicodeError as error:
        raise ValueError(f"{key!r} is not a partition key of a model: {error}") from None
    if not name or partition_key(name) != key:
        raise ValueError(f"{key!r} is not a partition key of a model")
    return name


def _encoded(data: bytes, i: int) -> str:
    byte = data[i]
    is_inner_dot = byte == 0x2E and 0 < i < len(data) - 1 and data[i - 1] != 0x2E
    return chr(byte) if byte in _PLAIN or is_inner_dot else f"%{byte:02X}"
