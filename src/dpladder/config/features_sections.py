"""The config's section about features: the public network and what is made of its outputs."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from dpladder.config.sources import Takes
from dpladder.section import Count, Epsilon, Fraction, NeutralAt, OnlyFor, Positive, Section


class Mean(Section):
    """A noised feature mean, subtracted from train and test alike (Sun et al. 2023)."""

    epsilon: Epsilon
    """Epsilon of the noised mean. Example: 0.1"""
    radius: Positive | None = None
    """Radius of a public ball that records are scaled into first. Empty: all are scaled to
    features.length. Example: 32"""


BUNDLED_TEXT = "minilm"
Pooling = Literal["mean", "cls", "last", "none"]
BUNDLED_IMAGES = tuple(
    f"{stem}efficientnet_lite{size}" for size in range(3) for stem in ("", "tf_")
)
# pixels: some 400 MB of memory once decoded
LARGEST_IMAGE = 2**27
HUGGING_FACE = "hf:"
LAST = "last"  # the network's own pooled output
Layers = Literal["auto", "last"] | tuple[str, ...]
HUB, FOLDER = "hf-hub:", "local-dir:"  # as timm calls networks that it has not by name


Length = Positive | Literal["as_is", "at_most"]
Pieces = Annotated[int, Field(ge=0, le=256)]
PixelsPerSide = Annotated[int, Field(ge=8, le=2048)]
OF_IMAGES = OnlyFor("images (features.model)", lambda c: c.features.takes == "images")
OF_TEXTS = OnlyFor("texts (features.model)", lambda c: c.features.takes == "texts")
OF_NETWORKS = OnlyFor("networks (features.model)", lambda c: c.features.takes != "features")
OF_TABLES_ALONE = OnlyFor(
    "features that a source holds (features.model: none)", lambda c: c.features.takes == "features"
)
OF_POOLED = OnlyFor(
    # the other tasks keep each token, whatever features.until says
    "pooled features (no features.until; task: classification or regression)",
    lambda c: c.features.until is None and c.task in ("classification", "regression"),
)


def row_length(length: Length, typical: float) -> float:
    """The public length of a whole row: a typical one where rows keep theirs."""
    return typical if isinstance(length, str) else length


class Features(Section):
    """A public pretrained network turns each record into a feature vector, once. Features are
    pooled, but with features.until or task: language_model."""

    model: str = Field("efficientnet_lite0", min_length=1)
    """The public network. Images: a timm model, hf-hub:<owner/name>, or local-dir:<folder> as timm
    saves it. Texts: minilm (all-MiniLM-L6-v2), or hf:<name or folder> of transformers. none: the
    source holds features. efficientnet_lite0, 1 and 2 are bundled."""
    weights: Annotated[str, Field(min_length=1), OF_NETWORKS] = "bundled"
    """Its weights: bundled, pretrained (also of hf: and hf-hub:), or random (public seed 0, to
    train from scratch). Or a .safetensors, .pth, .pt or .bin."""
    image_size: Annotated[PixelsPerSide | None, OF_IMAGES] = None
    """Pixels per side that the network sees. Empty: the model's own. Example: 224"""
    largest_image: Annotated[int, Field(ge=64, le=2**32), OF_IMAGES] = LARGEST_IMAGE
    """Most pixels of an image before it is scaled; a larger image counts as nothing."""
    tokens: Annotated[int, Field(ge=4, le=8192), OF_TEXTS] = 64
    """Tokens that the network sees. Longer texts are cut, shorter ones filled up."""
    pooling: Annotated[Pooling, OF_TEXTS] = "mean"
    """What of a text's last layer is kept. mean, cls, last: the mean, the first or the last token.
    none: every token (set by task: language_model)."""
    mirror: Annotated[bool, OF_IMAGES] = False
    """Whether learner.augment mirrors every second view. Pictures bear that, letters do not."""
    layers: Annotated[Layers, OF_NETWORKS, OF_POOLED] = "auto"
    """Depths whose pooled outputs stand side by side, each scaled to one length. auto: of images
    the last three stages, or last where n0*mu is below 100; of texts the word embeddings and the
    last layer. last: the network's own pooled output. Or names, such as [blocks.4, last]."""
    until: Annotated[str | None, Field(min_length=1), OF_NETWORKS] = None
    """The last frozen layer, for learners that train the network. input: none is, training begins
    at pixels or tokens. Empty: the network is not trained. Example: blocks.5"""
    normalize: Annotated[bool, OF_POOLED] = False
    """Whether every record is scaled to unit length."""
    dtype: Literal["float16", "float32"] = "float16"
    """The number type that features are stored in."""
    batch_size: Annotated[Count, OF_NETWORKS] = 64
    """Records per forward pass, padded to one fixed shape."""
    shards: Count | Literal["auto"] = 1
    """Number of extraction jobs. auto: one for every 20,000 declared units."""
    centre: Annotated[Literal["auto", "public", "network", "noised", "none"], OF_POOLED] = "auto"
    """Whose mean is taken away. public: dataset.public_sample's. network: its own, by its last
    norm. noised: the data's, at features.mean or a price that the plan chooses. auto: the best free
    one, else noised where that pays."""
    mean: Annotated[Mean | None, OF_POOLED] = None
    length: Annotated[Length, OF_POOLED] = 32.0
    """Public length that records are scaled to after centring. as_is: they keep theirs. at_most:
    longer ones are cut to typical, before centring."""
    typical: Positive = 32.0
    """With length: as_is or at_most, a record's typical length, a public figure. 32 is
    EfficientNet-Lite0's. Columns of dataset.target are cut to 1 without it."""
    constant: Annotated[Fraction, OF_POOLED] = 0.2
    """Share of a centred record's length that a constant feature takes."""

    curves: Annotated[
        Pieces | Literal["auto"], NeutralAt(0), NeutralAt("auto"), OF_TABLES_ALONE
    ] = "auto"
    """Equal pieces of each range, between which a column's line may bend. 0: lines. auto: as many
    as n0*mu can pay for."""

    @property
    def stored(self) -> str:
        """The type of what is kept: pixels and the numbers of tokens as they are, and all else as
        `dtype` says."""
        whole = "int32" if self.takes == "texts" else "uint8"
        return whole if self.until == "input" else self.dtype

    @property
    def takes(self) -> Takes:
        """What the network reads, by its name alone: nothing is loaded to tell."""
        if self.model == BUNDLED_TEXT or self.model.startswith(HUGGING_FACE):
            return "texts"
        return "features" if self.model == "none" else "images"
