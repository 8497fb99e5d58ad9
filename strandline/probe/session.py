"""Driving a probe: plan, ask, store, stop; resumable and within a budget. Where answers come from and go is given.

A round is one exchange. It is stored as soon as it lands, and what is asked next depends on stored rounds alone, so a
killed run continues where it was. An exchange that failed in transport (status 'error') is stored for the record but
asked nothing: the session stops there, and when it is resumed the same questions are put again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from strandline.probe import PlannedRound, Question, RoundReply, StoredRound
from strandline.probe.questions import chat_messages

FAILED = "error"
"""Status of an exchange that failed in transport: it reached no model, and its questions are put again."""
PROMPT_CHARACTERS_PER_TOKEN = 3.5
"""Characters of a round's prompt that make a token, for plans: version numbers take more tokens than prose, which has
about four."""


class Policy(Protocol):
    """What chooses questions and stops; a pure function of the rounds so far."""

    @property
    def name(self) -> str:
        """The policy's name in results."""

    def next_round(self, rounds: Sequence[StoredRound]) -> PlannedRound:
        """The questions to ask next."""

    def finished(self, rounds: Sequence[StoredRound]) -> bool:
        """Whether the run is over."""

    def max_questions(self) -> int:
        """The most questions that a run can ask."""

    def max_rounds(self) -> int:
        """The most rounds that a run can take."""


@dataclass(frozen=True)
class Budget:
    """Ceilings of a run, resumptions included; None is no ceiling. Cost is in the unit of the replies' usage."""

    questions: int | None = None
    tokens: int | None = None
    cost: float | None = None


@dataclass(frozen=True)
class Spent:
    """What the stored rounds used."""

    rounds: int = 0
    questions: int = 0
    tokens: int = 0
    cost: float = 0.0


@dataclass(frozen=True)
class Plan:
    """What a run can take at most, before anything is spent. Tokens are an estimate from the next round's prompt;
    `price` is the cost of a million of them, None where it is not known."""

    policy: str
    done: Spent
    rounds_left: int
    questions_left: int
    tokens_left: int
    budget: Budget
    price: float | None = None

    def text(self) -> str:
        """The plan in a few lines."""
        ceilings = [
            f"{value:,} {name}"
            for name, value in (
                ("questions", self.budget.questions),
                ("tokens", self.budget.tokens),
                ("cost", self.budget.cost),
            )
            if value is not None
        ]
        return "\n".join(
            [
                f"policy      {self.policy}",
                f"asked       {self.done.questions:,} questions in {self.done.rounds} rounds",
                f"still       at most {self.questions_left:,} questions in {self.rounds_left} rounds",
                f"tokens      at most about {self.tokens_left:,}",
                f"cost        {self._cost()}",
                f"ceilings    {', '.join(ceilings) or 'none'}",
            ]
        )

    def _cost(self) -> str:
        if self.price is None:
            return "not known: the model's entry has no cost_per_million_tokens"
        if self.price == 0:
            return "none"
        return f"at most about {self.tokens_left * self.price / 1e6:,.2f} at {self.price:g} for a million tokens"


@dataclass(frozen=True)
class Session:
    """How a run stands: 'finished', 'budget' or 'interrupted', with the rounds that were really answered."""

    rounds: tuple[StoredRound, ...]
    status: str
    reason: str


def answered(stored: Sequence[StoredRound]) -> list[StoredRound]:
    """The exchanges that reached the model, in the order asked."""
    kept = [r for r in stored if r.reply.status != FAILED]
    return sorted(kept, key=lambda r: (r.replicate, r.number))


def spent(stored: Sequence[StoredRound]) -> Spent:
    """Rounds, questions, tokens and cost so far; failed exchanges count with what they used."""
    return Spent(
        rounds=len(stored),
        questions=sum(len(r.questions) for r in stored if r.reply.status != FAILED),
        tokens=sum(_tokens(r.reply) for r in stored),
        cost=sum(float(r.reply.usage.get("cost") or 0.0) for r in stored),
    )


def parameters_used(stored: Sequence[StoredRound]) -> Mapping[str, Any]:
    """The parameters with which the last round was really asked; empty where none is known."""
    known = [r.reply.usage.get("parameters") for r in answered(stored)]
    return next((found for found in reversed(known) if isinstance(found, Mapping)), {})


def plan(
    policy: Policy,
    stored: Sequence[StoredRound] = (),
    budget: Budget | None = None,
    *,
    reply_tokens: int = 2048,
    price: float | None = None,
) -> Plan:
    """What finishing the run can take at most.

    Args:
        policy: chooses questions and stops.
        stored: what the run has asked so far.
        budget: ceilings that the plan repeats.
        reply_tokens: the most that one reply may have; 0 where nothing is generated.
        price: cost of a million tokens, None where it is not known.
    """
    rounds = answered(stored)
    finished = policy.finished(rounds)
    rounds_left = 0 if finished else max(policy.max_rounds() - len(rounds), 0)
    per_round = 0 if finished else _expected_tokens(policy.next_round(rounds).questions, reply_tokens)
    done = spent(stored)
    left = 0 if finished else max(policy.max_questions() - done.questions, 0)
    return Plan(policy.name, done, rounds_left, left, rounds_left * per_round, budget or Budget(), price)


def run_session(
    policy: Policy,
    ask: Callable[[list[Question]], RoundReply],
    store: Callable[[StoredRound], None],
    *,
    stored: Sequence[StoredRound] = (),
    budget: Budget | None = None,
    progress: Callable[[StoredRound, Spent], None] | None = None,
) -> Session:
    """Ask round after round until the policy, the budget or a failed exchange ends it.

    Args:
        policy: chooses questions and stops.
        ask: puts one round's questions to the model and returns one answer a question.
        store: keeps a round; it has happened when this returns.
        stored: the rounds that an earlier session of the same run kept, in any order.
        budget: ceilings; a round that would pass the ceiling of questions is not asked.
        progress: told of every round and of what has been spent.

    Raises:
        ValueError: a reply without exactly one answer a question, in their order.
    """
    limits = budget or Budget()
    rounds = answered(stored)
    used = spent(stored)
    while not policy.finished(rounds):
        planned = policy.next_round(rounds)
        if obstacle := _over(limits, used, len(planned.questions)):
            return Session(tuple(rounds), "budget", obstacle)
        reply = ask(list(planned.questions))
        _check(planned, reply)
        done = StoredRound(planned.replicate, planned.number, planned.questions, reply)
        store(done)
        used = _plus(used, spent([done]))
        if progress:
            progress(done, used)
        if reply.status == FAILED:
            return Session(tuple(rounds), "interrupted", reply.reason or "the exchange failed")
        rounds.append(done)
    return Session(tuple(rounds), "finished", "the policy has stopped")


def _over(limits: Budget, used: Spent, questions: int) -> str | None:
    if limits.questions is not None and used.questions + questions > limits.questions:
        return f"the ceiling of {limits.questions:,} questions is reached"
    if limits.tokens is not None and used.tokens >= limits.tokens:
        return f"the ceiling of {limits.tokens:,} tokens is reached"
    if limits.cost is not None and used.cost >= limits.cost:
        return f"the ceiling of {limits.cost} in cost is reached"
    return None


def _plus(a: Spent, b: Spent) -> Spent:
    return Spent(a.rounds + b.rounds, a.questions + b.questions, a.tokens + b.tokens, a.cost + b.cost)


def _check(planned: PlannedRound, reply: RoundReply) -> None:
    if [a.index for a in reply.answers] != list(range(len(planned.questions))):
        raise ValueError(
            f"round {planned.number}: {len(planned.questions)} questions, but answers numbered "
            f"{[a.index for a in reply.answers]}"
        )


def _tokens(reply: RoundReply) -> int:
    return int(reply.usage.get("prompt_tokens") or 0) + int(reply.usage.get("completion_tokens") or 0)


def _expected_tokens(questions: Sequence[Question], reply_tokens: int) -> int:
    characters = sum(len(message["content"]) for message in chat_messages(questions))
    return round(characters / PROMPT_CHARACTERS_PER_TOKEN) + reply_tokens
