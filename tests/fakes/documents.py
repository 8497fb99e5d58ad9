"""Duplicates of documents that are held in memory."""

from collections.abc import Sequence

from strandline.corpus import Document
from strandline.corpus.duplicates import THRESHOLD, DuplicatePair, duplicate_pairs, profile


def find_duplicates(
    documents: Sequence[Document], threshold: float = THRESHOLD, filtered_domains: Sequence[str] = ()
) -> list[DuplicatePair]:
    """All duplicate pairs of documents that are held in memory."""
    texts = {document.document_id: document.text for document in documents}
    return duplicate_pairs(profile(documents), texts.__getitem__, threshold, filtered_domains)
