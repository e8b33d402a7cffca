"""A public language model in two parts: what is frozen and runs once, and what lies above the cut.

What is kept of a text is its tokens, as their numbers plus one and zero for padding. Behind a layer
it is what that layer puts out at each token, with a last channel that is one where there is a
token. So a row says by itself what of it is padding, and a row of zeros is no text.

The upper part is the network itself, with a stand-in for each layer below the cut, so it computes
what transformers would. Whether nothing else reaches it is seen on public random tokens: where the
parts do not make the whole, there is no cut.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from dpladder.config.features_sections import Pooling
from dpladder.errors import BadInput
from dpladder.network.facts import INPUT
from dpladder.wording import did_you_mean

PROBES = 8  # public random texts, by which a cut is tried
CLOSE = 1e-3  # of the largest output: float32's rounding, many layers deep


class Reached(Exception):
    """The cut: what lies above it need not run.

    Attributes:
        found: what the layer at the cut puts out.
    """

    def __init__(self, output: Tensor) -> None:
        super().__init__()
        self.found = output


class StandIn(nn.Module):
    """Stands for what ends before the cut, and for the layer at it: puts out what was kept, which
    all of them share.

    Args:
        further: how many things such a layer puts out beside it, in a tuple; None where it puts out
            a tensor.
        outputs: the one tensor, set before each pass.
    """

    def __init__(self, further: int | None, outputs: list[Tensor]) -> None:
        super().__init__()
        self.others, self.kept = further, outputs

    def forward(self, *_: Any, **__: Any) -> Any:
        """What was kept, whatever is given."""
        (output,) = self.kept
        return output if self.others is None else (output, *[None] * self.others)


def rows_of_tokens(tokens: Tensor, mask: Tensor) -> Tensor:
    """Tokens as they are kept: their numbers plus one, and zero for padding."""
    return ((tokens + 1) * (mask > 0)).int()


def lower_part(model: nn.Module, until: str) -> Callable[[Tensor, Tensor], Tensor]:
    """From tokens, and which of them are the text's, to rows at the cut.

    Args:
        model: of transformers, for texts.
        until: the last layer below the cut, or `input`.

    Raises:
        BadInput: there is no such layer, it puts out no vector for each token, or a pass does not
            reach it.
    """
    if until == INPUT:
        return rows_of_tokens
    check_layer(model, until)
    model = copy.deepcopy(model)
    model.get_submodule(until).register_forward_hook(_stop)

    def run(tokens: Tensor, mask: Tensor) -> Tensor:
        try:
            model(input_ids=tokens, attention_mask=mask)
        except Reached as cut:
            there = (mask > 0)[..., None]
            return torch.cat([cut.found.float() * there, there.float()], dim=-1)
        raise BadInput(
            f"features.until: the network does not come through {until!r}. Cut behind another "
            "layer."
        )

    return run


def _stop(layer: nn.Module, inputs: Any, output: Any) -> None:
    raise Reached(_first_tensor(output))


def _first_tensor(output: Any) -> Tensor:
    """What a layer puts out, (records, tokens, width); of several things the first."""
    one: Any = output[0] if isinstance(output, tuple) else output
    if not isinstance(one, Tensor) or one.ndim != 3:
        raise BadInput(
            "features.until: that layer puts out no vector for each token. Cut behind a whole one."
        )
    return one


def check_layer(model: nn.Module, until: str) -> None:
    """Refuse a cut behind a layer that the model has not, and say which it has.

    Raises:
        BadInput: there is no such layer.
    """
    names = [name for name, _ in model.named_modules() if name]
    if until not in names:
        blocks = [
            name for name in names if name.rpartition(".")[2].isdecimal() and name.count(".") < 3
        ]
        raise BadInput(
            f"features.until: {until!r} is no layer of this model; "
            f"{did_you_mean(until, [*names, INPUT])}it has {', '.join(blocks)}, and {INPUT!r} for "
            "a text's tokens."
        )


@dataclass(frozen=True)
class Reading:
    """How the part above a cut is called: by rows, flattened, and by what else it takes in full.

    What it takes in full has one value for each record. So no layer makes something for all records
    together.

    Attributes:
        until: the last layer below the cut, or `input`.
        shape: of one row.
        also: names of the values that are given in full.
    """

    until: str
    shape: tuple[int, ...]
    also: frozenset[str] = frozenset()

    def __call__(self, network: nn.Module, rows: Tensor) -> tuple[Any, Tensor]:
        """What the network says, and which places are tokens."""
        inputs = rows.reshape(len(rows), *self.shape)
        if self.until == INPUT:
            mask = inputs > 0
            tokens = inputs.long().sub(1).clamp(0, vocabulary(network) - 1)
            return self._call(network, tokens, mask), mask
        hidden, mask = inputs[..., :-1], inputs[..., -1] > 0
        layer: Any = network.get_submodule(self.until)
        layer.kept[:] = [hidden]
        try:
            return self._call(network, torch.zeros_like(mask, dtype=torch.long), mask), mask
        finally:
            layer.kept.clear()

    def _call(self, network: nn.Module, tokens: Tensor, mask: Tensor) -> Any:
        places = torch.arange(tokens.shape[1], device=tokens.device).expand_as(tokens)
        full = {"position_ids": places, "token_type_ids": torch.zeros_like(tokens)}
        values = {name: full[name] for name in self.also}
        return network(input_ids=tokens, attention_mask=visible_tokens(mask).long(), **values)


def visible_tokens(mask: Tensor) -> Tensor:
    """Attention, and a mean, have to look at something: at a row without tokens, at its first
    place."""
    return mask | (torch.arange(mask.shape[1], device=mask.device) == 0)


def vocabulary(network: Any) -> int:
    """How many words a language model knows."""
    size: int = network.config.get_text_config().vocab_size
    return size


def pooled_reading(reading: Reading, pooling: Pooling) -> Callable[[nn.Module, Tensor], Tensor]:
    """From a network and rows to one vector for each record: (records, width)."""

    def read(network: nn.Module, rows: Tensor) -> Tensor:
        said, mask = reading(network, rows)
        return POOLS[pooling](said.last_hidden_state, visible_tokens(mask))

    return read


def losses(reading: Reading) -> Callable[[nn.Module, Tensor], Tensor]:
    """From a causal network and rows of tokens to one number for each record, in nats a token.

    For each token but the first, take minus the log of the probability that the network gives it
    after those before it. The number is the mean of these.
    """

    def read(network: nn.Module, rows: Tensor) -> Tensor:
        said, mask = reading(network, rows)
        tokens = rows.long().sub(1).clamp(0, vocabulary(network) - 1)
        each = cross_entropy(said.logits[:, :-1].transpose(1, 2), tokens[:, 1:], reduction="none")
        counted = mask[:, 1:].to(each.dtype)
        return (each * counted).sum(1) / counted.sum(1).clamp(min=1.0)

    return read


def upper_part(model: Any, until: str, tokens: int) -> tuple[nn.Module, Reading]:
    """The part above the cut, and how it is called.

    Args:
        model: of transformers, for texts.
        until: the last layer below the cut, or `input`.
        tokens: of a record.

    Raises:
        BadInput: the rest needs more than rows and what each record takes in full.
    """
    texts, mask = probes(vocabulary(model), tokens)
    with torch.no_grad():
        rows = lower_part(model, until)(texts, mask)
        whole = _output_vectors(model(input_ids=texts, attention_mask=mask))
        upper = model if until == INPUT else _replace_below_cut(model, until, texts, mask)
        try:
            reading = _with_full_values(upper, Reading(until, tuple(rows.shape[1:])), rows)
            vectors = _output_vectors(reading(upper, rows.flatten(1))[0])
        # whatever the rest trips over, the stand-ins are not enough for it
        except Exception as error:
            raise _bypassed_cut_error(until) from error
    there = mask > 0
    if not (vectors - whole)[there].abs().max() <= CLOSE * whole[there].abs().max():
        raise _bypassed_cut_error(until)
    return upper, reading


def _bypassed_cut_error(until: str) -> BadInput:
    return BadInput(
        f"features.until: the network goes past {until!r} on another way too, so its output is not "
        f"all that the rest needs. Cut behind another layer, or at {INPUT!r}."
    )


def probes(
    words: int, tokens: int, count: int = PROBES, random: torch.Generator | None = None
) -> tuple[Tensor, Tensor]:
    """Public random texts of random lengths, and which of their tokens are theirs: (count, tokens)
    both.

    Args:
        words: of the vocabulary.
        tokens: of a text.
        count: of texts.
        random: a public generator; by default one with a fixed seed.
    """
    random = random or torch.Generator().manual_seed(0)
    texts = torch.randint(0, words, (count, tokens), generator=random)
    lengths = torch.randint(1, tokens + 1, (count, 1), generator=random)
    return texts, (torch.arange(tokens) < lengths).long()


def _output_vectors(output: Any) -> Tensor:
    """The last layer's vectors, or a causal model's logits."""
    vectors: Tensor = output.logits if "logits" in output else output.last_hidden_state
    return vectors


def _replace_below_cut(model: nn.Module, until: str, texts: Tensor, mask: Tensor) -> nn.Module:
    """The network with a stand-in for all that owns weights and ends before the cut does, the cut's
    own layer included."""
    ended: list[str] = []
    further: dict[str, int | None] = {}
    handles = []
    for name, module in model.named_modules():

        def hook(_: Any, __: Any, output: Any, name: str = name) -> None:
            ended.append(name)
            further[name] = len(output) - 1 if isinstance(output, tuple) else None
            if name == until:
                raise Reached(_first_tensor(output))

        if next(module.parameters(), None) is not None:
            handles.append(module.register_forward_hook(hook))
    try:
        model(input_ids=texts, attention_mask=mask)
    except Reached:
        pass
    finally:
        for handle in handles:
            handle.remove()
    upper, outputs = copy.deepcopy(model), list[Tensor]()
    for name in ended:
        if not any(name.startswith(f"{other}.") for other in ended):
            upper.set_submodule(name, StandIn(further[name], outputs))
    return upper


def _with_full_values(network: nn.Module, reading: Reading, rows: Tensor) -> Reading:
    """With those of the values in full that change nothing: some networks count their places in
    another way."""
    known = inspect.signature(network.forward).parameters
    plain = _output_vectors(reading(network, rows.flatten(1))[0])
    for name in ("position_ids", "token_type_ids"):
        if name in known:
            tried = Reading(reading.until, reading.shape, reading.also | {name})
            if torch.equal(_output_vectors(tried(network, rows.flatten(1))[0]), plain):
                reading = tried
    return reading


def last_block(model: nn.Module) -> frozenset[str]:
    """The names of the weights of the longest stack's last layer, and of what follows it in the
    order of names."""
    stacks = {name: part for name, part in model.named_modules() if isinstance(part, nn.ModuleList)}
    if not stacks:
        return frozenset()
    name = max(stacks, key=lambda name: len(stacks[name]))
    names = [one for one, _ in model.named_parameters()]
    last = f"{name}.{len(stacks[name]) - 1}."
    first = next((place for place, one in enumerate(names) if one.startswith(last)), len(names))
    return frozenset(names[first:])


def _mean(last: Tensor, mask: Tensor) -> Tensor:
    """The mean over the tokens of each record."""
    counted = mask[..., None].to(last.dtype)
    return (last * counted).sum(dim=1) / counted.sum(dim=1)


def _cls(last: Tensor, mask: Tensor) -> Tensor:
    """The first token's vector of each record."""
    return last[:, 0]


def _last(last: Tensor, mask: Tensor) -> Tensor:
    """The last token's vector of each record, padding left out."""
    return last[torch.arange(len(last), device=last.device), mask.sum(dim=1) - 1]


POOLS: Mapping[str, Callable[[Tensor, Tensor], Tensor]] = {
    "mean": _mean,
    "cls": _cls,
    "last": _last,
}
