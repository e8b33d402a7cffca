"""Answers in a text: the loss and its gradients against plain autograd, one record at a time; when
a record counts as right; and what the network is not given."""

from __future__ import annotations

import math
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
import torch
from counted import cells_of, right_of
from languages import tiny_language_model
from support import Seeded
from torch import Tensor

from dpladder.config.features_sections import Features
from dpladder.config.learner_sections import Lora
from dpladder.config.model import Resources
from dpladder.learn.data import Data
from dpladder.learn.finetune import clipping, parts, predict, probing
from dpladder.learn.finetune import owners as tensors
from dpladder.learn.finetune import shapes as queries
from dpladder.learn.interface import Constants, Hyper
from dpladder.learn.measures.tables import MeasuredModel, RightAndWrong
from dpladder.learn.records import load
from dpladder.learn.scorers import AnswerScorer
from dpladder.learn.trainings import declare, scorer_of, train
from dpladder.methods.dp_finetune import FineTune
from dpladder.network import answers
from dpladder.network.cut import text_network_of, upper_of
from dpladder.network.marks import IN_CONTEXT, MOST_ANSWERS, answer_marks, first_bit, last_bit
from dpladder.privacy.release.meter import Meter
from dpladder_papers.methods.hyfree_finetune import HyperparameterFreeTuning

TOKENS, RECORDS = 16, 9
CPU, ONE = torch.device("cpu"), Resources(threads=1)
TRAINS = ("norm_and_bias", "last_block", "all", "lora")


@cache
def constants_of(kind: str) -> Constants:
    with TemporaryDirectory() as name:
        made = tiny_language_model(Path(name), kind=kind)
        features = Features(
            model=f"hf:{made}", weights="pretrained", tokens=TOKENS, until="input", pooling="each"
        )
        network = text_network_of(features)
        upper_of(network)  # kept for as long as the process lives
    assert network.shape == (TOKENS, 2)
    return Constants(40, 1, math.prod(network.shape), network=network)


def rows_of(constants: Constants, count: int = RECORDS) -> Tensor:
    assert constants.network is not None
    return upper_of(constants.network).draw(torch.Generator().manual_seed(1), count)


def learner_of(trains: str, **other: object) -> FineTune:
    return FineTune(
        trains=trains, init="random", bias=True, lora=Lora(rank=2, freeze="none"), **other
    )


def moved(learner: FineTune, constants: Constants, size: float = 0.02) -> Tensor:
    first = parts.start(learner, constants, parts.tuned_model(learner, constants))
    drawn = torch.randn(len(first), generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    return (first + size * drawn).float()


def plainly(constants: Constants, module: parts.AboveCut, row: Tensor) -> Tensor:
    """A record's loss by its own tokens alone, without padding, from what transformers say."""
    tokens, marks = row.view(TOKENS, 2).T
    here = tokens > 0
    found = module.network(
        input_ids=tokens[here].long()[None] - 1,
        attention_mask=torch.ones(1, int(here.sum()), dtype=torch.long),
    ).last_hidden_state[0]
    logits = found @ module.head.weight[:, :-1].T + module.head.weight[:, -1]
    held = [int(mark) for mark in marks[here]]
    able = [place for place, mark in enumerate(held) if place == 0 or mark & IN_CONTEXT]
    total = torch.zeros((), dtype=row.dtype)
    for end, bit in ((0, first_bit(0)), (1, last_bit(0))):
        [place] = [place for place, mark in enumerate(held) if mark >> bit & 1] or [0]
        told = torch.stack([logits[one, end] for one in able]).log_softmax(0)
        total = total - told[able.index(place)] / 2
    return total


@pytest.mark.parametrize("trains", TRAINS)
@pytest.mark.parametrize("kind", ["bert", "roberta"])
def test_gradients_and_norms_are_those_of_plain_autograd_one_record_at_a_time(
    kind: str, trains: str
) -> None:
    constants, learner = constants_of(kind), learner_of(trains)
    rows, labels = rows_of(constants).double(), torch.zeros(RECORDS, dtype=torch.long)
    rows[2].view(TOKENS, 2)[:, 1] = 0.0  # a record without a context, and so without an answer
    tuned = parts.tuned_model(learner, constants).copy_to(CPU, torch.float64)
    owners = tensors.owners_of(tuned, constants.dimension)
    tuned.set_difference(moved(learner, constants).double())
    found = clipping.gradients(owners, rows[:, None], labels)
    norms = torch.stack([part.squares() for _, part in found]).sum(0).sqrt()
    module = tuned.module
    trained = [weight.requires_grad_() for weight in tuned.trained.values()]
    expected = []
    for row in rows:
        loss = plainly(constants, module, row)
        assert torch.allclose(module(row[None])[0], loss, rtol=1e-9, atol=1e-9)
        each = torch.autograd.grad(loss, trained, materialize_grads=True)
        expected.append(torch.cat([part.flatten() for part in each]))
    wanted = torch.stack(expected)
    assert wanted.norm(dim=1)[torch.arange(RECORDS) != 2].min() > 1e-3
    assert torch.allclose(norms, wanted.norm(dim=1), rtol=1e-8, atol=1e-8)
    for record in range(RECORDS):
        alone = torch.zeros(RECORDS, dtype=torch.float64)
        alone[record] = 1.0
        apart = probing._sum_in_vector_order(owners, found, alone) - wanted[record]
        # each record adds its own gradient and nothing else
        assert apart.norm() <= 1e-8 * (1.0 + wanted[record].norm())


@pytest.mark.parametrize("trains", TRAINS)
def test_no_record_adds_more_than_the_bound_whatever_its_tokens_and_marks_are(trains: str) -> None:
    constants, learner = constants_of("bert"), learner_of(trains)
    weights, rows = moved(learner, constants, 0.1), rows_of(constants).numpy()
    tuned, bound = parts.tuned_model(learner, constants).copy_to(CPU), 1e-4
    owners = tensors.owners_of(tuned, constants.dimension)

    def summed(features: np.ndarray) -> Tensor:
        data = Data(features, np.zeros(len(features), np.int64))
        held = load(data, constants, CPU, chunk=4, memory_mb=1000)
        return clipping.clipped_sum(owners, held, weights[None].double(), bound, held.chunks())[0]

    others = summed(rows[1:])
    for value in (np.nan, 1e10, -1.0):
        for channel in (0, 1):
            odd = rows.copy()
            odd[0].reshape(TOKENS, 2)[:, channel] = value
            assert (summed(odd) - others).norm() <= bound * (1 + 1e-5)
    assert (summed(rows) - others).norm() > 0.5 * bound


def test_the_network_sees_no_marks_and_the_loss_no_token_outside_the_context() -> None:
    constants, learner = constants_of("bert"), learner_of("all")
    module = parts.tuned_model(learner, constants).copy_to(CPU).module
    module.head.weight.data.normal_(generator=torch.Generator().manual_seed(0))
    rows = rows_of(constants)
    blank = rows.clone().view(RECORDS, TOKENS, 2)
    blank[..., 1] = 0.0
    logits = module.head(module.seen_by_head(rows))
    assert torch.equal(module.head(module.seen_by_head(blank.flatten(1))), logits)
    marks = rows.view(RECORDS, TOKENS, 2)[..., 1].long()
    outside = (marks & IN_CONTEXT == 0) & (torch.arange(TOKENS) > 0)
    moved_there = logits + 100.0 * outside[..., None] * torch.randn(logits.shape)
    assert outside.any(dim=1).all()
    assert torch.equal(answers.losses(moved_there, rows), answers.losses(logits, rows))
    assert torch.equal(answers.right(moved_there, rows), answers.right(logits, rows))


def row_of(context: tuple[int, int], spans: list[tuple[int, int]], tokens: int = 40) -> Tensor:
    inside = [context[0] <= place < context[1] for place in range(tokens)]
    marks = answer_marks(inside, spans)
    return torch.tensor([[place + 1, mark] for place, mark in enumerate(marks)]).flatten()[None]


def told(first: dict[int, float], last: dict[int, float], tokens: int = 40) -> Tensor:
    found = torch.zeros(1, tokens, 2)
    for end, given in enumerate((first, last)):
        for place, logit in given.items():
            found[0, place, end] = logit
    return found


CONTEXT = (5, 38)
RIGHT: dict[str, tuple[dict[int, float], dict[int, float], list[tuple[int, int]], float]] = {
    "the answer": ({7: 5.0}, {9: 5.0}, [(7, 9)], 1.0),
    "another one of its answers": ({7: 5.0}, {9: 5.0}, [(20, 21), (7, 9)], 1.0),
    "the start of one answer and the end of another": ({7: 5}, {9: 5}, [(7, 8), (6, 9)], 0.0),
    "one token too long": ({7: 5.0}, {9: 5.0}, [(7, 8)], 0.0),
    "an end before its start is no answer": ({9: 5.0, 6: 4.0}, {7: 5.0}, [(6, 7)], 1.0),
    "the question is no context": ({2: 9.0, 7: 5.0}, {3: 9.0, 9: 5.0}, [(7, 9)], 1.0),
    "nor what comes behind it": ({39: 9.0, 7: 5.0}, {39: 9.0, 9: 5.0}, [(7, 9)], 1.0),
    "of thirty tokens": ({5: 9.0}, {34: 9.0}, [(5, 34)], 1.0),
    "of thirty-one tokens": ({5: 9.0}, {35: 9.0}, [(5, 35)], 0.0),
    "no answer, as it should": ({0: 9.0}, {0: 9.0}, [(0, 0)], 1.0),
    "no answer, where there is one": ({0: 9.0}, {0: 9.0}, [(7, 9)], 0.0),
    "no answer, where it was cut off": ({0: 9.0}, {0: 9.0}, [], 0.0),
    "an answer, where it was cut off": ({7: 9.0}, {9: 9.0}, [], 0.0),
    "an answer, where there is none": ({7: 9.0}, {9: 9.0}, [(0, 0)], 0.0),
    "from no answer into the context": ({0: 9.0, 7: 8.0}, {9: 9.0, 0: -9.0}, [(7, 9)], 1.0),
    "nothing that is a number": ({7: math.nan}, {9: math.nan}, [(9, 7)], 0.0),
}


@pytest.mark.parametrize("case", RIGHT)
def test_a_record_is_right_where_the_best_pair_is_one_of_its_answers(case: str) -> None:
    first, last, spans, expected = RIGHT[case]
    assert answers.right(told(first, last), row_of(CONTEXT, spans)).tolist() == [expected]


def test_each_answer_that_a_mark_holds_is_one_to_be_right_about() -> None:
    spans = [(place, place) for place in range(6, 6 + MOST_ANSWERS + 1)]
    found = [
        answers.right(told({place: 9.0}, {place: 9.0}), row_of(CONTEXT, spans)).item()
        for place, _ in spans
    ]
    assert found == [1.0] * MOST_ANSWERS + [0.0]


def test_what_is_counted_is_right_or_wrong_and_nothing_without_a_label() -> None:
    scorer = AnswerScorer(lambda _, rows: rows[:, 0])
    rows, labels = np.array([[1.0], [0.0], [1.0], [0.0], [7.0]]), np.array([0, 0, -1, -1, 0])
    assert scorer.shares((), rows, labels).tolist() == [1.0, 0.0, 0.0, 0.0, 1.0]
    model = MeasuredModel((), scorer, Constants(5, 1, 1), ())
    assert cells_of(RightAndWrong(), model, Data(rows, labels)).tolist() == [2.0, 1.0]


@pytest.mark.ci
@pytest.mark.parametrize("learner", [FineTune(trains="all", bias=True), "hyfree"])
def test_it_learns_where_answers_stand(learner: FineTune | str) -> None:
    """Each context's answer is its token 5."""
    hyper, constants = Hyper(0.05, 60, 1e6), constants_of("bert")
    if isinstance(learner, str):
        learner = HyperparameterFreeTuning(trains="all", bias=True, every=1)
    rows = rows_of(constants, 40).view(40, TOKENS, 2)
    for row in rows:
        row[:, 0] = torch.randint(10, 24, (TOKENS,)) + 1
        place = int(torch.randint(4, TOKENS, ()))
        row[place, 0] = 6.0
        row[:, 1] = torch.tensor(answer_marks([at > 3 for at in range(TOKENS)], [(place, place)]))
    data = Data(rows.flatten(1).numpy(), np.zeros(40, np.int64))
    meter = Meter(declare(learner, hyper, constants).draws, Seeded(), audit=True)
    found = train(data, hyper, learner, constants, meter, ONE)
    meter.close()
    scorer = scorer_of(learner, constants)
    still = tuple(np.zeros_like(part) for part in found)
    before, after = (right_of(scorer, one, data.features, data.labels) for one in (still, found))
    assert before < 15 < 30 < after
    assert [*queries.shapes(learner, constants)][-1] == "head.weight"
    assert found[-1].shape == (2, 17)
    first, last = predict.best_answers(learner, constants, found, data.features).T
    kept = np.arange(40), first
    words, marks = rows.numpy().transpose(2, 0, 1)
    assert np.count_nonzero((first == last) & (words[kept] == 6.0) & (marks[kept] > 1)) == after
