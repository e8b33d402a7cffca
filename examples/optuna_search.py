"""Optuna on a budget: trials until no other fits, beside a final training that was reserved first.

pip install optuna
python examples/optuna_search.py
"""

import numpy as np
import optuna
from dp_accounting import GaussianDpEvent, SelfComposedDpEvent

import dpladder

TRIAL = [
    SelfComposedDpEvent(GaussianDpEvent(60.0), 20),
    GaussianDpEvent(30.0),
]  # 20 noised gradients, and a score
FINAL = SelfComposedDpEvent(GaussianDpEvent(25.0), 40)

rng = np.random.default_rng(0)
X = rng.normal(size=(2000, 8)) / 3
y = (X @ rng.normal(size=8) > 0).astype(float)
ledger = dpladder.Ledger("points", epsilon=2.0, delta=1e-5)


def train(charge, steps, rate, clip):
    """Logistic regression by full batches of clipped gradients."""
    weights = np.zeros(8)
    for _ in range(steps):
        each = (1 / (1 + np.exp(-X @ weights)) - y)[:, None] * X
        each *= np.minimum(1, clip / np.maximum(np.linalg.norm(each, axis=1), 1e-12))[:, None]
        weights -= rate * charge.noise(each.sum(axis=0), sensitivity=clip) / 2000
    return weights


def objective(trial):
    rate, clip = (
        trial.suggest_float("rate", 0.1, 100, log=True),
        trial.suggest_float("clip", 0.01, 1, log=True),
    )
    with ledger.spend(f"trial-{trial.number}", TRIAL) as charge:
        weights = train(charge, 20, rate, clip)
        score = charge.noise(np.sum((X @ weights > 0) == (y > 0)), sensitivity=1.0)
        charge.finish(score)  # the trial's weights are not shown to anybody
    return score


def main():
    final = ledger.reserve("final", FINAL)
    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=0))
    study.optimize(objective, callbacks=[ledger.stop_when_spent(TRIAL)])
    with final as charge:
        weights = train(charge, 40, study.best_params["rate"], study.best_params["clip"])
        charge.finish(weights)
    print(
        f"{len(study.trials)} trials; epsilon = {ledger.spent:.2f} of 2; the released weights: "
        f"{weights.round(2)}"
    )
    ledger.statement()


if __name__ == "__main__":
    main()
