"""The config's section about features: the public network and what is made of its outputs."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from dpladder.config.section import Count, Fraction, Positive, Section
from dpladder.config.sources import Takes


class Mean(Section):
    """A noised feature mean, subtracted from train and test alike (Sun et al. 2023)."""

    epsilon: Positive = Field(
        description="epsilon of the noised mean alone, at the lineage's delta"
    )
    radius: Positive | None = Field(
        None,
        description="records are scaled into a ball of this public radius first; empty: they are "
        "all scaled to features.length",
    )


BUNDLED_TEXT = "minilm"
Pooling = Literal["mean", "cls", "last", "none", "each"]
BUNDLED_IMAGES = tuple(
    f"{stem}efficientnet_lite{size}" for size in range(3) for stem in ("", "tf_")
)
LARGEST_IMAGE = 2**27
HUGGING_FACE = "hf:"
LAST = "last"  # the network's own pooled output
Layers = Literal["auto", "last"] | tuple[str, ...]
HUB, FOLDER = "hf-hub:", "local-dir:"  # as timm calls networks that it has not by name


class Features(Section):
    """A public pretrained network turns each record into a feature vector, once."""

    model: str = Field(
        "efficientnet_lite0",
        min_length=1,
        description="for images, any timm model name (efficientnet_lite0, 1 and 2 come bundled), "
        "hf-hub:<owner/name>, or local-dir:<folder> as timm saves one; "
        "for texts, minilm (all-MiniLM-L6-v2), or hf:<name or folder> for any encoder "
        "of transformers; none: the source already holds features",
    )
    weights: str = Field(
        "bundled",
        min_length=1,
        description="bundled | pretrained | random (public ones, drawn by seed 0, for training "
        "from scratch) | path of a .safetensors, .pth, .pt or .bin checkpoint; with "
        "hf: the model's own, pretrained",
    )
    image_size: Annotated[int, Field(ge=8, le=2048)] | None = Field(
        None, description="pixels per side fed to the network; empty: the model's own"
    )
    largest_image: Annotated[int, Field(ge=64, le=2**32)] = Field(
        LARGEST_IMAGE,
        description="pixels of an image before it is scaled: a larger one counts as nothing, for a "
        "single file could fill a job's memory",
    )
    tokens: Annotated[int, Field(ge=4, le=8192)] = Field(
        64,
        description="tokens of a text that the network sees: a longer one is cut, a shorter one is "
        "filled up",
    )
    pooling: Pooling = Field(
        "mean",
        description="of a text's tokens in the last layer (others are means): their mean, the "
        "first, or the last one; "
        "none, which task: language_model sets: each token is followed by the next; each, which "
        "task: question_answering sets: each is told by itself",
    )
    mirror: bool = Field(
        False,
        description="with learner.augment: true mirrors every second view too, which pictures bear "
        "and letters do not",
    )
    layers: Layers = Field(
        "auto",
        description="depths of the network whose pooled outputs are laid side by side, several of "
        "them each at one length, record by record: auto, of images the last three stages "
        "(the last "
        "output where n0*mu is below 100), of texts the word embeddings beside the last layer; "
        "last, the network's own pooled output; "
        "or a list of names. One pass of the network keeps all of them",
    )
    until: str | None = Field(
        None,
        min_length=1,
        description="for learners that train the network (dp_finetune, hyfree_finetune, "
        "prodigy_finetune), the last layer that stays frozen: what it puts out is kept, and "
        "trained on; input: decoded pixels or a text's tokens, for training from the first layer "
        "on. centre, length and constant have no effect then",
    )
    normalize: bool = Field(False, description="scale every record to unit length")
    dtype: Literal["float16", "float32"] = Field("float16", description="how features are stored")
    batch_size: Count = Field(64, description="records per forward pass, one fixed padded shape")
    shards: Count | Literal["auto"] = Field(
        1, description="independent extraction jobs; auto: one per 20,000 declared units"
    )
    centre: Literal["auto", "public", "network", "noised", "none"] = Field(
        "auto",
        description="the mean that is taken away: of dataset.public_sample; the network's own, by "
        "its last norm; the data's, noised (features.mean, or a price that the plan "
        "chooses); auto: the best that is free, and else noised where that pays",
    )
    mean: Mean | None = Field(None, description=Mean.__doc__)
    length: Positive | Literal["as_is"] = Field(
        32.0,
        description="every record is scaled to this length, a public figure, after centring; "
        "or as_is",
    )
    typical: Positive = Field(
        32.0,
        description="with length: as_is, how long a record typically is, a public figure (32: "
        "EfficientNet-Lite0 on images)",
    )
    constant: Fraction = Field(
        0.2,
        description="share of a centred record's length that a constant feature takes: the mean "
        "had served as a bias",
    )

    @property
    def stored(self) -> str:
        """The type of what is kept: pixels and the numbers of tokens as they are, and all else as
        `dtype` says."""
        whole = "int32" if self.takes == "texts" else "uint8"
        return whole if self.until == "input" else self.dtype

    @property
    def takes(self) -> Takes:
        """What the network reads."""
        if self.model == BUNDLED_TEXT or self.model.startswith(HUGGING_FACE):
            return "texts"
        return "features" if self.model == "none" else "images"
