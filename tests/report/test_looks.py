"""The demo's, a clinic's and a table's page look as somebody approved them, in a real browser.

A picture of 1,280 pixels is brought down to a cell for each 16, in grey. Letters are matplotlib's
DejaVu, which every machine has. So another browser's rounding moves little, and a block that
is missing, moved or of another colour moves much. `make approve` renews the pictures: look at them.
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import matplotlib
import numpy as np
import pandas as pd
import pytest
from approval import FOLDER
from browser import browse, browsed
from counted import figures_from
from made_up import EFFECTS, statement
from made_up import summary as made_up
from PIL import Image

from dpladder.privacy.statement.documents import SealedStatement
from dpladder.report import page, tables
from dpladder.report.budget_figure import plot_budget
from dpladder.report.curves_figure import plot_curves
from dpladder.report.ladder_figure import plot_ladder
from dpladder.report.reliability_figure import plot_reliability
from dpladder.report.summary import Summary
from dpladder.section import from_document

CELL, WIDTH, HEIGHT = 16, 1280, 3600
MEAN, MOST, FEW = 2.0, 40.0, 0.01  # of 255: the mean difference, and one that few cells may have
FONTS = Path(matplotlib.get_data_path(), "fonts", "ttf")
PLAIN, BOLD = ((FONTS / f"DejaVuSans{name}.ttf").as_uri() for name in ("", "-Bold"))
LETTERS = f"""<style>
@font-face {{ font-family: same; src: url({PLAIN}) }}
@font-face {{ font-family: same; font-weight: 600 900; src: url({BOLD}) }}
* {{ font-family: same !important }}
</style></head>"""


def demo() -> dict:
    return made_up(classes=10)


def clinic() -> dict:
    """Findings of which noise hides none."""
    counts = np.array(
        [[[450.0, 20.0], [40.0, 80.0]], [[470.0, 10.0], [30.0, 60.0]], [[400.0, 50.0], [9.0, 90.0]]]
    )
    names = ("edema", "mass", "effusion")
    return with_test(figures_from(names, "findings", by_finding=(counts, 2.0)), findings=True)


def table() -> dict:
    """Two classes, how sure the model is of them, and curves."""
    confidence = np.zeros((10, 2, 2))
    for place, right in ((5, 55.0), (6, 130.0), (7, 150.0), (8, 255.0), (9, 285.0)):
        confidence[place] = [[right / 2, right / 2], [20.0, 25.0]]
    bought = {"by_class": (np.array([[500.0, 90.0], [375.0, 35.0]]), 3.0)}
    bought |= {"confidence": (confidence, 3.0)}
    one = with_test(figures_from(("home", "readmitted"), **bought), classes=2)
    one["targets"][0]["effects"] = asdict(EFFECTS)
    return one


def with_test(test, **changes) -> dict:
    one = made_up(**changes)
    one["targets"] = [target | {"test": asdict(test)} for target in one["targets"]]
    return one


def page_of(document: dict, folder: Path) -> str:
    """As the workflow writes it, with every picture that there is anything for."""
    sealed = from_document(SealedStatement, statement(document) | {"id": "ab" * 32, "seal": ""})
    summary = from_document(Summary, document)
    figures = {"ladder": (page.TUNING, plot_ladder, summary)}
    figures["budget"] = (page.CHARGES, plot_budget, sealed)
    if summary.largest.effects:
        figures["curves"] = (page.COLUMNS, plot_curves, summary)
    if summary.largest.test.reliability:
        figures["reliability"] = (page.QUALITY, plot_reliability, summary)
    names = ("finals", "figures", "classes", "findings")
    on_page = [
        page.OnPage(name, "", page.QUALITY, getattr(tables, f"{name}_table")(summary))
        for name in names
    ]
    for name, (chapter, draw, material) in figures.items():
        draw(material, folder / f"{name}.svg")
        on_page.append(page.OnPage(name, "", chapter, pd.DataFrame(), folder / f"{name}.svg"))
    training = tables.training_table(summary)
    on_page.append(page.OnPage("training", "", page.TUNING, training, folded=True))
    on_page.append(page.OnPage("spends", "", page.CHARGES, tables.spends_table(sealed)))
    path = folder / "report.html"
    about = {"main": {"what it does": "tells classes apart", "private data": "a table"}}
    page.write_page(sealed, [summary], on_page, path, about=about)
    return path.read_text("utf-8")


def seen(content: str, folder: Path) -> Image.Image:
    """The page as a browser shows it, a cell for each 16 pixels."""
    path, picture = folder / "lettered.html", folder / "picture.png"
    path.write_text(content.replace("</head>", LETTERS), "utf-8")
    size = f"--window-size={WIDTH},{HEIGHT}"
    browse(folder, "--hide-scrollbars", size, f"--screenshot={picture}", path.as_uri())
    with Image.open(picture) as image:
        return image.convert("L").resize(
            (WIDTH // CELL, image.height // CELL), Image.Resampling.BOX
        )


def differ(image: Image.Image, other: Image.Image) -> bool:
    """Whether a person would see a difference at a glance."""
    height = min(image.height, other.height)  # a browser may keep some for its own bars
    apart = np.abs(np.asarray(image, float)[: height - 8] - np.asarray(other, float)[: height - 8])
    return bool(apart.mean() > MEAN or (apart > MOST).mean() > FEW)


@pytest.mark.ci
@browsed
@pytest.mark.parametrize("document", [demo, clinic, table])
def test_a_page_looks_as_it_was_approved(document, tmp_path, request, approved):
    image = seen(page_of(document(), tmp_path), tmp_path)
    path = FOLDER / "looks" / f"{document.__name__}.png"
    if request.config.getoption("approve"):
        image.save(path, optimize=True)
    with Image.open(path) as known:
        assert not differ(image, known), "run `make approve` and look at the picture"


@pytest.mark.ci
@browsed
def test_a_block_that_is_missing_or_moved_is_seen_and_a_pixel_is_not(tmp_path):
    content = page_of(demo(), tmp_path)
    image = seen(content, tmp_path)

    def changed(style: str) -> bool:
        return differ(image, seen(content.replace("</style>", f"{style}</style>", 1), tmp_path))

    assert changed(".tiles { display: none }")
    assert changed("nav { grid-column: 2 }")
    assert not changed("h1 { padding-bottom: 2px }")
