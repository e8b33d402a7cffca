"""How each column of a table moves a final model's predictions: a panel each."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, MaxNLocator

from dpladder.learn.effects import Effect, Effects
from dpladder.privacy.accounting.rounding import SDS_OF_95_PERCENT
from dpladder.report.model_chapter import course, place_text
from dpladder.report.style import BLUE, CYCLE, GREY, INK, canvas, say
from dpladder.report.summary import Summary
from dpladder.report.tables import short_number

MOST, BESIDE = 24, 3  # panels in a figure, and in a row
LONGEST = 14  # letters of a level on an axis
LINES = 5  # classes with a curve each; of more, the first ones


def plot_curves(summary: Summary, path: Path) -> None:
    """The columns of the model of the largest total, those first that move predictions most.

    Args:
        summary: of an experiment on a table whose predictions are sums over columns.
        path: where the SVG goes.
    """
    target = summary.largest
    assert target.effects is not None, "plan/pictures.py draws it of sums over columns alone"
    title = f"{summary.experiment}, total ε = {target.total}"
    draw_effects(target.effects, title, path)


def draw_effects(effects: Effects, title: str, path: Path) -> None:
    """A panel for each column or cross, all on one scale.

    Args:
        effects: of a released model.
        title: above all panels.
        path: where the SVG goes.
    """
    each = effects.each[:MOST]
    rows = math.ceil(len(each) / BESIDE)
    what = " or ".join(effects.of[:2]) if len(effects.of) < 3 else "each class"
    with canvas(path, height=1.0 + 2.0 * rows) as figure:
        grid = [*figure.subplots(rows, BESIDE, squeeze=False).flat]
        largest = max(abs(one) for effect in each for row in effect.values for one in row)
        for place, (axes, effect) in enumerate(zip(grid, each, strict=False)):
            axes.set_title(_short(" x ".join(effect.columns), 20), fontsize=9.5)
            axes.tick_params(labelsize=9)
            if len(effect.columns) == 2:
                _draw_map(axes, effect, largest)
            else:
                axes.tick_params(labelleft=place % BESIDE == 0)  # all on one scale
                axes.axhline(0, color=GREY, lw=0.8, ls=(0, (4, 3)))
                axes.set_ylim(-1.15 * largest or -1, 1.15 * largest or 1)
                (_draw_bars if isinstance(effect.at[0][0], str) else _draw_curve)(axes, effect)
        for unused in grid[len(each) :]:
            unused.remove()
        figure.suptitle(title, x=0.01, ha="left", fontsize=10)
        figure.supylabel(f"effect on {what}, in {effects.unit}", fontsize=9)


def _draw_curve(axes: Axes, effect: Effect) -> None:
    """A line for each class, and the band of the noise around it."""
    x = [float(at) for at in effect.at[0]]
    for number, values in enumerate(effect.values[:LINES]):
        colour = CYCLE[number]
        gid = f"curve-{number}-{effect.columns[0]}"
        axes.plot(x, values, color=colour, lw=1.5, gid=gid)
        say(axes, gid, course(effect, values))
        if effect.sd:
            half = SDS_OF_95_PERCENT * np.array(effect.sd)
            low, high = np.add(values, -half), np.add(values, half)
            axes.fill_between(x, low, high, color=colour, alpha=0.18, lw=0)
    axes.xaxis.set_major_locator(MaxNLocator(3))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda at, _: f"{at:g}"))


def _draw_bars(axes: Axes, effect: Effect) -> None:
    """A bar for each level, with the interval of its noise."""
    names = [str(level) for level in effect.at[0]]
    values = effect.values[-1]
    half = [SDS_OF_95_PERCENT * one for one in effect.sd] or None
    bars = axes.bar(range(len(names)), values, color=BLUE, alpha=0.6, yerr=half, capsize=2)
    for name, bar, value in zip(names, bars, values, strict=True):
        bar.set_gid(f"bar-{effect.columns[0]}-{name}")
        say(axes, str(bar.get_gid()), f"{effect.columns[0]} {name}: {short_number(value)}")
    few = range(len(names)) if len(names) <= 6 else ()
    axes.set_xticks([*few], [_short(names[place], LONGEST) for place in few], rotation=30)


def _draw_map(axes: Axes, effect: Effect, largest: float) -> None:
    """A cross as a map: from blue, below the mean, to red."""
    first, second = effect.at
    rows = [
        effect.values[-1][start : start + len(second)]
        for start in range(0, len(first) * len(second), len(second))
    ]
    axes.imshow(
        [*zip(*rows, strict=True)],
        aspect="auto",
        origin="lower",
        cmap="RdBu_r",
        vmin=-largest,
        vmax=largest,
    )
    for names, set_ticks in ((first, axes.set_xticks), (second, axes.set_yticks)):
        ends = [0, len(names) - 1]
        texts = [names[place] for place in ends]
        set_ticks(ends, [_short(place_text(one)) for one in texts])
    axes.tick_params(labelcolor=INK)


def _short(text: str, longest: int = 8) -> str:
    return text if len(text) <= longest else f"{text[: longest - 1]}…"
