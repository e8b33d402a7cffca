"""What DPAdamWOSM asks: a noised sum of clipped gradients at each step, and a look where a public
sample guides it."""

from __future__ import annotations

from dpladder.learn import descent_noise, guide

queries = guide.queries
logit_noise = descent_noise.logit_noise_of_adam
