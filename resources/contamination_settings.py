"""How contamination is tested: one place for what both scoring and judging must agree on."""

from fractions import Fraction

import dagster as dg
from pydantic import Field

from strandline.contamination.benchmarks import Benchmark
from strandline.contamination.levels import as_level
from strandline.contamination.order_check import GATE
from strandline.contamination.orderings import Group, Shard, affordable, make_shards, spread
from strandline.contamination.planner import Plan, expected_permutations, make_plan
from strandline.contamination.sequential import BESAG_CLIFFORD_MOST as MOST
from strandline.contamination.sequential import BESAG_CLIFFORD_STOP as STOP
from strandline.contamination.sequential import DESIGNS, LookDesign, design_for, expected_draws

CHARACTERS_PER_TOKEN = 3


class ContaminationResource(dg.ConfigurableResource):
    """Level, design and budget of the tests. They are fixed before scoring; changing them means another test."""

    alpha: str = Field(default="0.05", description="Level of the verdict, as a decimal or a fraction.")
    gate: str = Field(default=GATE, description="Level at which the order check blocks a verdict.")
    design: str = Field(
        default="", description=f"One of {', '.join(DESIGNS)}. Empty: three looks, later ones for few shards."
    )
    group: str = Field(default="all", description="Which orders count as equally natural: all, or window:w.")
    token_budget: int = Field(
        default=400_000,
        ge=1,
        description="Tokens that a verdict on a clean model may be expected to take; fewer shards are tested where the "
        "whole benchmark would take more.",
    )
    examples_per_shard: int | None = Field(default=None, description="Examples in a shard. None: up to 25.")
    order_permutations: int = Field(default=499, ge=99, description="Shuffled orders of the order check.")
    run_seed: int = Field(default=0, description="Another seed draws other permutations.")

    def checked(self) -> "ContaminationResource":
        """The settings, after ValueError for one that makes no sense."""
        as_level(self.alpha)
        if Fraction(1, self.order_permutations + 1) > as_level(self.gate, "gate"):
            raise ValueError(
                f"an order check with {self.order_permutations} permutations never reaches the gate of {self.gate}: "
                "it would let every order pass"
            )
        Group.parse(self.group)
        if self.design and self.design not in DESIGNS:
            raise ValueError(f"design {self.design!r} is not one of {', '.join(DESIGNS)}")
        return self

    def shards(self, benchmark: Benchmark) -> list[Shard]:
        """All shards of a benchmark."""
        return make_shards(benchmark.lengths(), examples_per_shard=self.examples_per_shard)

    def tested_shards(self, benchmark: Benchmark) -> list[Shard]:
        """The shards that the token budget pays for, spread evenly over the file.

        Tokens are estimated as characters / 3, before any tokenizer is loaded and alike for every model, so that all
        models are tested on the same shards.
        """
        shards = self.shards(benchmark)
        lengths = benchmark.lengths()
        per_shard = sum(lengths) / len(shards) / CHARACTERS_PER_TOKEN
        return spread(shards, affordable(per_shard, 1 + self._passes(len(shards)), self.token_budget))

    def estimated(self, benchmark: Benchmark) -> Plan:
        """The plan before any model or tokenizer is loaded: tokens as characters / 3, the time not known yet."""
        shards, lengths = self.tested_shards(benchmark), benchmark.lengths()
        characters = sum(sum(lengths[shard.start : shard.stop]) for shard in shards)
        return make_plan(
            -(-characters // CHARACTERS_PER_TOKEN),
            len(shards),
            max(shard.size for shard in shards),
            alpha=self.alpha,
            design=self.look_design(len(shards)),
            n_orders=min(Group.parse(self.group).n_orders(shard.size) for shard in shards),
        )

    def look_design(self, n_shards: int) -> LookDesign | None:
        """The looks for that many shards; None for one shard, which Besag and Clifford's rule tests."""
        if n_shards == 1:
            return None
        return DESIGNS[self.design] if self.design else design_for(n_shards)

    def _passes(self, n_shards: int) -> float:
        design = self.look_design(n_shards)
        if design is None:
            return float(expected_draws(STOP, MOST))
        return expected_permutations(design, n_shards, self.alpha)
