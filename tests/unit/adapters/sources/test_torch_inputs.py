"""Names of input leaves."""

from __future__ import annotations

from collections import OrderedDict, namedtuple

import torch
from torch import nn
from torch.utils import _pytree as pytree

from trueport.adapters.sources.torch_inputs import leaf_names, misfit

Point = namedtuple("Point", "left right")


class Net(nn.Module):
    def forward(self, x, pair=None, *rest, flag=True, **more):
        return x


def names(args, kwargs=None, model=None):
    return [name for name, _ in leaf_names(model or Net(), args, kwargs or {})]


def test_names_come_from_the_signature():
    t = torch.ones(1)
    assert names((t, t)) == ["x", "pair"]
    assert names((t,), {"flag": True, "extra": t}) == ["x", "flag", "extra"]
    assert names((t, t, t, t)) == ["x", "pair", "rest.0", "rest.1"]


def test_nested_structures():
    t = torch.ones(1)
    assert names((t, [t, (t, t)])) == ["x", "pair.0", "pair.1.0", "pair.1.1"]
    assert names((OrderedDict(a=t, b={"c": t}),)) == ["x.a", "x.b.c"]
    assert names((Point(t, 3),)) == ["x.left", "x.right"]
    assert names((None,)) == ["x"]


def test_order_is_that_of_torch():
    t = [torch.tensor(i) for i in range(4)]
    args, kwargs = ({"b": t[0], "a": t[1]},), {"z": t[2], "flag": t[3]}
    flat = pytree.tree_leaves((args, kwargs))
    assert all(a is b for a, (_, b) in zip(flat, leaf_names(Net(), args, kwargs), strict=True))


def test_registered_class_without_keys_is_numbered():
    class Box:
        def __init__(self, items):
            self.items = items

    pytree.register_pytree_node(Box, lambda b: (b.items, None), lambda items, _: Box(list(items)))
    assert names((Box([1, 2]),)) == ["x.0", "x.1"]


def test_model_without_a_readable_signature():
    class Odd:
        forward = max

    assert names((1, 2), model=Odd()) == ["arg0", "arg1"]
    assert misfit(Odd(), (1,), {}) is None


def test_misfit_is_pythons_own_complaint():
    assert misfit(Net(), (1,), {}) is None
    assert "missing a required argument: 'x'" in misfit(Net(), (), {})
