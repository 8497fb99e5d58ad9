"""A planted truth: a small transformer trained on a benchmark in its published order, on it shuffled, or not at all.

The benchmark is a list of short sentences in an order drawn at random, so its order is exchangeable by construction;
the corpus around it is made of other sentences of the same language. What this cannot show: how large models remember,
or how much a single pass over a huge corpus leaves behind. Only imported where a planted model is trained.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from torch.nn import functional

from strandline.contamination.orderings import PermutationGroup, join_ids, make_shards, order_of
from strandline.contamination.verdict import ShardScores

Mode = Literal["published", "shuffled", "absent"]
Ints = NDArray[np.int64]

NAMES, VERBS, OBJECTS = 200, 10, 20
"""Words of the language: 2,000 different sentences, so that few of a benchmark stand in the rest of the corpus."""

BOS, SEPARATOR, FIRST_WORD = 1, 2, 3
"""Token ids; 0 is not used."""

# All words that planted sentences are made of.
VOCABULARY = FIRST_WORD + NAMES + VERBS + OBJECTS
CONTEXT = 64
"""Tokens of a window: sixteen sentences, enough neighbours to remember, and a training run of seconds."""

SENTENCE = 3
"""Words of a sentence: a name, a verb, an object."""

PER_WINDOW = CONTEXT // (SENTENCE + 1)
"""Sentences of a window, a separator after each; a shard of the benchmark fills one window."""


@dataclass(frozen=True)
class PlantedWorld:
    """``copies`` of a benchmark of ``n_examples`` sentences within ``background`` windows of other text.

    Everything is seen ``epochs`` times.
    """

    mode: Mode
    copies: int
    n_examples: int = 320
    background: int = 200
    epochs: int = 12


class SmallTransformer(nn.Module):
    """Two blocks of causal self-attention with learned relative positions; about 130,000 parameters."""

    def __init__(self, width: int = 64, heads: int = 4, depth: int = 2) -> None:
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, width)
        self.blocks = nn.ModuleList([_Block(width, heads) for _ in range(depth)])
        self.norm = nn.LayerNorm(width)
        nn.init.normal_(self.embedding.weight, std=0.1)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """Next-token logits, (batch, length, vocabulary)."""
        hidden = self.embedding(ids)
        for block in self.blocks:
            hidden = block(hidden)
        return self.norm(hidden) @ self.embedding.weight.T  # type: ignore[no-any-return]


class _Block(nn.Module):
    distance: torch.Tensor
    future: torch.Tensor

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.before, self.between = nn.LayerNorm(width), nn.LayerNorm(width)
        self.project, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.feed = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
        self.distance_bias = nn.Parameter(torch.zeros(heads, CONTEXT + 1))
        distance = torch.arange(CONTEXT + 1)[:, None] - torch.arange(CONTEXT + 1)[None]
        self.register_buffer("distance", distance.clamp(min=0))
        self.register_buffer("future", torch.where(distance < 0, -1e9, 0.0))

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        batch, length, width = hidden.shape
        shape = (batch, length, 3, self.heads, width // self.heads)
        query, key, value = self.project(self.before(hidden)).view(shape).permute(2, 0, 3, 1, 4)
        bias = self.distance_bias[:, self.distance[:length, :length]] + self.future[:length, :length]
        seen = functional.scaled_dot_product_attention(query, key, value, attn_mask=bias)
        hidden = hidden + self.out(seen.transpose(1, 2).reshape(batch, length, width))
        return hidden + self.feed(self.between(hidden))  # type: ignore[no-any-return]


def sentences(n: int, rng: np.random.Generator) -> Ints:
    """``n`` random sentences of the language: a name, a verb, and the object that follows from both."""
    name, verb = rng.integers(0, NAMES, n), rng.integers(0, VERBS, n)
    thing = (name + 3 * verb) % OBJECTS
    return np.stack([FIRST_WORD + name, FIRST_WORD + NAMES + verb, FIRST_WORD + NAMES + VERBS + thing], axis=1)


def training_windows(benchmark: Ints, world: PlantedWorld, rng: np.random.Generator) -> Ints:
    """Token windows of the corpus; each copy of the benchmark lies at its own random offset within them."""
    rows = [_stream(sentences(PER_WINDOW, rng)) for _ in range(world.background)]
    for _ in range(0 if world.mode == "absent" else world.copies):
        order = np.arange(len(benchmark)) if world.mode == "published" else rng.permutation(len(benchmark))
        before = int(rng.integers(1, PER_WINDOW))
        padded = [sentences(before, rng), benchmark[order], sentences(2 * PER_WINDOW - before, rng)]
        stream = _stream(np.concatenate(padded))
        rows += [stream[i : i + CONTEXT] for i in range(0, len(stream) - CONTEXT + 1, CONTEXT)]
    return np.array([[BOS, *row] for row in rows])


def train(windows: Ints, epochs: int, seed: int) -> SmallTransformer:
    """Train a small transformer by AdamW with a linear decay; seconds on one core."""
    generator = torch.Generator().manual_seed(seed)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = SmallTransformer()
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3, weight_decay=0.01)
    batches = -(-len(windows) // 8)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min(1.0, (step + 1) / 30) * (1 - 0.9 * step / (epochs * batches))
    )
    data = torch.from_numpy(windows)
    for _ in range(epochs):
        for index in torch.randperm(len(data), generator=generator).split(8):  # type: ignore[no-untyped-call]
            ids = data[index]
            logits = model(ids[:, :-1])
            loss = functional.cross_entropy(logits.reshape(-1, VOCABULARY), ids[:, 1:].reshape(-1))
            optimizer.zero_grad(set_to_none=True)
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            schedule.step()
    return model


def score_orders(model: SmallTransformer, benchmark: Ints, n_permutations: int, seed: int) -> list[ShardScores]:
    """Log-likelihoods (nats) of the published order and of shuffled ones, a shard a window."""
    examples = benchmark.tolist()
    shards = make_shards([1] * len(examples), examples_per_shard=PER_WINDOW)
    scored = []
    for shard in shards:
        orders = [
            order_of(shard, k, digest="planted", run_seed=seed, group=PermutationGroup())
            for k in range(n_permutations + 1)
        ]
        ids = torch.tensor([join_ids(examples, order, [SEPARATOR], BOS) for order in orders])
        with torch.no_grad():
            logs = functional.log_softmax(model(ids[:, :-1]).double(), dim=-1)
        values = logs.gather(2, ids[:, 1:, None]).squeeze(2).sum(dim=1)
        scored.append(ShardScores(shard.index, tuple(values.tolist()), ids.shape[1] - 1))
    return scored


def planted_scores(world: PlantedWorld, seed: int, n_permutations: int = 19) -> list[ShardScores]:
    """Draw a benchmark, train a model in this world, and score the benchmark's orders with it."""
    rng = np.random.default_rng(seed)
    benchmark = sentences(world.n_examples, rng)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        model = train(training_windows(benchmark, world, rng), world.epochs, seed)
        return score_orders(model, benchmark, n_permutations, seed)
    finally:
        torch.set_num_threads(threads)


def _stream(rows: Ints) -> Ints:
    return np.concatenate([rows, np.full((len(rows), 1), SEPARATOR)], axis=1).ravel()
