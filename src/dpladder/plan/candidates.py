"""The candidates of `sweep.choose`, each with the prior that its learner and its features have.

A candidate is a whole config, as if the experiment had been written with its learner, features and
network. So whatever is asked of a config can be asked of a candidate.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from dpladder.config import Config, Project
from dpladder.config.candidates import candidates_of, networks_of
from dpladder.config.features_sections import Layers
from dpladder.config.model import network_name
from dpladder.search.prior import with_prior


def resolve_prior(config: Config) -> Config:
    """The config with the prior in kappa filled in, where it was left to the learner and its
    features. Candidates of several learners have one each.

    Idempotent: a prior that the config names stays.
    """
    if config.sweep.choose is not None and config.sweep.choose.learner.name:
        return config
    search = with_prior(config.sweep.search, config.learner, config.features.centre != "none")
    return config.model_copy(update={"sweep": config.sweep.model_copy(update={"search": search})})


@cache
def resolved_candidates(config: Config) -> tuple[Config, ...]:
    """What each candidate of a resolved config is by itself; empty where nothing is chosen.

    They stand in the order of `sweep.choose`, network by network. Their numbers are what trials
    record.
    """
    return tuple(resolve_prior(one) for one in candidates_of(config))


def with_networks(project: Project) -> Project:
    """A resolved project with one more experiment for each further network that one tries.

    A network has a mean of its own to pay for, so its jobs need an experiment to belong to. Such an
    experiment owns what comes before any trial, and has no trials itself.

    Returns:
        The project with these experiments, and `networks`: their names for each experiment that
        tries them.
    """
    networks = {
        name: {
            network_name(name, number): network
            for number, network in enumerate(networks_of(config))
            if number
        }
        for name, config in project.with_own_models.items()
    }
    further = {
        name: one for of_experiment in networks.values() for name, one in of_experiment.items()
    }
    return replace(
        project,
        experiments={**project.experiments, **further},
        networks={name: tuple(names) for name, names in networks.items() if names},
    )


def tried_layers(config: Config) -> list[Layers]:
    """The features.layers that are chosen among, in an order of their own: one mean serves them
    all, in whatever order they are named."""
    choose = config.sweep.choose
    return [] if choose is None else sorted(choose.features.layers, key=str)
