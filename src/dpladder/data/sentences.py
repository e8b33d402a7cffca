"""Public language models, as functions from one text to one row.

Every text is cut or padded to one length, and attention leaves padding out, so that a row depends neither on the batch
that it was computed in nor on how long its neighbours are.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import version
from typing import Any

import numpy as np

from dpladder.config.model import Features
from dpladder.data.encoders import (
    Encoder,
    Rows,
    arithmetic,
    batch_of,
    check_independence,
    device_of,
    inference,
    streamed,
)
from dpladder.data.texts import decode
from dpladder.errors import BadInput
from dpladder.network.language import language_model_of, tokenizer_digest
from dpladder.network.public import digest

Pool = Callable[[Any, Any], Any]  # from the last layer's tokens, and which of them are the text's, to one row


def sentences(features: Features, threads: int) -> Encoder:
    device = device_of()
    model, tokenizer = language_model_of(features)
    weights = digest(model.state_dict())
    model = model.to(device).requires_grad_(False)

    def load(content: Any, number: int) -> Rows:
        assert number == 0, "texts have no views"
        return cut(tokenizer, decode(content))

    forward = streamed(_start(model, POOLS[features.pooling], device), device, threads)
    blank = np.zeros((2, features.tokens), np.int64)
    blank[1, 0] = 1  # attention has to look at something
    try:
        (row,) = forward([blank[None]])
    except Exception as error:
        raise BadInput(
            f"features.tokens: {features.model} cannot take texts of {features.tokens} tokens, or it is no encoder of texts. "
            "Try fewer, or another model."
        ) from error
    batch = batch_of(features, device)

    def draw(random: np.random.Generator) -> Rows:
        """Random tokens, of texts of random lengths."""
        tokens = random.integers(0, tokenizer.get_vocab_size(), (batch, features.tokens))
        lengths = random.integers(1, features.tokens + 1, (batch, 1))
        return np.stack([tokens, np.arange(features.tokens) < lengths], axis=1)

    check_independence(forward, draw, features.model)
    facts: dict[str, str | int] = {
        "weights_sha256": weights,
        "tokenizer_sha256": tokenizer_digest(tokenizer),
        "transform": f"{features.pooling} of {features.tokens} tokens",
        "forward_batch": batch,
        "arithmetic": arithmetic(device),
        "transformers": version("transformers"),
    }
    return Encoder(row.shape[1], batch, blank, load, forward, facts)


def cut(tokenizer: Any, text: str) -> Rows:
    """A text's tokens at the fixed length, and which of them are no padding."""
    found = tokenizer.encode(text)
    if all(
        special or not seen
        for special, seen in zip(found.special_tokens_mask, found.attention_mask, strict=True)
    ):
        raise ValueError("no token of it is known")
    return np.array([found.ids, found.attention_mask], np.int64)


def _start(model: Any, pool: Pool, device: Any) -> Callable[[Rows], Any]:
    import torch

    def start(batch: Rows) -> Any:
        arrays = torch.from_numpy(batch)
        if device.type != "cpu":
            arrays = arrays.pin_memory()
        tokens, mask = arrays.to(device, non_blocking=True).unbind(dim=1)
        with inference(device):
            return pool(model(input_ids=tokens, attention_mask=mask).last_hidden_state.float(), mask)

    return start


def _mean(last: Any, mask: Any) -> Any:
    counted = mask[..., None].float()
    return (last * counted).sum(dim=1) / counted.sum(dim=1)


def _cls(last: Any, mask: Any) -> Any:
    return last[:, 0]


def _last(last: Any, mask: Any) -> Any:
    import torch

    return last[torch.arange(len(last), device=last.device), mask.sum(dim=1) - 1]


POOLS: dict[str, Pool] = {"mean": _mean, "cls": _cls, "last": _last}
