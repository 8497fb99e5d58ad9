"""How contamination is tested: the one place for what scoring and judging must agree on.

The settings are fixed before anything is scored; changing one means another test.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from strandline.contamination.benchmarks import Benchmark
from strandline.contamination.levels import as_level
from strandline.contamination.order_batches import OrderJob, Tokens
from strandline.contamination.order_check import GATE
from strandline.contamination.orderings import PermutationGroup, Shard, affordable, evenly_spaced, make_shards
from strandline.contamination.planner import Plan, expected_permutations, make_plan
from strandline.contamination.sequential import (
    BESAG_CLIFFORD_MOST,
    BESAG_CLIFFORD_STOP,
    DESIGNS,
    LookDesign,
    design_for,
    expected_draws,
)
from strandline.numeric_input import whole_number

PLANNED_CHARACTERS_PER_TOKEN = 3
"""English text has about 4 characters a token under today's tokenizers, code and tables about 3: the plan takes the
dearer of the two, before any tokenizer is loaded, so that a plan is rarely exceeded."""

FEWEST_PERMUTATIONS = 99
"""Shuffled orders without which the order check cannot reach a p-value of 0.01, its default gate."""


@dataclass(frozen=True)
class ContaminationSettings:
    """Level, design and budget of the tests.

    Attributes:
        alpha: level of the verdict, as a decimal or a fraction.
        gate: level at which the order check blocks a verdict.
        design: a name in ``DESIGNS``; empty chooses by the number of shards.
        group: which orders count as equally natural: ``all``, or ``window:w``.
        token_budget: tokens that a verdict on a clean model may be expected to take.
        examples_per_shard: examples in a shard; None gives up to 25.
        order_permutations: shuffled orders of the order check.
        run_seed: another seed draws other permutations.

    Raises:
        ValueError: a setting makes no sense, alone or with the others.
    """

    alpha: str = "0.05"
    gate: str = GATE
    design: str = ""
    group: str = "all"
    token_budget: int = 400_000
    examples_per_shard: int | None = None
    order_permutations: int = 499
    run_seed: int = 0

    def __post_init__(self) -> None:
        as_level(self.alpha)
        whole_number(self.order_permutations, "order_permutations", 1)
        whole_number(self.token_budget, "token_budget", 1)
        whole_number(self.run_seed, "run_seed", -(2**63))
        if self.examples_per_shard is not None and whole_number(self.examples_per_shard, "examples_per_shard", 0) < 2:
            raise ValueError(f"a shard holds at least two examples, not {self.examples_per_shard}")
        if Fraction(1, self.order_permutations + 1) > as_level(self.gate, "gate"):
            raise ValueError(
                f"an order check with {self.order_permutations} permutations never reaches the gate of {self.gate}: "
                "it would let every order pass"
            )
        PermutationGroup.parse(self.group)
        if self.design and self.design not in DESIGNS:
            raise ValueError(f"design {self.design!r} is not one of {', '.join(DESIGNS)}")

    def shards(self, benchmark: Benchmark) -> list[Shard]:
        """All shards of a benchmark."""
        return make_shards(benchmark.lengths(), examples_per_shard=self.examples_per_shard)

    def tested_shards(self, benchmark: Benchmark) -> list[Shard]:
        """The shards that the token budget pays for, spread evenly over the file.

        Tokens are estimated from characters, alike for every model, so that all models are tested on the same shards.
        """
        shards = self.shards(benchmark)
        per_shard = sum(benchmark.lengths()) / len(shards) / PLANNED_CHARACTERS_PER_TOKEN
        return evenly_spaced(shards, affordable(per_shard, 1 + self._passes(len(shards)), self.token_budget))

    def job(self, model: str, benchmark: Benchmark, *, weights: str, dtype: str) -> OrderJob:
        """What is to be ordered and scored: the shards that the budget pays for, under these weights."""
        return OrderJob(
            model=model,
            benchmark=benchmark.spec.benchmark,
            order_digest=benchmark.digest,
            shards=tuple(self.tested_shards(benchmark)),
            weights=weights,
            dtype=dtype,
            group=PermutationGroup.parse(self.group),
            run_seed=self.run_seed,
        )

    def estimated(self, benchmark: Benchmark) -> Plan:
        """The plan before any model or tokenizer is loaded: tokens from characters, the time not known yet."""
        shards, lengths, group = self.tested_shards(benchmark), benchmark.lengths(), PermutationGroup.parse(self.group)
        characters = sum(sum(lengths[shard.start : shard.stop]) for shard in shards)
        n_orders = [group.distinct_orders(benchmark.texts[shard.start : shard.stop]) for shard in shards]
        sizes = [shard.size for shard in shards]
        return self.plan(-(-characters // PLANNED_CHARACTERS_PER_TOKEN), sizes, n_orders)

    def planned(self, job: OrderJob, tokens: Tokens) -> Plan:
        """What a test of this job can reach and costs, at the rate that one worker was measured at."""
        n_tokens = sum(tokens.in_shard(shard) for shard in job.shards)
        n_orders = [tokens.distinct_orders(shard, job.group) for shard in job.shards]
        return self.plan(n_tokens, [shard.size for shard in job.shards], n_orders, tokens.tokens_per_second)

    def plan(
        self, n_tokens: int, sizes: Sequence[int], n_orders: Sequence[int], tokens_per_second: float | None = None
    ) -> Plan:
        """The plan for shards of these sizes, whose orders can be told apart in so many ways each."""
        return make_plan(
            n_tokens,
            len(sizes),
            max(sizes),
            alpha=self.alpha,
            design=self.look_design(len(sizes)),
            tokens_per_second=tokens_per_second,
            n_orders=n_orders,
        )

    def look_design(self, n_shards: int) -> LookDesign | None:
        """The looks for that many shards; None for one shard, which Besag and Clifford's rule tests."""
        if n_shards == 1:
            return None
        return DESIGNS[self.design] if self.design else design_for(n_shards)

    def _passes(self, n_shards: int) -> float:
        """Shuffled orders that a test of a clean model is expected to take."""
        design = self.look_design(n_shards)
        if design is None:
            return float(expected_draws(BESAG_CLIFFORD_STOP, BESAG_CLIFFORD_MOST))
        return expected_permutations(design, n_shards, self.alpha)
