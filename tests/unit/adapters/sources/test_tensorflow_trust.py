"""What an untrusted TensorFlow graph may hold: attacks by hand-made SavedModels, and models that must pass."""

from __future__ import annotations

import os
import re
from types import MappingProxyType

import numpy as np
import pytest

from trueport.adapters.sources.registry import SourceRequest
from trueport.adapters.sources.tensorflow_file import load
from trueport.adapters.sources.tensorflow_operators import REACHES_OUT, STAYS_INSIDE
from trueport.adapters.sources.tensorflow_setup import import_tensorflow
from trueport.core.errors import UsageError

tf = import_tensorflow()
SPEC = tf.TensorSpec((2,), tf.float32, "x")


def _load(path, *, trust=False):
    return load(SourceRequest(str(path), trust, None, MappingProxyType({}), 0))


def _attacks(target):
    """Returns functions of a tensor that write or read files, send, or call Python, by the operator that does so."""
    raw = tf.raw_ops

    def write(x):
        tf.io.write_file(target, "written")
        return x

    def summary(x):
        writer = raw.SummaryWriter(shared_name="w", container="")
        raw.CreateSummaryFileWriter(
            writer=writer, logdir=target, max_queue=1, flush_millis=1, filename_suffix=tf.constant("")
        )
        return x

    def nested(x):
        return tf.function(lambda a: tf.function(write)(a) * 1.0)(x)

    def branch(x):
        return tf.cond(tf.reduce_sum(x) > 1e9, lambda: write(x), lambda: x)

    def body(x):
        return tf.while_loop(lambda i, a: i < 2, lambda i, a: (i + 1, write(a)), (0, x))[1]

    def cases(x):
        return tf.switch_case(tf.cast(x[0], tf.int32), [lambda: x, lambda: write(x)])

    def proto(x):
        _, values = tf.io.decode_proto(tf.constant([""]), "M", ["f"], [tf.float32], descriptor_source=target)
        return x + tf.cast(tf.size(values[0]), tf.float32)

    return {
        "PrintV2": lambda x: (tf.print(x, output_stream=f"file://{target}"), x)[1],
        "CreateSummaryFileWriter": summary,
        "SaveV2": lambda x: (
            raw.SaveV2(prefix=target, tensor_names=["x"], shape_and_slices=[""], tensors=[x]),
            x,
        )[1],
        "RestoreV2": lambda x: x
        + raw.RestoreV2(prefix=target, tensor_names=["x"], shape_and_slices=[""], dtypes=[tf.float32])[0],
        "TextLineDataset": lambda x: (
            raw.TextLineDataset(filenames=[target], compression_type="", buffer_size=1),
            x,
        )[1],
        "ReadFile": lambda x: x + tf.strings.to_number(tf.io.read_file(target)),
        "MatchingFiles": lambda x: x + tf.cast(tf.size(tf.io.matching_files(target)), tf.float32),
        "WholeFileReaderV2": lambda x: (raw.WholeFileReaderV2(container="", shared_name="r"), x)[1],
        "ImmutableConst": lambda x: x
        + raw.ImmutableConst(dtype=tf.float32, shape=(2,), memory_region_name=target),
        "DecodeProtoV2": proto,
        "DatasetFromGraph": lambda x: (raw.DatasetFromGraph(graph_def=tf.constant("")), x)[1],
        "FixedUnigramCandidateSampler": lambda x: x
        + raw.FixedUnigramCandidateSampler(
            true_classes=tf.constant([[1]], tf.int64), num_true=1, num_sampled=2, unique=False, range_max=3,
            vocab_file=target,
        ).sampled_expected_count,
        "EagerPyFunc": lambda x: tf.ensure_shape(tf.py_function(lambda a: a, [x], tf.float32), (2,)),
        "WriteFile": write,
        "WriteFile nested": nested,
        "WriteFile in a branch": branch,
        "WriteFile in a loop": body,
        "WriteFile in a case": cases,
    }  # fmt: skip


@pytest.mark.parametrize("name", list(_attacks("")))
def test_a_signature_that_reaches_out_is_refused_before_anything_runs(tmp_path, name):
    target = tmp_path / "target"
    module = tf.Module()
    module.f = tf.function(lambda x: {"y": _attacks(str(target))[name](x)}, input_signature=[SPEC])
    tf.saved_model.save(module, str(tmp_path / "m"), signatures=module.f)
    with pytest.raises(UsageError, match=rf"operator {name.split()[0]} .*--trust-pickle"):
        _load(tmp_path / "m")
    assert not target.exists()


class _WritingResource(tf.saved_model.experimental.TrackableResource):
    def __init__(self, target, method):
        super().__init__()
        self._target, self._method = target, method

    def _create_resource(self):
        if self._method == "create":
            tf.io.write_file(self._target, "x")
        return tf.raw_ops.MutableHashTableV2(key_dtype=tf.int64, value_dtype=tf.int64, shared_name="t")

    def _initialize(self):
        if self._method == "initialize":
            tf.io.write_file(self._target, "x")

    def _destroy_resource(self):
        if self._method == "destroy":
            tf.io.write_file(self._target, "x")


@pytest.mark.parametrize("method", ["create", "initialize", "destroy"])
def test_what_loading_itself_runs_is_judged(tmp_path, method):
    module = tf.Module()
    module.resource = _WritingResource(str(tmp_path / "target"), method)
    module.f = tf.function(lambda x: {"y": x}, input_signature=[SPEC])
    tf.saved_model.save(module, str(tmp_path / "m"), signatures=module.f)
    (tmp_path / "target").unlink(missing_ok=True)
    with pytest.raises(UsageError, match=r"operator WriteFile .*function"):
        _load(tmp_path / "m")
    assert not (tmp_path / "target").exists()


def _looking_up(table):
    return lambda x: {"y": x + tf.cast(table.lookup(tf.strings.as_string(tf.cast(x, tf.int32))), tf.float32)}


def test_a_table_filled_from_a_file_is_refused_and_one_of_constants_is_not(tmp_path):
    (tmp_path / "words").write_text("a\nb\n")
    initializers = {
        "file": tf.lookup.TextFileInitializer(
            str(tmp_path / "words"), tf.string, tf.lookup.TextFileIndex.WHOLE_LINE, tf.int64,
            tf.lookup.TextFileIndex.LINE_NUMBER,
        ),
        "constants": tf.lookup.KeyValueTensorInitializer(["0", "1"], tf.constant([3, 4], tf.int64)),
    }  # fmt: skip
    for name, initializer in initializers.items():
        module = tf.Module()
        module.table = tf.lookup.StaticHashTable(initializer, -1)
        module.f = tf.function(_looking_up(module.table), input_signature=[SPEC])
        tf.saved_model.save(module, str(tmp_path / name), signatures=module.f)
    with pytest.raises(UsageError, match="InitializeTableFromTextFileV2"):
        _load(tmp_path / "file")
    np.testing.assert_array_equal(
        _load(tmp_path / "constants").model({"x": np.array([0, 1], np.float32)})[0], np.array([3, 5], np.float32)
    )


def _changed(folder, change):
    from tensorflow.core.protobuf.saved_model_pb2 import SavedModel

    parsed = SavedModel()
    parsed.ParseFromString((folder / "saved_model.pb").read_bytes())
    change(parsed.meta_graphs[0])
    (folder / "saved_model.pb").write_bytes(parsed.SerializeToString())


def _with_spare(tmp_path):
    """Saves a model whose function `spare`, which is no signature, writes a file; returns the folder."""
    module = tf.Module()
    module.f = tf.function(lambda x: {"y": x * 2}, input_signature=[SPEC])
    module.spare = tf.function(
        lambda x: (tf.io.write_file(str(tmp_path / "target"), "x"), x)[1], input_signature=[SPEC]
    )
    tf.saved_model.save(module, str(tmp_path / "m"), signatures=module.f)
    return tmp_path / "m"


def test_a_function_that_nobody_calls_does_no_harm(tmp_path):
    subject = _load(_with_spare(tmp_path))
    np.testing.assert_array_equal(subject.model({"x": np.ones(2, np.float32)})[0], np.full(2, 2, np.float32))
    assert not (tmp_path / "target").exists()


def _rename_child(new):
    def change(meta):
        (child,) = [c for c in meta.object_graph_def.nodes[0].children if c.local_name == "spare"]
        child.local_name = new

    return change


def _spare_name(meta):
    return next(f.signature.name for f in meta.graph_def.library.function if "WriteFile" in str(f.node_def))


def _replace_the_called(meta):
    """Makes a node of the signature's function name the spare one in an attribute of what it calls."""
    for function in meta.graph_def.library.function:
        for node in function.node_def:
            if node.op in ("PartitionedCall", "StatefulPartitionedCall"):
                node.attr["f"].func.attr["g"].func.name = _spare_name(meta)


def _call_by_operator(meta):
    (serving,) = [f for f in meta.graph_def.library.function if "signature_wrapper" in f.signature.name]
    node = serving.node_def.add(name="evil", op=_spare_name(meta))
    node.input.append("x")


def _swap_by_interface(meta):
    for function in meta.graph_def.library.function:
        if function.signature.name == _spare_name(meta) or "signature_wrapper" in function.signature.name:
            function.attr["api_implements"].s = b"same"


def _as_gradient(meta):
    (serving,) = [f for f in meta.graph_def.library.function if "signature_wrapper" in f.signature.name]
    meta.graph_def.library.gradient.add(function_name=serving.signature.name, gradient_func=_spare_name(meta))


def _as_restore_function(meta):
    nodes = meta.object_graph_def.nodes
    (place,) = [c.node_id for c in nodes[0].children if c.local_name == "spare"]
    saveable = nodes[0].saveable_objects["_SERIALIZE_TO_TENSORS"]
    saveable.save_function = saveable.restore_function = place


@pytest.mark.parametrize(
    "change",
    [
        _rename_child("_restore_from_tensors"),
        _rename_child("_trackable_children"),
        _rename_child("__call__"),
        _replace_the_called,
        _call_by_operator,
        _swap_by_interface,
        _as_gradient,
        _as_restore_function,
    ],
)
def test_a_changed_file_gets_to_no_other_function(tmp_path, change):
    folder = _with_spare(tmp_path)
    _changed(folder, change)
    with pytest.raises(UsageError, match=r"operator WriteFile .*--trust-pickle"):
        _load(folder)
    assert not (tmp_path / "target").exists()


def test_an_address_that_the_caller_gives_is_refused(tmp_path):
    module = tf.Module()
    module.f = tf.function(lambda x: (tf.print(x), {"y": x})[1], input_signature=[SPEC])
    tf.saved_model.save(module, str(tmp_path / "m"), signatures=module.f)
    _load(tmp_path / "m")

    def change(meta):
        for function in meta.graph_def.library.function:
            for node in function.node_def:
                if node.op == "PrintV2":
                    node.attr["output_stream"].placeholder = "stream"

    _changed(tmp_path / "m", change)
    with pytest.raises(UsageError, match="operator PrintV2"):
        _load(tmp_path / "m")


def test_a_file_is_not_read_while_a_function_that_nobody_calls_is_loaded(tmp_path):
    module = tf.Module()
    module.f = tf.function(lambda x: {"y": x}, input_signature=[SPEC])
    module.spare = tf.function(lambda x: x + tf.strings.to_number(tf.io.read_file("/dev/zero")), input_signature=[SPEC])
    tf.saved_model.save(module, str(tmp_path / "m"), signatures=module.f)
    with pytest.raises(UsageError, match="operator ReadFile"):
        _load(tmp_path / "m")


def _older_format(folder, *, signature=None, initializer=None):
    """Saves a SavedModel of TensorFlow 1: one variable, y = x * v, and what the arguments add to the graph."""
    v1 = tf.compat.v1
    with tf.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder(tf.float32, (2,), "x")
        variable = v1.get_variable("v", initializer=tf.constant(3.0), use_resource=True)
        y = x * variable
        if signature is not None:
            with tf.control_dependencies([signature()]):
                y = tf.identity(y)
        init = None if initializer is None else initializer()
        session.run(v1.global_variables_initializer())
        builder = v1.saved_model.Builder(str(folder))
        builder.add_meta_graph_and_variables(
            session, ["serve"], main_op=init,
            signature_def_map={"serving_default": v1.saved_model.predict_signature_def({"x": x}, {"y": y})},
        )  # fmt: skip
        builder.save()


def test_a_model_of_the_older_format_runs(tmp_path):
    _older_format(tmp_path / "m")
    subject = _load(tmp_path / "m")
    np.testing.assert_array_equal(subject.model({"x": np.ones(2, np.float32)})[0], np.full(2, 3, np.float32))


@pytest.mark.parametrize("where", ["signature", "initializer"])
def test_a_model_of_the_older_format_that_writes_is_refused(tmp_path, where):
    def write():
        return tf.io.write_file(str(tmp_path / "target"), "x")

    _older_format(tmp_path / "m", **{where: write})
    with pytest.raises(UsageError, match=r"operator WriteFile .*main graph"):
        _load(tmp_path / "m")
    assert not (tmp_path / "target").exists()


def test_a_signature_does_not_run_the_restoring_of_the_older_format(tmp_path):
    _older_format(tmp_path / "m")

    def change(meta):
        (restore,) = [n for n in meta.graph_def.node if n.op == "RestoreV2"]
        (product,) = [n for n in meta.graph_def.node if n.op in ("Mul", "mul")]
        product.input[1] = restore.name

    _changed(tmp_path / "m", change)
    with pytest.raises(UsageError, match="operator RestoreV2"):
        _load(tmp_path / "m")


def test_usual_state_is_let_through(tmp_path):
    """Random numbers, loops over lists, printing, variables that change, recurrent layers."""
    model = tf.keras.Sequential([tf.keras.Input((4, 3)), tf.keras.layers.LSTM(2), tf.keras.layers.Dropout(0.5)])
    model.export(tmp_path / "lstm", verbose=False)
    assert _load(tmp_path / "lstm").model.inputs
    module = tf.Module()
    module.count = tf.Variable(0.0)

    def busy(x):
        module.count.assign_add(1.0)
        tf.print("x", x)
        tf.debugging.assert_all_finite(x, "finite")
        parts = tf.TensorArray(tf.float32, 3)
        for i in tf.range(3):
            parts = parts.write(i, x + tf.random.uniform((2,)))
        return {"y": parts.stack() + module.count}

    module.f = tf.function(busy, input_signature=[SPEC])
    tf.saved_model.save(module, str(tmp_path / "busy"), signatures=module.f)
    assert _load(tmp_path / "busy").model.inputs


def test_trust_lets_everything_through(tmp_path):
    module = tf.Module()
    module.f = tf.function(
        lambda x: (tf.io.write_file(str(tmp_path / "target"), "x"), {"y": x})[1], input_signature=[SPEC]
    )
    tf.saved_model.save(module, str(tmp_path / "m"), signatures=module.f)
    _load(tmp_path / "m", trust=True).model({"x": np.ones(2, np.float32)})
    assert (tmp_path / "target").exists()


@pytest.mark.parametrize("member", ["variables/variables.index", "variables", "assets/words"])
def test_a_link_out_of_the_folder_is_refused(tmp_path, member):
    tf.saved_model.save(tf.Module(), str(tmp_path / "m"))
    path = tmp_path / "m" / member
    if path.exists():
        path.rename(tmp_path / "elsewhere")
    else:
        (tmp_path / "elsewhere").write_text("a")
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UsageError, match=rf"'{member}' is a link to another place.*cp -rL"):
        _load(tmp_path / "m")


def test_a_pipe_in_the_folder_is_refused(tmp_path):
    tf.saved_model.save(tf.Module(), str(tmp_path / "m"))
    (tmp_path / "m" / "variables" / "variables.index").unlink(missing_ok=True)
    os.mkfifo(tmp_path / "m" / "variables" / "variables.index")
    with pytest.raises(UsageError, match="plain files"):
        _load(tmp_path / "m")


def _registered():
    from tensorflow.core.framework.op_def_pb2 import OpList
    from tensorflow.python.client import pywrap_tf_session

    operators = OpList()
    operators.ParseFromString(pywrap_tf_session.TF_GetBuffer(pywrap_tf_session.TF_GetAllOpList()))
    return operators.op


_HARMLESS = {
    "ShardedFilename", "ShardedFilespec",  # join text
    "ReaderNumRecordsProduced", "ReaderNumWorkUnitsCompleted", "ReaderReset",  # of a reader, which is refused itself
    "ReaderRestoreState", "ReaderSerializeState",
    "DecodeProtoV2", "EncodeProto",  # judged by where they take their descriptions from
    "DebugNumericSummaryV2", "DebugGradientIdentity", "DebugGradientRefIdentity",  # compute only
    "CTCBeamSearchDecoder",  # paths of a search
    "CopyOp", "CopyToMesh", "CopyToMeshGrad",  # of tests, and of meshes of devices
}  # fmt: skip


def test_every_operator_without_state_that_names_a_place_is_known():
    """Fails with a TensorFlow that brings new operators of this kind: they must be looked at."""
    words = re.compile(
        r"file|path|shard_dir|url|address|memory_region|descriptor_source|debug_ops_spec|graph_def|mlir_module"
    )
    kinds = re.compile(r"PyFunc|Reader|File|^Debug|^Copy|Rpc|Socket|Save|Restore")
    suspicious = {
        op.name
        for op in _registered()
        if not op.is_stateful
        and (kinds.search(op.name) or any(words.search(part.name) for part in (*op.input_arg, *op.attr)))
    }
    assert suspicious - REACHES_OUT - _HARMLESS == set()


def test_the_operators_that_are_let_through_keep_state_and_name_no_place():
    registered = {op.name: op for op in _registered()}
    assert set(registered) >= STAYS_INSIDE
    assert {name for name in STAYS_INSIDE if not registered[name].is_stateful} == set()
    words = re.compile("file|path|url|address|dir")
    direct = {"CudnnRNN", "CudnnRNNV2", "CudnnRNNV3"}
    named = {n for n in STAYS_INSIDE for p in (*registered[n].input_arg, *registered[n].attr) if words.search(p.name)}
    assert {name for name in named if not name.startswith(tuple(direct))} == set()
