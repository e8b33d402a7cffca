"""A public language model in two parts: together they are the whole, and what cannot be cut is
refused."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from languages import tiny_causal_model, tiny_language_model

from dpladder.config.features_sections import Features
from dpladder.errors import BadInput
from dpladder.network import stack
from dpladder.network.cut import check_cut, text_network_of, upper_of
from dpladder.network.language import language_model_of

TOKENS = 12


@pytest.fixture(scope="module", name="folders")
def _folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return {
        "encoder": tiny_language_model(tmp_path_factory.mktemp("encoder")),
        "causal": tiny_causal_model(tmp_path_factory.mktemp("causal")),
    }


def asked(folder: Path, **more: object) -> Features:
    return Features(model=f"hf:{folder}", weights="pretrained", tokens=TOKENS, **more)


@pytest.mark.few(8)
@pytest.mark.parametrize("pooling", ["mean", "cls", "last"])
@pytest.mark.parametrize(
    ("kind", "until"),
    [
        ("encoder", "input"),
        ("encoder", "embeddings"),
        ("encoder", "encoder.layer.0"),
        ("causal", "input"),
        ("causal", "embed_tokens"),
        ("causal", "layers.0"),
    ],
)
def test_the_two_parts_make_the_whole_and_keep_its_names(folders, kind, until, pooling) -> None:
    features = asked(folders[kind], until=until, pooling=pooling)
    model, _ = language_model_of(features)
    texts, mask = stack.probes(24, TOKENS, 16)
    upper = upper_of(text_network_of(features))
    with torch.no_grad():
        last = model(input_ids=texts, attention_mask=mask).last_hidden_state
        rows = stack.lower_part(model, until)(texts, mask).flatten(1).float()
        found = upper.read(upper.network, upper.enter(rows))
    assert (found - stack.POOLS[pooling](last, mask)).abs().max() <= 1e-5
    names = dict(model.named_parameters())
    own = dict(upper.network.named_parameters())
    assert own.keys() < names.keys() if until != "input" else own.keys() <= names.keys()
    assert all(torch.equal(weight, names[name]) for name, weight in own.items())
    assert not any(name.startswith("pooler") for name in own)


def test_a_row_says_which_of_its_places_are_padding(folders) -> None:
    model, _ = language_model_of(asked(folders["encoder"]))
    texts, mask = torch.full((1, TOKENS), 5), torch.arange(TOKENS)[None] < 3
    tokens = stack.lower_part(model, "input")(texts, mask)
    assert tokens.tolist() == [[6, 6, 6, *[0] * (TOKENS - 3)]]
    with torch.no_grad():
        kept = stack.lower_part(model, "encoder.layer.0")(texts, mask.long())
    assert kept[0, :, -1].tolist() == [1.0] * 3 + [0.0] * (TOKENS - 3)
    assert kept[0, 3:].abs().sum() == 0


@pytest.mark.parametrize(
    ("until", "says"),
    [
        ("encoder.layer.7", "is no layer of this model; "),
        (
            "encoder.layer.0.intermediate",
            "the network goes past 'encoder.layer.0.intermediate' on another way too",
        ),
        ("encoder", "puts out no vector for each token"),
    ],
)
def test_what_cannot_be_cut_is_refused_by_the_key_that_asked_for_it(folders, until, says) -> None:
    with pytest.raises(BadInput, match=r"^features\.until: ") as caught:
        check_cut(asked(folders["encoder"], until=until))
    assert says in str(caught.value)


def test_rows_of_any_numbers_go_through(folders) -> None:
    """A damaged row is one bad record, and no end of a job."""
    upper = upper_of(text_network_of(asked(folders["encoder"], until="input")))
    rows = torch.tensor([0.0, -1e30, 1e30, float("inf"), float("nan")])[:, None].expand(-1, TOKENS)
    with torch.no_grad():
        assert upper.read(upper.network, rows).shape == (5, 16)
