"""Tiny public language models with random weights, as transformers keeps them in a folder: an
encoder, and a causal one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
import transformers
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import (
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedTokenizerFast,
)

WORDS = [
    "the",
    "cat",
    "sat",
    "on",
    "a",
    "mat",
    "dog",
    "ran",
    "in",
    "fog",
    "red",
    "blue",
    "green",
    "sun",
    "rain",
    "snow",
    "sea",
    "sky",
    "long",
    "short",
]


def _small(kind: str, **own: Any) -> Callable[..., Any]:
    """One of transformers' encoders by its name there. Sizes that are its own replace others; None
    takes one out."""

    def make(**sizes: Any) -> Any:
        given = {key: value for key, value in (SPECIAL | sizes | own).items() if value is not None}
        return getattr(transformers, f"{kind}Model")(
            getattr(transformers, f"{kind}Config")(**given)
        )

    return make


SPECIAL = {"pad_token_id": 0, "bos_token_id": 2, "eos_token_id": 3}
FEW_KEYS = {"num_key_value_heads": 1, "head_dim": 8}
ENCODERS: Mapping[str, Callable[..., Any]] = {
    "bert": _small("Bert"),
    "albert": _small("Albert", embedding_size=8),  # one layer, used again
    "mpnet": _small("MPNet"),  # positions that all layers share
    "roberta": _small("Roberta", max_position_embeddings=64),
    "electra": _small("Electra", embedding_size=8),
    "distilbert": _small("DistilBert", dim=16, n_layers=2, n_heads=2, hidden_dim=32),
    "deberta": _small("Deberta"),
    "debertav2": _small("DebertaV2"),
    "modernbert": _small("ModernBert", cls_token_id=2, sep_token_id=3),
    "nomicbert": _small("NomicBert"),
    "eurobert": _small("EuroBert"),
    "ernie": _small("Ernie"),
    "bigbird": _small("BigBird"),
    "nystromformer": _small("Nystromformer", max_position_embeddings=64),
    "roformer": _small("RoFormer"),
    "longformer": _small("Longformer", attention_window=4, max_position_embeddings=64),
    "xlnet": _small(
        "XLNet", d_model=16, n_layer=2, n_head=2, d_inner=32, max_position_embeddings=None
    ),
    # whose matrices stand the other way round
    "gpt2": _small("GPT2", n_embd=16, n_layer=2, n_head=2),
    "gptneox": _small("GPTNeoX"),
    "opt": _small("OPT", ffn_dim=32, word_embed_proj_dim=16),
    "llama": _small("Llama", num_key_value_heads=1),
    "mistral": _small("Mistral", num_key_value_heads=1),
    "qwen2": _small("Qwen2", num_key_value_heads=1),
    "qwen3": _small("Qwen3", **FEW_KEYS),
    "gemma": _small("Gemma", **FEW_KEYS),
    "gemma2": _small("Gemma2", **FEW_KEYS),
    "phi": _small("Phi"),
    "falcon": _small("Falcon"),
    "bloom": _small("Bloom"),
    "mamba": _small("Mamba"),
}
"""By the names that tests give them."""


CAUSAL: Mapping[str, Callable[[dict[str, Any]], Any]] = {
    "llama": lambda size: LlamaForCausalLM(
        LlamaConfig(**size, num_key_value_heads=1, intermediate_size=32)
    ),
    "gpt2": lambda size: GPT2LMHeadModel(GPT2Config(**size)),
}


def tiny_language_model(
    folder: Path, words: list[str] = WORDS, kind: str = "bert", positions: int = 32
) -> Path:
    vocabulary = save_tokenizer(folder, words)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        ENCODERS[kind](
            vocab_size=len(vocabulary),
            hidden_size=16,
            num_hidden_layers=2,
            num_attention_heads=2,
            intermediate_size=32,
            max_position_embeddings=positions,
        ).save_pretrained(folder)
    return folder


def tiny_causal_model(folder: Path, words: list[str] = WORDS, kind: str = "llama") -> Path:
    vocabulary = save_tokenizer(folder, words)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        size = {
            "vocab_size": len(vocabulary),
            "hidden_size": 16,
            "num_hidden_layers": 2,
            "num_attention_heads": 2,
            "max_position_embeddings": 64,
            "tie_word_embeddings": True,
            "bos_token_id": 2,
            "eos_token_id": 3,
        }
        CAUSAL[kind](size).save_pretrained(folder)
    return folder


def save_tokenizer(folder: Path, words: list[str]) -> dict[str, int]:
    vocabulary = {
        word: place for place, word in enumerate(["[PAD]", "[UNK]", "[CLS]", "[SEP]", *words])
    }
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        unk_token="[UNK]",
        pad_token="[PAD]",
        cls_token="[CLS]",
        sep_token="[SEP]",
    ).save_pretrained(folder)
    return vocabulary
