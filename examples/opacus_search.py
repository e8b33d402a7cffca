"""A search over learning rate and clip with Opacus, and one true epsilon at the end.

    python examples/opacus_search.py        # 40 trials and a final training, on scikit-learn's
    digits

The lines that end in `# books` are all that the books need. Without them this is an Opacus script
like others, and the epsilon that it reports is that of its last training alone.
"""

import argparse
import itertools
import warnings

import numpy as np
import torch
from dp_accounting import GaussianDpEvent, SelfComposedDpEvent
from opacus import PrivacyEngine
from sklearn.datasets import load_digits
from torch.nn.functional import cross_entropy

import dpladder  # books

RATE, TRIAL_STEPS, FINAL_STEPS = 0.2, 20, 60
TRIAL_NOISE, FINAL_NOISE, SCORE_NOISE = 20.0, 5.0, 25.0  # noise over what one record adds
GRID = [*itertools.product(np.geomspace(0.1, 8.0, 8), np.geomspace(0.1, 2.0, 5))]

warnings.simplefilter("ignore")
parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--trials", type=int, default=len(GRID), help="of the grid of 40; default: all")
trials = parser.parse_args().trials

digits = load_digits()
images, labels = torch.tensor(digits.data / 16.0, dtype=torch.float32), torch.tensor(digits.target)
data = torch.utils.data.TensorDataset(
    images[:1500], labels[:1500]
)  # private, and so is what scores are counted on


def train(steps, noise, lr, clip):
    model = torch.nn.Linear(64, 10)
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    loader = torch.utils.data.DataLoader(data, batch_size=round(RATE * len(data)))
    engine = PrivacyEngine(accountant="rdp")
    engine.accountant = charge.accountant()  # books
    model, optimizer, loader = engine.make_private(
        module=model,
        optimizer=optimizer,
        data_loader=loader,
        noise_multiplier=noise,
        max_grad_norm=clip,
    )
    batches = itertools.chain.from_iterable(loader for _ in itertools.count())
    for inputs, targets in itertools.islice(batches, steps):
        optimizer.zero_grad()
        cross_entropy(model(inputs), targets).backward()
        optimizer.step()
    return model._module, engine.get_epsilon(1e-5)


def score(model):
    with torch.no_grad():
        count = int((model(images[1500:]).argmax(1) == labels[1500:]).sum())
    return charge.noise(count, sensitivity=1.0)  # books


ledger = dpladder.Ledger("digits", epsilon=4.0, delta=1e-5)  # books
scores = SelfComposedDpEvent(GaussianDpEvent(SCORE_NOISE), trials)  # books
steps = [(TRIAL_NOISE, RATE, trials * TRIAL_STEPS), (FINAL_NOISE, RATE, FINAL_STEPS)]  # books
charge = ledger.spend("search", [*steps, scores])  # books

found = [
    (score(train(TRIAL_STEPS, TRIAL_NOISE, lr, clip)[0]), lr, clip) for lr, clip in GRID[:trials]
]
best, lr, clip = max(found)
model, reported = train(FINAL_STEPS, FINAL_NOISE, lr, clip)
print(
    f"best of {trials}: learning rate {lr:.3g}, clip {clip:.3g}, {best:.0f} of 297 right, counted "
    "with noise"
)
print(f"the last training alone, as Opacus reports it: epsilon = {reported:.2f}")

charge.finish([found, model])  # books
print(f"with the search that chose it: epsilon = {ledger.spent:.2f}, and at most 4 ever")  # books
ledger.statement()  # books
