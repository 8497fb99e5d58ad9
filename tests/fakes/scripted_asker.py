"""A model that is scripted instead of asked: knows releases up to a planted day, counts what it was asked."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from typing import Any

from strandline.models import ModelSpec
from strandline.probe import Answer, Label, Question, RoundReply


class ScriptedAsker:
    """Answers by a rule; fails at chosen exchanges as a dead endpoint does, or raises as a killed process would."""

    def __init__(
        self, rule: Callable[[Question], Label | None], fails_at: Sequence[int] = (), dies_at: int | None = None
    ) -> None:
        self.rule, self.fails_at, self.dies_at = rule, fails_at, dies_at
        self.calls: list[list[Question]] = []
        self.opened = self.closed = 0

    def open(self, spec: ModelSpec, negotiated: Mapping[str, Any] | None = None) -> "ScriptedAsker":
        """Stands in for the resource that opens an asker."""
        self.opened += 1
        return self

    def close(self) -> None:
        """Counted, so that a test can see that nothing stays open."""
        self.closed += 1

    def ask(self, questions: Sequence[Question]) -> RoundReply:
        """One answer a question, by the rule."""
        number = len(self.calls)
        if number == self.dies_at:
            raise RuntimeError("killed")
        self.calls.append(list(questions))
        messages = ({"role": "user", "content": f"{len(questions)} questions"},)
        if number in self.fails_at:
            lost = tuple(Answer(i, None, parse_status="error") for i in range(len(questions)))
            return RoundReply(lost, messages, status="error", reason="the server does not answer")
        answers = tuple(self._answer(i, q) for i, q in enumerate(questions))
        status = "ok" if all(a.answer for a in answers) else "partial"
        return RoundReply(answers, messages, "{}", {"prompt_tokens": 400, "completion_tokens": 90}, status)

    def _answer(self, index: int, question: Question) -> Answer:
        label = self.rule(question)
        return Answer(index, label, parse_status="ok" if label else "missing")

    def times_asked(self) -> Counter[tuple[str, str, str]]:
        """How often each question was put, failed exchanges left out."""
        heard = [call for i, call in enumerate(self.calls) if i not in self.fails_at]
        return Counter((q.kind, q.project, q.version) for call in heard for q in call)


def knows_until(cutoff: date) -> Callable[[Question], Label]:
    """A sharp cutoff: YES for real releases before it, NO for everything else."""
    return lambda q: "YES" if q.kind == "real" and q.released_on < cutoff else "NO"
