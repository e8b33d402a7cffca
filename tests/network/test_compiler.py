"""Jobs load PyTorch's compiler where something is compiled, and not with torchvision."""

from __future__ import annotations

import pytest
from support import in_new_python

USE = """
import sys
from dpladder.network.compiler import postpone_compiler
postpone_compiler()
import timm, torch
network = timm.create_model("test_efficientnet").eval()
with torch.inference_mode():
    network(torch.zeros(1, 3, 32, 32))
loaded = sum(name.startswith("torch._dynamo") for name in sys.modules)
doubled = torch.compile(lambda x: 2 * x, backend="eager")(torch.ones(1))
import torch._dynamo.config
print(loaded, doubled.item(), torch._dynamo.config.__name__, torch._dynamo.utils.__file__[-8:])
"""


@pytest.mark.ci
def test_the_compiler_is_loaded_once_something_is_compiled():
    assert in_new_python(USE) == "2 2.0 torch._dynamo.config utils.py\n"
