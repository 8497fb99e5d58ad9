"""What the numbers of a model count for: the settings of its entry that change them, in one digest.

Perplexity keeps its scores under this digest and contamination its orderings, so that an edited entry leaves no curve
and no test of two kinds of numbers. Reading the weights' own digest belongs to ``resources.models.weights``.
"""

from strandline.models import ModelSpec
from strandline.numeric_input import whole_number

COUNTED_IN: dict[str, str] = {
    "name": "the key of every row",
    "backend": "the digest: a source belongs to one backend",
    "source": "the digest: the weights by content or pinned place; of a server its address",
    "revision": "the digest of hub weights",
    "sha256": "the digest: a wheel of another content is refused",
    "gguf_sha256": "the digest: a GGUF of another content is refused",
    "served_name": "the digest of a served model",
    "context_length": "the digest, where it cuts inputs shorter than the model would",
    "dtype": "the column dtype, which is part of every key, as the format that is really computed in",
    "ask": "the settings of a probe run; scores and orderings do not ask",
    "max_response_tokens": "the settings of a probe run; scores and orderings do not ask",
    "family": "nothing: it describes",
    "n_params": "nothing: it describes",
    "released_on": "nothing: it describes",
    "is_open": "nothing: it describes",
    "provider": "nothing: it describes",
    "cost_per_million_tokens": "nothing: it describes",
    "api_key_env": "nothing: it opens the door, and does not change who answers",
}
"""Where each setting of an entry counts; a test sees that no field is left out."""


def value_digest(spec: ModelSpec, weights: str, own_context: int | None = None) -> str:
    """What names the numbers of an entry: its weights, and a context limit where the entry sets a shorter one.

    Args:
        spec: the entry.
        weights: what names the weights: a digest of their content, a pinned revision, or a server with a served name.
        own_context: the longest input that the model's own configuration allows, None where it does not say.

    Returns:
        ``weights`` itself where the entry does not shorten the context, so that naming the model's own limit, or a
        longer one, changes no key. The number format is no part of it: it has a column of its own in every key.
    """
    limit = None if spec.context_length is None else whole_number(spec.context_length, "context_length", 1)
    own_context = None if own_context is None else whole_number(own_context, "the model's own context", 1)
    if limit is None or (own_context is not None and limit >= own_context):
        return weights
    return f"{weights} context={limit}"
