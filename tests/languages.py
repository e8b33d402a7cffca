"""Tiny public language models with random weights, as transformers keeps them in a folder: an encoder, and a causal one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import (
    AlbertConfig,
    AlbertModel,
    BertConfig,
    BertModel,
    LlamaConfig,
    LlamaForCausalLM,
    MPNetConfig,
    MPNetModel,
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


ENCODERS: Mapping[str, Callable[..., Any]] = {
    "bert": lambda **sizes: BertModel(BertConfig(**sizes)),
    "albert": lambda **sizes: AlbertModel(AlbertConfig(**sizes, embedding_size=8)),  # one layer, used again
    "mpnet": lambda **sizes: MPNetModel(MPNetConfig(**sizes)),  # positions that all layers share
}


def tiny_language_model(folder: Path, words: list[str] = WORDS, kind: str = "bert") -> Path:
    vocabulary = save_tokenizer(folder, words)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        ENCODERS[kind](
            vocab_size=len(vocabulary), hidden_size=16, num_hidden_layers=2, num_attention_heads=2,
            intermediate_size=32, max_position_embeddings=32,
        ).save_pretrained(folder)  # fmt: skip
    return folder


def tiny_causal_model(folder: Path, words: list[str] = WORDS) -> Path:
    vocabulary = save_tokenizer(folder, words)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        config = LlamaConfig(
            vocab_size=len(vocabulary), hidden_size=16, num_hidden_layers=2, num_attention_heads=2,
            num_key_value_heads=1, intermediate_size=32, max_position_embeddings=64, tie_word_embeddings=True,
            bos_token_id=2, eos_token_id=3,
        )  # fmt: skip
        LlamaForCausalLM(config).save_pretrained(folder)
    return folder


def save_tokenizer(folder: Path, words: list[str]) -> dict[str, int]:
    vocabulary = {word: place for place, word in enumerate(["[PAD]", "[UNK]", "[CLS]", "[SEP]", *words])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, unk_token="[UNK]", pad_token="[PAD]", cls_token="[CLS]", sep_token="[SEP]"
    ).save_pretrained(folder)
    return vocabulary
