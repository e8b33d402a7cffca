"""What all figures share: a canvas that writes the same bytes for the same input, safe colours,
plain numbers."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from html import escape
from io import StringIO
from pathlib import Path
from typing import Any, Literal
from xml.sax.saxutils import quoteattr

from matplotlib import style
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.cm import ScalarMappable
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullLocator

from dpladder.privacy.accounting.rounding import percent
from dpladder.report.tables import short_number

# Okabe & Ito's colours, told apart with every common form of colour blindness; their yellow is too
# pale for points.
ORANGE, SKY, GREEN = "#E69F00", "#56B4E9", "#009E73"
BLUE, VERMILLION, PURPLE = "#0072B2", "#D55E00", "#CC79A7"
INK, GREY, PALE = "#222222", "#8A8A8A", "#EFEFEF"
MOST_READ = 40  # values of a figure that are read aloud
# where, how high, and the ends of a 95 % interval of that
Point = tuple[float, float, float, float]
CYCLE = (BLUE, VERMILLION, GREEN, ORANGE, PURPLE, SKY, INK)
MARKERS = "osD^vP"

STYLE: dict[Any, object] = {
    "svg.hashsalt": "dpladder",  # without it, ids in the file are random
    "svg.fonttype": "none",  # text stays text: searchable, and read aloud
    "text.parse_math": False,
    "font.size": 10,
    "axes.titlesize": 10,
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": GREY,
    "axes.labelcolor": INK,
    "text.color": INK,
    "xtick.color": GREY,
    "ytick.color": GREY,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "legend.frameon": False,
}


@contextmanager
def canvas(path: Path, height: float = 3.6, width: float = 5.2) -> Iterator[Figure]:
    """A figure, in inches, that is written to `path` as SVG when the block ends.

    The same input gives the same bytes: no date, no program's name, no random ids. The report's
    record seals them (contract: signed-bytes). What `say` was given shows where a pointer rests,
    and is read aloud.

    Args:
        path: where the SVG goes. If the block raises, nothing is written.
        height: of the whole figure.
        width: of the whole figure. At 5.2 letters can be read on a phone, which is as wide.
    """
    with style.context(["default", STYLE]):  # whatever the user's own matplotlibrc says
        figure = Figure(figsize=(width, height), layout="constrained")
        yield figure
        drawing = StringIO()
        figure.savefig(drawing, format="svg", metadata={"Date": None, "Creator": None})
        path.write_text(_with_values(drawing.getvalue(), figure), "utf-8")


def say(axes: Axes, gid: str, *texts: str | Callable[[], str]) -> None:
    """Say the values of a group of marks in words.

    Args:
        axes: that have the marks.
        gid: of their group in the file.
        *texts: of each mark, or what gives it once all is drawn.
    """
    vars(axes.get_figure(root=True)).setdefault("said", []).append((gid, texts))


def _with_values(drawing: str, figure: Figure) -> str:
    """The SVG with what was said of its marks: as a title of each, and all of it as its label."""
    every: list[str] = []
    for gid, said in vars(figure).get("said", ()):
        texts = [escape(one if isinstance(one, str) else one()) for one in said]
        every += texts
        opening = f"<g id={quoteattr(gid)}>"
        before, _, rest = drawing.partition(opening)
        inside, ending, rest = rest.partition('<g id="')
        start, *marks = re.split(r"(?<=<use )", inside)
        if len(marks) == len(texts):
            titled = (
                mark.replace("/>", f"><title>{text}</title></use>", 1)
                for mark, text in zip(marks, texts, strict=True)
            )
            inside = "".join([start, *titled])
        elif len(texts) == 1:
            inside = f"<title>{texts[0]}</title>{inside}"
        drawing = f"{before}{opening}{inside}{ending}{rest}" if inside else drawing
    label = "; ".join(every[:MOST_READ])
    return drawing.replace("<svg ", f'<svg role="img" aria-label="{label}" ', 1)


def percent_tick(value: float, _: object = None) -> str:
    """A share as matplotlib labels a tick: 0.125 is 12.5%."""
    return f"{100 * value:.4g}%"


def log_axis(axes: Axes, which: Literal["x", "y"], ticks: Iterable[float] | None = None) -> None:
    """A logarithmic axis with plain numbers.

    Call it once all is drawn, for ticks follow from the axis' limits.

    Args:
        axes: the panel.
        which: of its axes.
        ticks: values worth a tick, of which those stay that fit beside each other. By default these
            are 1, 2 and 5 of each decade, or over more than three decades 1 alone.
    """
    axis = axes.xaxis if which == "x" else axes.yaxis
    axes.set(**{f"{which}scale": "log"})
    low, high = sorted(axis.get_view_interval())
    if ticks is None:
        axis.set_major_locator(LogLocator(subs=(1.0,) if high / low > 2000 else (1.0, 2.0, 5.0)))
    else:
        axis.set_major_locator(FixedLocator(_spread_apart(sorted(ticks), (high / low) ** 0.07)))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(short_number))


def percent_axis(axis: Axis) -> None:
    """Shares as percentages."""
    axis.set_major_formatter(FuncFormatter(percent_tick))


def log_limits(values: Sequence[float], margin: float = 0.08) -> tuple[float, float]:
    """Limits of a logarithmic axis with room around the values, also around a single one.

    Args:
        values: one at least, all above 0.
        margin: room on each side, as a part of the values' range in the logarithm; a quarter of a
            value at least.
    """
    low, high = min(values), max(values)
    room = max((high / low) ** margin, 1.25)
    return low / room, high * room


def dots(axes: Axes, points: Iterable[tuple[float, float]], marker: str, **look: Any) -> None:
    """Markers alone, in one group that carries the `gid` of `look` in the file. Tests find the
    points of a figure by that id.

    Args:
        axes: the panel.
        points: pairs of x and y; an iterator will do.
        marker: one letter, as matplotlib has it.
        **look: matplotlib's own keys. An id must not stand twice in one figure.
    """
    points = list(points)
    axes.plot([x for x, _ in points], [y for _, y in points], marker, ls="", **look)
    if gid := look.get("gid"):
        say(axes, gid, *(partial(_value, axes, look.get("label", ""), *one) for one in points))


def _value(axes: Axes, label: str, x: float, y: float) -> str:
    """A point in words, as its axes write numbers."""
    said = []
    for axis, value in ((axes.yaxis, y), (axes.xaxis, x)):
        write = axis.get_major_formatter()
        shares = isinstance(write, FuncFormatter) and write(value).endswith("%")
        text = percent(value) if shares else short_number(value)
        said.append(f"{re.split(',| [(]', axis.get_label_text())[0]} {text}".strip())
    return f"{label}: {' at '.join(said)}".removeprefix(": ")


def look_of(number: int) -> tuple[str, str]:
    """The colour and the marker of one of several lines."""
    return CYCLE[number % len(CYCLE)], MARKERS[number % len(MARKERS)]


def whiskers(axes: Axes, points: Sequence[Point], **look: Any) -> None:
    """The intervals of points as bars, where there are any."""
    x, y, low, high = ([point[k] for point in points] for k in range(4))
    ends = [
        [max(sign * (end - at), 0.0) for at, end in zip(y, ends, strict=True)]
        for sign, ends in ((-1, low), (1, high))
    ]
    axes.errorbar(x, y, yerr=ends if low != high else None, **{"fmt": "none"} | look)


def draw_line(
    axes: Axes,
    points: Sequence[Point],
    label: str,
    colour: str,
    marker: str,
    gid: str,
    filled: bool = True,
) -> None:
    """Markers with their intervals, and a pale line between them.

    Args:
        axes: the panel.
        points: without intervals there are no bars.
        label: for the legend.
        colour, marker: as `look_of` gives them.
        gid: of the markers' group in the file.
        filled: whether markers are; others have a dotted line.
    """
    line = "-" if filled else ":"
    whiskers(axes, points, fmt=line, color=colour, lw=1, alpha=0.5, capsize=3)
    inside, edge = (colour, "white") if filled else ("white", colour)
    look = {"color": colour, "mfc": inside, "mec": edge, "ms": 7, "zorder": 3}
    dots(axes, [(x, y) for x, y, _, _ in points], marker, label=label, gid=gid, **look)


def score_bar(figure: Figure, axes: Axes, points: ScalarMappable, label: str) -> None:
    """A colour bar for the scores of `points`, beside their panel."""
    bar = figure.colorbar(points, ax=axes, format=percent_tick, aspect=30, pad=0.02)
    bar.set_label(label)
    bar.outline.set_visible(False)


def _spread_apart(values: Sequence[float], ratio: float) -> list[float]:
    """Those of sorted values that leave room for a label: each at least `ratio` times the one
    before."""
    values_kept: list[float] = []
    for value in values:
        if not values_kept or value >= values_kept[-1] * ratio:
            values_kept.append(value)
    return values_kept
