"""The best trial is the one with the highest released score."""

from __future__ import annotations

from dpladder.search.trial import Trial, best


def trials(*scores):
    return [
        Trial(0, place, 0.1, 0.03, 1.0, 1.0 + place, score, 10.0, 100)
        for place, score in enumerate(scores)
    ]


def test_the_highest_score_wins():
    assert best(trials(3.0, 9.0, -4.0)).trial == 1


def test_equal_scores_go_to_the_first_in_public_order_whatever_the_order_given():
    tied = trials(5.0, 5.0, 5.0)
    assert best(tied).trial == 0
    assert best(tied[::-1]).trial == 0
