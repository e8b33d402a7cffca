"""Three sites train one model by rounds, each with a ledger of its own, and no framework.

    python examples/federated_rounds.py                   # until each site's limit is reached
    python examples/federated_rounds.py --kill south 3    # south dies in the middle of round 3

A round: the server sends weights; each site answers with the noised sum of its records' clipped
gradients; the server adds these up and takes a step. Nobody trusts the server: what leaves a site
bears that site's whole noise. Each site enforces its own limit, stops by itself, and states what
its people bear. A person with records at two sites bears both.

The lines that end in `# books` are what a client of NVFlare, Flower or another framework needs.
"""

import argparse
import itertools
import multiprocessing
import os
import signal
from pathlib import Path

import numpy as np
from dp_accounting import GaussianDpEvent
from sklearn.datasets import load_digits

import dpladder  # books

SITES = {"north": 2.0, "south": 2.0, "east": 1.0}  # the most that may ever be spent, epsilon
DELTA, NOISE, CLIP, STEP, RECORDS = 1e-5, 12.0, 1.0, 2.0, 500  # noise over CLIP; all public
ROUND = GaussianDpEvent(NOISE)  # books
LIMIT = "my limit is reached"

digits = load_digits()
images = digits.data / np.linalg.norm(digits.data, axis=1, keepdims=True)
labels = digits.target


def records_of(site):
    """A third of the private images; the last 297 are the server's own, and public."""
    start = [*SITES].index(site) * RECORDS
    return images[start : start + RECORDS], labels[start : start + RECORDS]


def clipped_gradients(weights, x, y):
    """The sum of each record's gradient of the cross-entropy, cut to length CLIP."""
    scores = x @ weights
    chances = np.exp(scores - scores.max(1, keepdims=True))
    chances /= chances.sum(1, keepdims=True)
    slopes = chances - np.eye(10)[y]
    lengths = np.linalg.norm(slopes, axis=1) * np.linalg.norm(x, axis=1)
    slopes *= np.minimum(1.0, CLIP / np.maximum(lengths, 1e-12))[:, None]
    return x.T @ slopes


def client(site, requests, killed_in):
    """A site: answers rounds until its limit is reached. `None` says "not this round"."""
    place = Path("sites").resolve() / site
    ledger = dpladder.Ledger(  # books
        site, SITES[site], DELTA, results=place / "results", home=place / "home"
    )
    x, y = records_of(site)
    while (asked := requests.recv()) is not None:
        number, weights = asked
        if not ledger.affords(ROUND):  # books
            requests.send(LIMIT)
            continue
        try:
            charge = ledger.spend(f"round-{number}", ROUND)  # books
        except dpladder.errors.Refused:  # it died in this round: that is paid for, and lost
            requests.send(None)
            continue
        with charge:
            if number == killed_in:
                os.kill(os.getpid(), signal.SIGKILL)
            noised = charge.noise(clipped_gradients(weights, x, y), sensitivity=CLIP)  # books
            charge.finish(noised)  # books
        requests.send(noised)
    ledger.statement()  # books
    requests.send(ledger.spent)


class Site:
    """The server's end of a site, which starts it anew where it died."""

    def __init__(self, name, killed_in):
        self.name = name
        self.start(killed_in)

    def start(self, killed_in=None):
        self.pipe, theirs = multiprocessing.Pipe()
        self.process = multiprocessing.Process(target=client, args=(self.name, theirs, killed_in))
        self.process.start()
        theirs.close()

    def ask(self, what):
        self.pipe.send(what)
        try:
            return self.pipe.recv()
        except (EOFError, ConnectionResetError):
            print(f"{self.name} died, and comes back for the next round")
            self.start()
            return None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kill", nargs=2, metavar=("SITE", "ROUND"), default=("", 0))
    name, killed_in = parser.parse_args().kill
    sites = [Site(site, int(killed_in) if site == name else None) for site in SITES]
    weights, rounds = np.zeros((64, 10)), 0
    for number in itertools.count(1):  # begun anew, it goes past the rounds that are paid for
        answers = [site.ask((number, weights)) for site in sites]
        sums = [answer for answer in answers if isinstance(answer, np.ndarray)]
        if sums:
            weights = weights - STEP * sum(sums) / (RECORDS * len(sums))
            rounds += 1
        elif answers == [LIMIT] * len(sites):
            break
    right = np.mean((images[1500:] @ weights).argmax(1) == labels[1500:])
    print(f"{rounds} rounds; {right:.1%} of the server's own 297 images are told right")
    for site in sites:
        spent = site.ask(None)
        print(f"{site.name}: epsilon = {spent:.3f} of {SITES[site.name]:g} is spent")
        site.process.join()


if __name__ == "__main__":
    multiprocessing.set_start_method("spawn")
    main()
