"""Texts that a released language model writes: three lines in a notebook, or `dpladder generate`.

    import dpladder
    model = dpladder.load("results/main/final/4/weights.safetensors")
    samples(model, "To be,", Writing(tokens=40))

What follows from released weights and a prompt alone is post-processing: it costs nothing, however
often it is done.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dpladder.errors import BadInput
from dpladder.use.model import Model

if TYPE_CHECKING:
    import torch
    from torch import Tensor

FREE_TO_PUBLISH = (
    "These are samples of a released model: post-processing, free however many are drawn, and "
    "covered by the model's own guarantee. They are no records, and may say what is not true."
)


@dataclass(frozen=True)
class Writing:
    """How texts are written.

    Attributes:
        tokens: written after the prompt, at most.
        samples: how many texts.
        temperature: 0 takes the likeliest token each time; 1 draws by the model's own
            probabilities.
        seed: public.
    """

    tokens: int = 40
    samples: int = 1
    temperature: float = 1.0
    seed: int = 0


def load_language_model(model: Model) -> tuple[Any, Any]:
    """The whole network as it was left, adapters merged, and its tokenizer.

    Raises:
        BadInput: the model is no language model, or the public network at hand is another one.
    """
    from dpladder.learn.finetune.parts import merged_tensors

    if model.tuned is None or not model.speaks:
        raise BadInput(
            f"{model.path} is no language model: it tells classes or a number. Use dpladder "
            "predict, or train one with task: language_model."
        )
    network, tokenizer = model.public_language_model()
    state = merged_tensors(*model.tuned, model.weights)
    unknown = network.load_state_dict(state, strict=False).unexpected_keys
    assert not unknown, "a model's tensors have the public network's names"
    network.tie_weights()
    return network, tokenizer


def samples(model: Model, prompt: str, writing: Writing) -> list[str]:
    """Continuations of a prompt, each with the prompt itself.

    They are drawn by a seed that everybody may know: a model that is released needs no secret. It
    is post-processing, and free.

    Args:
        model: a language model.
        prompt: one token of the model's at least.
        writing: how many, how long, how freely, and the seed.

    Returns:
        A text for each sample.

    Raises:
        BadInput: the prompt holds no token, or the model is no language model.
    """
    import torch

    network, tokenizer = load_language_model(model)
    tokenizer.no_padding()
    tokenizer.no_truncation()
    known = tokenizer.encode(prompt).ids
    if not known:
        raise BadInput("the prompt holds no token of this model. Give it a word to begin with.")
    tokens = torch.tensor([known] * writing.samples)
    random = torch.Generator().manual_seed(writing.seed)
    ends = network.generation_config.eos_token_id
    ended = torch.zeros(writing.samples, dtype=torch.bool)
    stops = torch.tensor(ends if isinstance(ends, list) else [] if ends is None else [ends])
    with torch.inference_mode():
        for _ in range(writing.tokens):
            logits = network(input_ids=tokens).logits[:, -1].double()
            new = _sample_next(logits, writing.temperature, random)
            if len(stops):
                new = torch.where(ended, stops[0], new)
                ended |= torch.isin(new, stops)
            tokens = torch.cat([tokens, new[:, None]], dim=1)
            if ended.all():
                break
    return [tokenizer.decode(row) for row in tokens.tolist()]


def _sample_next(logits: Tensor, temperature: float, random: torch.Generator) -> Tensor:
    """The next token of each text, by its logits (texts, words)."""
    import torch

    if temperature == 0.0:
        return logits.argmax(dim=1)
    return torch.multinomial(torch.softmax(logits / temperature, dim=1), 1, generator=random)[:, 0]
