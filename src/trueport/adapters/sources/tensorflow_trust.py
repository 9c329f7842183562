"""Finds operators that reach out of a TensorFlow graph, before anything of it is loaded or run.

`tf.saved_model.load` runs parts of a model itself: functions that make, fill and destroy resources, those that restore
an object, and initializers of the older format. What it holds as Python objects it may call as well, because the file
names the attributes under which they are stored. Judged are therefore all functions that signatures, resources and
such attributes reach, in branches, bodies and everything that they call; left out are only functions that an object
of the user's offers under a name of its own, which nobody calls here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from trueport.adapters.sources.tensorflow_operators import may_reach_out, reaches_out_at_once
from trueport.core.errors import UsageError

_PLAIN_OBJECT = "_generic_user_object"
_SIGNATURES = "signatures"
_TRACE = re.compile(r"trace_\d+")
_SAVES = frozenset({"SaveV2", "MergeV2Checkpoints", "SaveSlices", "Save"})
_GRAPH = "the main graph"


@dataclass(frozen=True, order=True)
class ReachingNode:
    """A node that may touch more than the model's own memory.

    Attributes:
        operator: its type.
        node: its name.
        place: the function that holds it, or the main graph.
    """

    operator: str
    node: str
    place: str


def reaching_of_meta_graph(meta: Any) -> list[ReachingNode]:
    """Returns what loading a graph of a SavedModel, and running a signature, may run that reaches out; sorted.

    Args:
        meta: a `MetaGraphDef`, as read from the file.
    """
    library = _Library(meta.graph_def.library)
    if meta.HasField("object_graph_def"):
        roots, nodes = _functions_of_objects(meta.object_graph_def), []
    else:
        roots, nodes = [], _run_nodes(meta)
    main = meta.graph_def.node
    at_once = [ReachingNode(n.op, n.name, place) for place, n in library.nodes(main) if reaches_out_at_once(n)]
    return sorted({*at_once, *library.reaching(roots, nodes)})


def reaching_of_graph(definition: Any) -> list[ReachingNode]:
    """Returns the nodes of a graph, and of the functions that it calls, that reach out; sorted.

    Args:
        definition: a `GraphDef`, all of which runs.
    """
    library = _Library(definition.library)
    return sorted(set(library.reaching([], definition.node)))


def require_inside(reaching: Sequence[ReachingNode], where: str) -> None:
    """Refuses a graph that holds nodes that reach out.

    Raises:
        UsageError: it does; the message names the first one.
    """
    if not reaching:
        return
    first = reaching[0]
    more = f" (and {len(reaching) - 1} more such nodes)" if len(reaching) > 1 else ""
    raise UsageError(
        f"{where} holds the operator {first.operator} (node '{first.node}' in {first.place}){more}; expected operators "
        "that stay inside the model: this one may read or write files, use the network or run Python. It is not run "
        "unless you trust the model; give --trust-pickle if you do"
    )


class _Library:
    """The functions of a graph, by name, with what they may call."""

    def __init__(self, library: Any) -> None:
        self._functions = {f.signature.name: f for f in library.function}
        self._gradients = {g.function_name: g.gradient_func for g in library.gradient}
        # TensorFlow swaps functions that say that they implement the same interface.
        self._alike: dict[bytes, list[str]] = {}
        for name, function in self._functions.items():
            if "api_implements" in function.attr:
                self._alike.setdefault(function.attr["api_implements"].s, []).append(name)

    def nodes(self, main: Iterable[Any]) -> Iterator[tuple[str, Any]]:
        """Yields all nodes there are, each with its place."""
        yield from ((_GRAPH, node) for node in main)
        for name, function in self._functions.items():
            yield from ((_function(name), node) for node in function.node_def)

    def reaching(self, roots: Iterable[str], main: Iterable[Any]) -> Iterator[ReachingNode]:
        """Yields the nodes that reach out among some of the main graph's and all that functions and these call."""
        found: set[str] = set()
        pending = [name for name in roots if name in self._functions]
        for node in main:
            if may_reach_out(node):
                yield ReachingNode(node.op, node.name, _GRAPH)
            pending += self._called(node)
        while pending:
            name = pending.pop()
            if name in found:
                continue
            found.add(name)
            function = self._functions[name]
            pending += self._beside(name)
            for node in function.node_def:
                if may_reach_out(node):
                    yield ReachingNode(node.op, node.name, _function(name))
                pending += self._called(node)

    def _beside(self, name: str) -> list[str]:
        function = self._functions[name]
        alike = self._alike[function.attr["api_implements"].s] if "api_implements" in function.attr else []
        gradients = [self._gradients[name]] if name in self._gradients else []
        return [*alike, *(g for g in gradients if g in self._functions)]

    def _called(self, node: Any) -> Iterator[str]:
        if node.op in self._functions:
            yield node.op
        yield from (name for name in _named(node.attr) if name in self._functions)


def _named(attributes: Mapping[str, Any]) -> Iterator[str]:
    """Yields all that attributes name: functions, also those handed on to functions, and any text."""
    for value in attributes.values():
        kind = value.WhichOneof("value")
        if kind == "s":
            yield value.s.decode(errors="replace")
        functions = [value.func] if kind == "func" else value.list.func if kind == "list" else []
        for function in functions:
            yield function.name
            yield from _named(function.attr)


def _function(name: str) -> str:
    return f"the function '{name}'"


# ---------------------------------------------------------------------- what a load runs, by format


def _functions_of_objects(objects: Any) -> list[str]:
    """Returns the functions that may be called: all but those of a plain object under a public name, and their traces.

    A name with an underscore in front may replace a method of the object, and so may any name on other kinds of object.
    """
    judged = {0}
    maps = {child.node_id for item in objects.nodes for child in item.children if child.local_name == _SIGNATURES}
    for place, item in enumerate(objects.nodes):
        dependencies = {reference.node_id for reference in item.dependencies}
        if place not in maps and not item.registered_name and item.user_object.identifier == _PLAIN_OBJECT:
            judged.update(c.node_id for c in item.children if c.local_name.startswith("_"))
            judged.update(maps & {c.node_id for c in item.children})
        elif item.WhichOneof("kind") == "function" and not item.registered_name:
            judged.update(c.node_id for c in item.children if not _TRACE.fullmatch(c.local_name))
        else:
            judged.update(dependencies, (child.node_id for child in item.children))
        for saveable in item.saveable_objects.values():
            judged.update((saveable.save_function, saveable.restore_function))
    names: list[str] = []
    for place in sorted(judged & set(range(len(objects.nodes)))):
        item = objects.nodes[place]
        names += item.function.concrete_functions
        names.append(item.bare_concrete_function.concrete_function_name)
    return names


def _run_nodes(meta: Any) -> list[Any]:
    """Returns the nodes of the main graph that a model of the older format runs.

    Everything is judged but what saves the variables and what restores them from the place that the loader gives;
    these two only where nothing else hangs on them, because then they would be run without that place.
    """
    nodes = {node.name: node for node in meta.graph_def.node}
    fed = _node_name(meta.saver_def.filename_tensor_name)
    run = _ancestors(nodes, _entry_points(meta))

    def harmless(node: Any) -> bool:
        restores = node.op == "RestoreV2" and bool(node.input) and _node_name(node.input[0]) == fed
        return (restores or node.op in _SAVES) and node.name not in run

    return [node for node in nodes.values() if not harmless(node)]


def _entry_points(meta: Any) -> set[str]:
    """Returns the names of the nodes that are asked for besides restoring: signatures, initializers, collections."""
    names: set[str] = set()
    for signature in meta.signature_def.values():
        for info in (*signature.outputs.values(), *signature.inputs.values()):
            names.update(_tensors_of(info))
    for collection in meta.collection_def.values():
        names.update(collection.node_list.value)
        for value in collection.bytes_list.value:
            names.update(_names_of_variable(value))
    return {_node_name(name) for name in names}


def _tensors_of(info: Any) -> list[str]:
    sparse = info.coo_sparse
    parts = [sparse.values_tensor_name, sparse.indices_tensor_name, sparse.dense_shape_tensor_name]
    return [info.name, *parts, *(name for part in info.composite_tensor.components for name in _tensors_of(part))]


def _names_of_variable(value: bytes) -> list[str]:
    from google.protobuf.message import DecodeError  # type: ignore[import-untyped]  # ships no type hints
    from tensorflow.core.framework.variable_pb2 import VariableDef

    variable = VariableDef()
    try:
        variable.ParseFromString(value)
    except DecodeError:  # another kind of collection
        return []
    return [variable.variable_name, variable.initializer_name, variable.initial_value_name, variable.snapshot_name]


def _ancestors(nodes: Mapping[str, Any], names: Iterable[str]) -> set[str]:
    found: set[str] = set()
    pending = list(names)
    while pending:
        name = pending.pop()
        if name in found or name not in nodes:
            continue
        found.add(name)
        pending += [_node_name(tensor) for tensor in nodes[name].input]
    return found


def _node_name(tensor: str) -> str:
    return tensor.removeprefix("^").partition(":")[0]
