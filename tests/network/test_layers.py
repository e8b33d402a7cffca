"""Layers whose arithmetic is known."""

from __future__ import annotations

import pytest
import torch
from support import devices

from dpladder.network.layers import Steady


@pytest.fixture(params=[1, 2, 4, 16])
def threads(request):
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield
    torch.set_num_threads(before)


@pytest.mark.few(4)
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("device", devices())
def test_a_steady_layer_rounds_a_record_in_one_way_wherever_it_stands(device, bias, threads):
    random = torch.Generator().manual_seed(0)
    for width in (1, 3, 5, 7, 10, 31, 66, 97, 128, 769, 1281):
        record = torch.randn(1, width, generator=random).to(device)
        for outputs in (1, 2, 3, 5, 9, 12, 17, 64):
            layer = Steady(width, outputs, bias).to(device)
            for count in (1, 8, 24, 40, 56, 64, 72, 104, 192):
                found = layer(record.repeat(count, 1))
                assert (found == found[0]).all()


def test_a_steady_layer_is_a_linear_one():
    layer, x = Steady(7, 3), torch.randn(2, 5, 7)
    torch.testing.assert_close(layer(x), torch.nn.functional.linear(x, layer.weight, layer.bias))
