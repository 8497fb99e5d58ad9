"""Chat with weights that run here: one greedy completion, so that a local model can be asked as an endpoint is.

Slower and less telling than reading token probabilities; there for comparison of the two ways of asking.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from resources.endpoints.chat import Exchange
from resources.endpoints.chat_payload import Completion
from resources.endpoints.exchange import EndpointError
from strandline.probe.templates import PromptError, chat_text
from strandline.probe.thoughts import open_thought
from strandline.scoring.language_model import LanguageModel
from strandline.scoring.tokens import guarded, ids_of_prompt


class LocalChat:
    """Completes chats with a loaded model that has a chat template."""

    def __init__(self, language_model: LanguageModel, release: Callable[[], None] = lambda: None) -> None:
        self._lm, self._release = language_model, release

    def complete(self, messages: Sequence[Mapping[str, str]], n_questions: int, budget: int) -> Exchange:
        """The greedy continuation of at most ``budget`` tokens. EndpointError where the model has no chat template."""
        import torch

        tokenizer, started = self._lm.tokenizer, time.monotonic()
        if not getattr(tokenizer, "chat_template", None):
            raise EndpointError(f"{self._lm.name} has no chat template: ask it with likelihood")
        said = [{**message, "content": guarded(tokenizer, message["content"])} for message in messages]
        try:
            text = chat_text(tokenizer, said, closes_thoughts=False)
        except PromptError as error:
            raise EndpointError(f"{self._lm.name}: {error}") from error
        ids = torch.tensor([ids_of_prompt(tokenizer, text)], device=self._lm.device)
        prompt = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
        room = (self._lm.context_length or budget + prompt["input_ids"].shape[1]) - prompt["input_ids"].shape[1]
        with torch.inference_mode():
            replied = self._lm.model.generate(**prompt, max_new_tokens=max(1, min(budget, room)), do_sample=False)
        new = replied[0, prompt["input_ids"].shape[1] :]
        stops = self._lm.model.generation_config.eos_token_id
        ended = int(new[-1]) in (stops if isinstance(stops, list) else [stops])
        completion = Completion(
            content=_opened(text, said) + _without_ends(tokenizer, tokenizer.decode(new, skip_special_tokens=False)),
            finish_reason="stop" if ended else "length",
            prompt_tokens=prompt["input_ids"].shape[1],
            completion_tokens=len(new),
        )
        parameters = {"max_new_tokens": budget, "do_sample": False, "dtype": self._lm.dtype}
        sent = tuple(dict(m) for m in messages)
        return Exchange(completion, sent, parameters, requests=1, seconds=time.monotonic() - started)

    def is_alive(self, budget: int) -> bool:
        """True: weights that run here are never out of reach."""
        return True

    def close(self) -> None:
        """Let go of the weights."""
        self._release()


def _opened(prompt: str, messages: Sequence[Mapping[str, str]]) -> str:
    """The mark of thought that the prompt ends in, which the reply goes on from; nothing where it ends outside."""
    tail = prompt[prompt.rfind(messages[-1]["content"]) + len(messages[-1]["content"]) :]
    thought = open_thought(tail)
    return tail[thought.start : thought.end] if thought else ""


def _without_ends(tokenizer: Any, text: str) -> str:
    """A reply without the tokens that begin, end and fill turns; marks of thought stay, though they are special too."""
    for token in {tokenizer.bos_token, tokenizer.eos_token, tokenizer.pad_token} - {None, ""}:
        text = text.replace(token, "")
    return text
