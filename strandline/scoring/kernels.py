"""The fastest available multiplication of activations by weights on this processor, with the same result.

On processors where the math library behind ``torch.nn.functional.linear`` does not use the widest instructions in fp32,
oneDNN's kernel, which torch carries too, is more than twice as fast. It is used only where it exists, agrees and
measures faster; half precision goes through oneDNN anyway.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from time import perf_counter
from typing import Any

import torch
from torch.nn import functional

_CLEARLY_FASTER = 1.15
"""How many times faster the other kernel must be: a few per cent are within the noise of timing, and then the switch
would gain nothing."""


def linear(rows: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
    """rows @ weight.T + bias, by whichever kernel is faster here."""
    if _is_plain_fp32(rows) and not torch.is_grad_enabled() and onednn_is_faster():
        return _onednn(rows, weight, bias)
    return functional.linear(rows, weight, bias)


@contextmanager
def fast_linear_layers(model: Any) -> Iterator[None]:
    """Within the context, the model's linear layers use the faster kernel; afterwards they are as before."""
    layers = []
    if onednn_is_faster():
        layers = [m for m in model.modules() if type(m) is torch.nn.Linear and _is_plain_fp32(m.weight)]
    for layer in layers:
        layer.forward = partial(linear, weight=layer.weight, bias=layer.bias)  # type: ignore[method-assign]
    try:
        yield
    finally:
        for layer in layers:
            del layer.forward


@cache
def onednn_is_faster() -> bool:
    """Whether oneDNN's fp32 kernel exists, agrees with torch's and is clearly faster on this processor."""
    if not (torch._C._has_mkldnn and hasattr(torch.ops.mkldnn, "_linear_pointwise")):
        return False
    generator = torch.Generator().manual_seed(0)
    rows, weight = torch.randn(128, 512, generator=generator), torch.randn(512, 512, generator=generator)
    with torch.inference_mode():
        try:
            if not torch.allclose(_onednn(rows, weight, None), functional.linear(rows, weight), atol=1e-3, rtol=1e-4):
                return False
        except (RuntimeError, NotImplementedError):
            return False
        plain = _seconds(lambda: functional.linear(rows, weight))
        other = _seconds(lambda: _onednn(rows, weight, None))
    return other * _CLEARLY_FASTER < plain


def _is_plain_fp32(tensor: torch.Tensor) -> bool:
    return tensor.dtype == torch.float32 and tensor.device.type == "cpu"


def _onednn(rows: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
    product: torch.Tensor = torch.ops.mkldnn._linear_pointwise(rows, weight, bias, "none", [], "")
    return product


def _seconds(work: Callable[[], object], times: int = 8) -> float:
    best = float("inf")
    for _ in range(times):
        start = perf_counter()
        work()
        best = min(best, perf_counter() - start)
    return best
