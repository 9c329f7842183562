"""A module is as it was after every run, whatever its forward changes."""

from __future__ import annotations

import collections
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn

from tests.unit.adapters.torch_tape.running import Function, eager, filled, input_set, normal
from trueport.adapters.float64.torch.state import preserved
from trueport.core.errors import SourceError
from trueport.oracle.noise import SCREEN

X = normal(4, 6)


class _Base(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(6, 6)


class Counter(_Base):
    def __init__(self):
        super().__init__()
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        return x * self.calls


class BufferCounter(_Base):
    def __init__(self):
        super().__init__()
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64))

    def forward(self, x):
        self.calls += 1
        return x * self.calls


class ReplacedBuffer(BufferCounter):
    def forward(self, x):
        self.calls = self.calls + 1
        return x * self.calls


class ListCache(_Base):
    def __init__(self):
        super().__init__()
        self.cache = []

    def forward(self, x):
        self.cache.append(x)
        return torch.cat(self.cache).sum(0)


class PrivateCache(_Base):
    def __init__(self):
        super().__init__()
        self._cache = []

    def forward(self, x):
        self._cache.append(x)
        return torch.cat(self._cache).sum(0)


class PrivateTensor(_Base):
    def __init__(self):
        super().__init__()
        self._total = torch.zeros(6)

    def forward(self, x):
        self._total += x.sum(0)
        return self._total + 0


class DictCache(_Base):
    def __init__(self):
        super().__init__()
        self.cache = {"kv": torch.zeros(0, 6)}

    def forward(self, x):
        self.cache["kv"] = torch.cat([self.cache["kv"], x])
        return self.cache["kv"].sum(0)


class NestedCache(_Base):
    def __init__(self):
        super().__init__()
        self.cache = {"layers": [[torch.zeros(6)]]}

    def forward(self, x):
        self.cache["layers"][0][0].add_(x.sum(0))
        return self.cache["layers"][0][0] + 0


class TensorAttribute(_Base):
    def __init__(self):
        super().__init__()
        self.total = torch.zeros(6)

    def forward(self, x):
        self.total += x.sum(0)
        return self.total + 0


class TupleOfTensors(_Base):
    def __init__(self):
        super().__init__()
        self.totals = (torch.zeros(6),)

    def forward(self, x):
        self.totals[0].add_(x.sum(0))
        return self.totals[0] + 0


class QueueCache(_Base):
    def __init__(self):
        super().__init__()
        self.cache = collections.deque(maxlen=3)

    def forward(self, x):
        self.cache.append(x)
        return torch.cat(list(self.cache)).sum(0)


class ObjectState(_Base):
    """As the cache objects of transformers."""

    def __init__(self):
        super().__init__()
        self.state = SimpleNamespace(seen=0)

    def forward(self, x):
        self.state.seen += 1
        return x * self.state.seen


class LazyAttribute(_Base):
    def forward(self, x):
        if not hasattr(self, "scale"):
            self.scale = 2.0
            return x
        return x * self.scale


class DeletedAttribute(_Base):
    def __init__(self):
        super().__init__()
        self.first = True

    def forward(self, x):
        if hasattr(self, "first"):
            del self.first
            return x
        return -x


class WrittenParameter(_Base):
    def forward(self, x):
        self.lin.weight.mul_(1.5)
        return self.lin(x)


class RegisteredLate(_Base):
    def forward(self, x):
        if "late" in dict(self.named_buffers()):
            return x * self.late
        self.register_buffer("late", torch.full((), 3.0))
        return x


class SubmoduleState(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Counter()

    def forward(self, x):
        return self.inner(x)


class TrainingToggle(_Base):
    def forward(self, x):
        self.train(not self.training)
        return x * (2 if self.training else 3)


STATEFUL = [
    Counter, BufferCounter, ReplacedBuffer, ListCache, PrivateCache, PrivateTensor, DictCache, NestedCache,
    TensorAttribute, TupleOfTensors, QueueCache, ObjectState, LazyAttribute, DeletedAttribute, WrittenParameter,
    RegisteredLate, SubmoduleState, TrainingToggle,
]  # fmt: skip


class _Layer(nn.Module):
    def __init__(self, cache):
        super().__init__()
        self.cache = cache

    def forward(self, x):
        self.cache.append(x.sum())
        return x * len(self.cache)


class SharedCache(nn.Module):
    """Two layers that share one list, as models with a common cache do."""

    def __init__(self):
        super().__init__()
        cache = []
        self.first, self.second = _Layer(cache), _Layer(cache)

    def forward(self, x):
        return self.second(self.first(x))


STATEFUL.append(SharedCache)


@pytest.mark.parametrize("kind", STATEFUL, ids=lambda k: k.__name__)
def test_every_run_starts_from_the_same_state(kind):
    source = eager(filled(kind()), X)
    inputs = input_set(X)
    first, second = (source.real(inputs, fresh_random=False)[0] for _ in range(2))
    assert np.array_equal(first, second)
    told, again = (source.reference(inputs, 0, SCREEN).outputs[0].value for _ in range(2))
    assert np.array_equal(told, again)
    np.testing.assert_allclose(told, first, rtol=1e-5, atol=1e-6)


class _Normalizes(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(6)

    def forward(self, x):
        return self.norm(x)


def _state(module):
    return {name: tensor.clone() for name, tensor in module.state_dict().items()}


def test_batch_norm_in_training_mode_keeps_its_statistics():
    module = filled(_Normalizes()).train()
    before = _state(module)
    source = eager(module, X)
    told = [source.reference(input_set(X), 0, SCREEN).outputs[0].value for _ in range(2)]
    source.real(input_set(X), fresh_random=True)
    assert np.array_equal(told[0], told[1])
    assert module.training
    assert all(torch.equal(tensor, before[name]) for name, tensor in module.state_dict().items())
    assert int(module.norm.num_batches_tracked) == 0


@pytest.mark.parametrize("kind", [Counter, BufferCounter, ReplacedBuffer, WrittenParameter, SubmoduleState])
def test_parameters_and_buffers_are_the_same_objects_with_the_same_values(kind):
    module = filled(kind())
    before = _state(module)
    objects = {name: id(t) for name, t in [*module.named_parameters(), *module.named_buffers()]}
    eager(module, X).reference(input_set(X), 0, SCREEN)
    assert {name: id(t) for name, t in [*module.named_parameters(), *module.named_buffers()]} == objects
    assert all(torch.equal(tensor, before[name]) for name, tensor in module.state_dict().items())


def test_state_is_put_back_after_an_exception():
    class Fails(Counter):
        def forward(self, x):
            super().forward(x)
            raise ValueError("no")

    module = Fails()
    with pytest.raises(SourceError, match="ValueError: no"):
        eager(module, X).reference(input_set(X), 0, SCREEN)
    assert module.calls == 0


def test_modes_of_the_framework_are_put_back_after_an_exception():
    before = (torch.backends.mha.get_fastpath_enabled(), torch._C._get_mkldnn_enabled(), torch.is_grad_enabled())

    def fails(x):
        raise ValueError("no")

    with pytest.raises(SourceError, match="ValueError: no"):
        eager(Function(fails), X).reference(input_set(X), 0, SCREEN)
    after = (torch.backends.mha.get_fastpath_enabled(), torch._C._get_mkldnn_enabled(), torch.is_grad_enabled())
    assert after == before


def test_shared_tensors_stay_shared():
    module = _Base()
    other = nn.Linear(6, 6)
    other.weight = module.lin.weight
    module.other = other
    module.forward = lambda x: module.other(module.lin(x))
    eager(module, X).reference(input_set(X), 0, SCREEN)
    assert module.other.weight is module.lin.weight


def test_random_state_is_put_back():
    state = torch.get_rng_state()
    with preserved(nn.Dropout(0.5)):
        torch.rand(3)
    assert torch.equal(torch.get_rng_state(), state)


def test_cached_parameters_follow_an_update():
    """The float64 copies of parameters are shared between runs, and must not outlive a change of the parameter."""
    module = filled(nn.Linear(6, 2))
    source = eager(module, X)
    source.reference(input_set(X), 0, SCREEN)
    with torch.no_grad():
        module.weight.mul_(3)
    told = source.reference(input_set(X), 0, SCREEN).outputs[0].value
    expected = X.double() @ module.weight.double().T + module.bias.double()
    np.testing.assert_allclose(told, expected.detach().numpy(), rtol=1e-13)
