"""A scripted scorer of token sequences: deterministic, with a memory of neighbours that a test plants.

Each sequence costs a value drawn from a hash of its ids (standard deviation ``spread``); a remembered pair of
consecutive examples is worth ``bonus`` nats. ``dies_at`` raises in that batch, as a kill would.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import pairwise

import numpy as np

from resources.contamination.order_scoring import Tokenization
from strandline.contamination.order_batches import OrderBatch, Scored
from strandline.scoring.prefix_tree import Request
from strandline.scoring.scores import SequenceScore


class KilledError(RuntimeError):
    """The process died here."""


@dataclass
class ScriptedScorer:
    """Characters are ids; 0 is BOS. ``drifts`` adds noise from call to call, in half precision only."""

    remembered: str = ""
    bonus: float = 0.0
    spread: float = 10.0
    dies_at: int | None = None
    drifts: bool = False
    nonfinite_if: str | None = None
    bos_id: int | None = 0
    context_length: int | None = None
    dtype: str = "float32"
    device: str = "script"
    weights: str = "script-1"
    libraries: str | None = None
    tokenized: int = 0
    batches: list[OrderBatch] = field(default_factory=list)

    def tokenize(self, texts: Sequence[str]) -> Tokenization:
        """Code points of each text."""
        self.tokenized += 1
        ids = [[ord(letter) for letter in text] for text in texts]
        return Tokenization(ids, self.bos_id, self.context_length, 1000.0, self.device, self.libraries)

    def run(self, batches: Iterable[OrderBatch]) -> Iterator[Scored]:
        """Scores in order; every window holds sequences of one length."""
        for batch in batches:
            if self.dies_at is not None and len(self.batches) >= self.dies_at:
                raise KilledError("the process died")
            self.batches.append(batch)
            for window in batch.windows:
                assert len({len(request.ids) for request in window}) == 1
            noise = len(self.batches) % 7 if self.drifts and batch.dtype != "float32" else 0
            yield batch, [[self._score(request, batch.dtype, noise) for request in window] for window in batch.windows]

    @property
    def orders(self) -> int:
        """Orderings scored, sentinels included."""
        return sum(len(batch.orders) for batch in self.batches)

    def _score(self, request: Request, dtype: str, noise: int) -> SequenceScore:
        text = "".join(map(chr, request.ids[1:] if self.bos_id is not None else request.ids))
        seed = int.from_bytes(sha256(text.encode()).digest()[:8], "big")
        value = float(np.random.default_rng(seed).normal(5.0 * len(text), self.spread))
        pieces = [piece for piece in text.split("\n\n") if piece]
        known = sum(f"{a}\n\n{b}" in self.remembered for a, b in pairwise(pieces))
        value += 0.3 * noise
        bad = self.nonfinite_if is not None and self.nonfinite_if in text
        return SequenceScore(
            request=request,
            sum_nll=None if bad else value - self.bonus * known,
            status="nonfinite" if bad else "ok",
            dtype=dtype,
            method="script",
            computed=len(request.ids),
            saved=0,
            batch_rows=len(request.ids),
        )
