"""One noised release of every class's sum and count, and a linear head that is made of it."""

import torch
from torch.nn.functional import one_hot

from dpladder.config.model import Resources
from dpladder.learn.interface import Constants, Data, Hyper, Publish, Weights, metered
from dpladder.learn.moments import as_weights, load_records, weighed_sums
from own_methods.nearest_mean.section import NearestMean


@torch.inference_mode()
def fit(
    data: Data,
    hyper: Hyper,
    learner: NearestMean,
    constants: Constants,
    release: Publish,
    resources: Resources,
) -> Weights:
    records = load_records(data, constants, resources)
    labels = records.labels.long().clamp(min=0)
    member = (one_hot(labels, constants.classes) * records.counted[:, None]).T.double()
    sums = weighed_sums(records, learner.radius, member)
    counts = member.sum(1, keepdim=True) * learner.radius * (1.0 - records.slack)
    noised = release("sums", torch.cat([sums, counts], 1))
    means = noised[:, :-1] / (noised[:, -1:] / learner.radius).clamp(min=1.0)
    # |x - m|^2 is least where m x - |m|^2 / 2 is largest, for an x of the public length
    bias = -means.square().sum(1, keepdim=True) / 2 * constants.length / learner.radius
    return as_weights(torch.cat([means, bias], 1))


train = metered(fit)
