"""Public language models, as functions from one text to one row.

Every text is cut or padded to one length, and attention leaves padding out. So a row depends
neither on the batch that it was computed in nor on how long its neighbours are.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from importlib.metadata import version
from typing import Any

import numpy as np

from dpladder.config.depths import EMBEDDINGS, LAYER, candidates
from dpladder.config.features_sections import LAST, Features
from dpladder.data.depths import to_json
from dpladder.data.encoders import (
    Encoder,
    Rows,
    arithmetic,
    batch_of,
    batch_stream,
    check_independence,
    device_of,
)
from dpladder.data.spans import FEWEST_TOKENS, pieces
from dpladder.data.texts import decode
from dpladder.errors import BadInput
from dpladder.network.language import language_model_of, tokenizer_digest
from dpladder.network.public import digest

Run = Callable[..., Any]  # from tokens, which of them are the text's, and marks if any, to rows


def sentences(features: Features, threads: int) -> Encoder:
    """A network for texts as an encoder: pooled depths, activations at a cut, or tokens alone.

    Args:
        features: the network, what of it is kept, and how many tokens a text has.
        threads: that one pass may use.

    Raises:
        BadInput: the model is no encoder of texts, or takes fewer tokens.
        Refused: a row depends on the rest of its batch on this machine.
    """
    device = device_of()
    model, tokenizer = language_model_of(features)
    weights = digest(model.state_dict())
    model = model.to(device).requires_grad_(False)

    least = FEWEST_TOKENS if features.pooling == "none" else 1

    def load(content: Any, number: int) -> Rows:
        tokens = tokenize_text(tokenizer, decode(content), number)
        if tokens[1].sum() < least:
            raise ValueError("too short for one token to follow another")
        return tokens

    names = () if features.until is not None else depths_of(model)
    run = _run(model, features, names)

    def rows_of(batch: Any) -> Any:
        return run(*batch.unbind(dim=1)).flatten(1)

    forward = batch_stream(rows_of, device, threads)
    blank = np.zeros((2, features.tokens), np.int64)
    blank[1, 0] = 1  # attention has to look at something
    try:
        (row,) = forward([blank[None]])
    except BadInput:
        raise
    except Exception as error:
        raise BadInput(
            f"features.tokens: {features.model} cannot take texts of {features.tokens} tokens, or "
            "it is no encoder of texts. Try fewer, or another model."
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
    if names:
        facts["depths"] = to_json(tuple((name, row.shape[1] // len(names)) for name in names))
    if features.until is not None:
        each = [] if row.shape[1] == features.tokens else [row.shape[1] // features.tokens]
        facts |= {
            "shape": json.dumps([features.tokens, *each]),
            "transform": f"{features.tokens} tokens",
        }
    return Encoder(row.shape[1], batch, blank, load, forward, facts)


def tokenize_text(tokenizer: Any, text: str, span: int = 0) -> Rows:
    """A text's tokens at the fixed length, and which of them are no padding: int64 (2, tokens).

    Args:
        tokenizer: public, which cuts and pads.
        text: one record's.
        span: which part of the text; 0 is its beginning.

    Raises:
        ValueError: no token of it is known. The caller makes that a bad record.
    """
    span_text = pieces(tokenizer, text)[span]
    if all(
        special or not seen
        for special, seen in zip(
            span_text.special_tokens_mask, span_text.attention_mask, strict=True
        )
    ):
        raise ValueError("no token of it is known")
    return np.array([span_text.ids, span_text.attention_mask], np.int64)


def depths_of(model: Any) -> tuple[str, ...]:
    """The depths that are kept: the word embeddings, as they enter the first layer, the layers
    below the last one, and the pooled output itself."""
    count = int(getattr(model.config.get_text_config(), "num_hidden_layers", 0))
    layers = candidates([f"{LAYER}{layer}" for layer in range(1, count + 1)])
    return (EMBEDDINGS, *layers[:-1], LAST)


def _run(model: Any, features: Features, names: Sequence[str]) -> Run:
    """From tokens to rows, as `features` asks for them. Those are pooled depths side by side, or
    what the network puts out at a cut."""
    import torch

    from dpladder.network.stack import POOLS, lower_part

    if features.until is not None:
        return lower_part(model, features.until)

    def run(tokens: Any, mask: Any) -> Any:
        output = model(input_ids=tokens, attention_mask=mask, output_hidden_states=True)
        hidden = [output.hidden_states[place_of(name)] for name in names[:-1]]
        last = POOLS[features.pooling](output.last_hidden_state.float(), mask)
        return torch.cat([*(POOLS["mean"](one.float(), mask) for one in hidden), last], dim=1)

    return run


def place_of(name: str) -> int:
    """The place of a depth among a network's hidden states, which begin with the embeddings."""
    return 0 if name == EMBEDDINGS else int(name.removeprefix(LAYER))
