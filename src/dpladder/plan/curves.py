"""Lines or curves: in how many pieces a table's numbers bend, and what goes with them.

A curve has a weight for each knot where a line has one, so noise costs it more. By public figures
alone: n0*mu, the columns and the task. The figures were measured on public tables.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from dpladder.config import Config, Project
from dpladder.config.curves import Curves, curves_of, width_of, width_of_block
from dpladder.config.dataset_sections import Column
from dpladder.config.learners import learner_of
from dpladder.config.sweep_sections import Search
from dpladder.config.task_rules import ANY_RIDGE, apply_task
from dpladder.errors import BadInput
from dpladder.search.prior import DEFAULT

CURVES = "curves"  # key of the features, and of what was chosen
RIDGE = "dp_ridge"
PIECES = (16, 8, 4)
# n0 mu for each column of numbers from which on so many pieces pay, of classes and of numbers
OF_CLASSES = {4: 20.0, 8: 250.0, 16: 2000.0}
OF_NUMBERS = {4: 5.0, 8: 80.0, 16: 250.0}
OF_RIDGE = 20.0  # n0 mu for each number of a row: its noise grows with the square of the width
OF_DESCENT = 110.0  # n0 mu for each such number below which descent on curves does better
TYPICAL = 0.6  # length of a row, less a mean where it loses one, over that of the longest
CLIP = 0.25  # of that length
STEEPEST = 0.5  # eta, where the config says nothing


def can_have_curves(config: Config) -> bool:
    """Whether a column may be a curve whose pieces nobody named, and the learner was measured.
    In research they are lines: experiments that are compared must have the same features."""
    return (
        config.features.model == "none"
        and config.mode == "release"
        and config.learner.name in (DEFAULT, RIDGE)
        and config.dataset.public_sample is None
        and any(one.knots is None for one in _curved(config))
    )


def _curved(config: Config) -> list[Column]:
    """The columns that may be curves."""
    columns = (one for one in config.dataset.columns if not isinstance(one, str))
    return [one for one in columns if one.range is not None and one.curve]


def leaves_learner(config: Config) -> bool:
    """Whether nobody named the learner of a number: least squares stands there (config/load.py)."""
    return config.task == "regression" and "name" not in config.learner.model_fields_set


def descends(config: Config, strength: float) -> bool:
    """Whether descent on curves takes the place of least squares, whose noise grows with the square
    of the width.

    Args:
        config: as its task has it.
        strength: n0 mu of the smallest total.
    """
    open_keys = not config.learner.model_fields_set and config.sweep.search.eta == ANY_RIDGE
    if not leaves_learner(config) or not open_keys or config.features.curves != "auto":
        return False
    other = with_descent(config)
    pieces = pieces_for(other, strength) if can_have_curves(other) else 0
    wide = OF_DESCENT * _width(config, PIECES[0])
    return pieces > 0 and in_form(with_pieces(other, pieces)) and strength < wide


def with_descent(config: Config) -> Config:
    """The config of a number with descent in place of least squares, at its defaults."""
    search = config.sweep.search.model_copy(update={"eta": Search().eta})
    search.model_fields_set.discard("eta")
    sweep = config.sweep.model_copy(update={"search": search})
    learner = learner_of({"name": DEFAULT})
    config = apply_task(config.model_copy(update={"learner": learner, "sweep": sweep}))
    config.learner.model_fields_set.discard("name")
    return config


def pieces_for(config: Config, strength: float) -> int:
    """The pieces that a range falls into; 0 where lines do better.

    Args:
        config: that leaves them to the plan.
        strength: n0 mu of the smallest total.
    """
    law = OF_CLASSES if config.task == "classification" else OF_NUMBERS
    columns = len(_curved(config)) + len(config.dataset.crosses)
    for pieces in PIECES:
        least = law[pieces] * columns
        if config.learner.name == RIDGE:
            least = OF_RIDGE * _width(config, pieces)
        if strength >= least:
            return pieces
    return 0


def crosses_as_text(config: Config) -> Iterator[str]:
    """How wide each cross of two columns is, and a row with all of them.

    Args:
        config: resolved.
    """
    crosses, pieces = config.dataset.crosses, int(config.features.curves or 0)
    blocks = _blocks(config, pieces)[-len(crosses) :] if crosses else ()
    for pair, block in zip(crosses, blocks, strict=True):
        yield (
            f"cross    {' x '.join(pair)}: {width_of_block(block)} products; a row has "
            f"{_width(config, pieces)} numbers"
        )


def _width(config: Config, pieces: int) -> int:
    """How many numbers a row has with curves of so many pieces."""
    of_columns = sum(map(width_of, config.dataset.columns))
    return of_columns + sum(map(width_of_block, _blocks(config, pieces)))


def _blocks(config: Config, pieces: int) -> Curves:
    return curves_of(config.dataset.columns, pieces, config.dataset.crosses)


def with_pieces(config: Config, pieces: int) -> Config:
    """The config with curves of so many pieces, in the form that was measured.

    Rows keep their lengths, so that a prediction is a sum over columns; a bias stands for a
    constant, and gradients are cut at a quarter of a typical row. Keys that the config changes
    stand, and then all of them do.
    """
    features, learner = config.features, config.learner
    features = features.model_copy(update={CURVES: pieces})
    config = config.model_copy(update={"features": features})
    if not has_form(config):
        return config
    longest, search = longest_row(config), config.sweep.search
    typical = float(f"{TYPICAL * longest:.3g}")
    mean = features.mean and features.mean.model_copy(
        update={"radius": features.mean.radius or longest}
    )
    form = {"length": "as_is", "typical": typical, "constant": 0.0, "mean": mean}
    # steps that are steeper run away: more than 2 (1 + m) over the largest curvature (Polyak 1964)
    steepest = 4 / typical**2 if config.task == "classification" else 1 / (longest**2 + 1)
    if search.eta[1] == STEEPEST and steepest < STEEPEST:
        search = search.model_copy(update={"eta": (min(search.eta[0], steepest / 1e6), steepest)})
    trained = {"clip": CLIP * typical, "bias": True}
    return config.model_copy(
        update={
            "features": features.model_copy(update=form),
            "learner": learner.model_copy(update=trained),
            "sweep": config.sweep.model_copy(update={"search": search}),
        }
    )


def has_form(config: Config) -> bool:
    """Whether rows are to keep their lengths: where each column is bounded, one is a curve or in a
    cross, and these keys are as the task has them by itself."""
    features, learner, pieces = config.features, config.learner, config.features.curves
    columns = config.dataset.columns
    if isinstance(pieces, str) or not _blocks(config, pieces):
        return False
    defaults = (32.0, 32.0, 1.0) if config.task == "classification" else ("at_most", 1.0, 0.5)
    return (
        learner.name == DEFAULT
        and (features.length, features.typical, getattr(learner, "clip", None)) == defaults
        and features.centre != "public"
        and all(isinstance(one, Column) and (one.levels or one.range) for one in columns)
    )


def in_form(config: Config) -> bool:
    """Whether `with_pieces` gave rows their form."""
    features = config.features
    return (features.length, features.constant) == ("as_is", 0.0) and bool(
        _blocks(config, int(features.curves or 0))
    )


def refuse_other_than_sums(project: Project) -> None:
    """Refuse monotone columns where a prediction is no sum over columns, so that others could turn
    what one of them says.

    Raises:
        BadInput: an experiment's rows do not keep their lengths.
    """
    for name, config in project.experiments.items():
        columns, mean = config.dataset.columns, config.features.mean
        bounded = all(isinstance(one, Column) and (one.levels or one.range) for one in columns)
        whole = mean is None or (mean.radius or 0.0) >= longest_row(config)  # no row is cut
        if config.dataset.monotone and not (in_form(config) and bounded and whole):
            first = next(iter(config.dataset.monotone))
            raise BadInput(
                f"config: {name}: columns say that {first} is monotone, and here a prediction is "
                "no sum over columns, for numbers are lines or rows are scaled. Set learner.name: "
                f"{DEFAULT} and features.curves: 8, though noise may hide what curves tell, give "
                "each column levels or a range, and leave features.length and learner.clip to the "
                "plan; or leave out monotone."
            )


def longest_row(config: Config) -> float:
    """The length that no row of bounded columns exceeds, rounded up. A number lies between -1 and
    1, of a column's levels one at most is 1, and hats add up to 1; so do a cross's products, or to
    less."""
    curved = len(_blocks(config, int(config.features.curves or 0)))
    marked = sum(isinstance(one, Column) and one.mark_missing for one in config.dataset.columns)
    longest = math.sqrt(len(config.dataset.columns) + curved + marked)
    return math.ceil(1000 * longest) / 1000
