"""A local folder of Hugging Face's layout: `config.json` names the class, `*.safetensors` hold the weights.

Nothing is downloaded and no code of the folder is run: a configuration that asks for code of its own is refused, and so
are pickled weights without the user's word.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from trueport.adapters.sources.fingerprint import sha256_of_module
from trueport.adapters.sources.global_state import preserved_global_state
from trueport.adapters.sources.loaded import LoadedSource, subject_from
from trueport.adapters.sources.registry import SourceRequest
from trueport.adapters.sources.torch_inputs import forward_parameters
from trueport.adapters.sources.wording import listed
from trueport.adapters.sources.zoo.architecture import InputSpec, mask, signal, tokens
from trueport.adapters.sources.zoo.build import values_of
from trueport.adapters.sources.zoo.calls import CALLS
from trueport.core.errors import MissingToolError, SourceError, UsageError
from trueport.core.subject import Example, Subject

_LARGEST_JSON_BYTES = 2**24
_LONGEST_TEXT = 12
_OWN_CODE = "write a file model.py with a function that builds the module, and check model.py:NAME"
_PICKLES = ("pytorch_model.bin", "pytorch_model.bin.index.json")
_WEIGHTS = ("model.safetensors", "model.safetensors.index.json")


def load(request: SourceRequest) -> Subject:
    """Returns the subject of a model folder, in eval mode and in the type that `config.json` names.

    Its class is the first of `architectures`. The example is drawn by the model's main input (token ids with a mask,
    an image, features of sound); `--inputs` and `--input-shape` replace it. Decoders run without a cache.

    Raises:
        UsageError: the configuration or the weights cannot be used, or are refused; the message says what to do.
        SourceError: transformers could not load the model.
        MissingToolError: transformers is not installed.
    """
    folder = Path(request.spec).expanduser()
    config = _configuration(folder)
    pickled = _weights_are_pickled(folder, trusted=request.trust_pickle)
    try:
        transformers = importlib.import_module("transformers")
    except ImportError as error:
        raise MissingToolError(request.spec, "pip install 'trueport[zoo]'") from error
    kind = _architecture(transformers, config, folder)
    with preserved_global_state(request.seed):
        model = _loaded(kind, folder, pickled=pickled)
    specs = _inputs(model, request)
    module = CALLS[tuple(spec.name for spec in specs)](model)
    module.eval().requires_grad_(requires_grad=False)
    rng = np.random.default_rng(request.seed)
    args = tuple(_typed(values_of(spec, rng), model) for spec in specs)
    name = folder.resolve().name
    return subject_from(LoadedSource(name, sha256_of_module(module), module, (Example(args),)), request)


def _configuration(folder: Path) -> Mapping[str, Any]:
    found = _json(folder / "config.json")
    if "auto_map" in found:
        raise UsageError(f"'{folder}' brings code of its own (auto_map in config.json), which is not run; {_OWN_CODE}")
    if "quantization_config" in found:
        raise UsageError(
            f"'{folder}' holds quantized weights (quantization_config in config.json), which need their own kernels; "
            f"{_OWN_CODE}"
        )
    return found


def _json(path: Path) -> Mapping[str, Any]:
    if not path.is_file():
        raise UsageError(f"expected '{path.parent}' to hold {path.name}, which says what the model is")
    size_bytes = path.stat().st_size
    if size_bytes > _LARGEST_JSON_BYTES:
        raise UsageError(f"expected '{path}' to be at most {_LARGEST_JSON_BYTES} bytes, got {size_bytes}")
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise UsageError(f"'{path}' is no readable JSON: {error}") from error
    if not isinstance(found, dict):
        raise UsageError(f"expected '{path}' to hold a JSON object, got {type(found).__name__}")
    return found


def _weights_are_pickled(folder: Path, *, trusted: bool) -> bool:
    """Returns which weights to load; safetensors come first where there are both."""
    if (folder / _WEIGHTS[0]).is_file():
        return False
    if (folder / _WEIGHTS[1]).is_file():
        _check_shards(folder, _json(folder / _WEIGHTS[1]))
        return False
    pickles = [name for name in _PICKLES if (folder / name).is_file()]
    if not pickles:
        others = sorted(path.name for path in folder.glob("*.safetensors"))
        came = f"; it holds {listed(others)}" if others else ""
        raise UsageError(f"expected '{folder}' to hold {_WEIGHTS[0]} or {_WEIGHTS[1]} with its parts{came}")
    if not trusted:
        raise UsageError(
            f"'{folder / pickles[0]}' is a pickle; loading it can run any code, so it is refused; save the model with "
            "model.save_pretrained(folder), which writes safetensors, or, if you trust its origin, repeat with "
            "--trust-pickle"
        )
    return True


def _check_shards(folder: Path, index: Mapping[str, Any]) -> None:
    """Raises for parts that are absent or lie outside of the folder."""
    table = index.get("weight_map")
    if not isinstance(table, dict) or not all(isinstance(name, str) for name in table.values()):
        raise UsageError(f"expected '{folder / _WEIGHTS[1]}' to hold a table weight_map from weights to files")
    names = sorted(set(table.values()))
    outside = [name for name in names if Path(name).name != name or name in ("", ".", "..")]
    if outside:
        raise UsageError(f"the index of '{folder}' names files outside of the folder: {listed(outside)}")
    absent = [name for name in names if not (folder / name).is_file()]
    if absent:
        raise UsageError(f"'{folder}' lacks {len(absent)} of its {len(names)} files of weights: {listed(absent)}")


def _architecture(transformers: Any, config: Mapping[str, Any], folder: Path) -> Any:
    """Returns the class of the model."""
    named = config.get("architectures")
    if not isinstance(named, list) or not named or not isinstance(named[0], str):
        raise UsageError(
            f"expected config.json of '{folder}' to name a class under 'architectures', got {named!r:.60}; {_OWN_CODE}"
        )
    found = getattr(transformers, named[0], None)
    if not (isinstance(found, type) and issubclass(found, transformers.PreTrainedModel)):
        raise UsageError(
            f"'{folder}' is a {named[0]}, which transformers {transformers.__version__} lacks; install another release "
            f"of transformers, or {_OWN_CODE}"
        )
    return found


def _loaded(kind: Any, folder: Path, *, pickled: bool) -> nn.Module:
    try:
        with _no_progress_bar():
            model, info = kind.from_pretrained(
                str(folder.resolve()),
                local_files_only=True,
                trust_remote_code=False,
                use_safetensors=not pickled,
                dtype="auto",
                output_loading_info=True,
            )
    except Exception as error:
        raise SourceError(f"'{folder}' cannot be loaded as {kind.__name__}: {type(error).__name__}: {error}") from error
    missing = sorted(map(str, info.get("missing_keys") or ()))
    if missing:
        raise UsageError(
            f"'{folder}' lacks {len(missing)} weights of {kind.__name__}, which would be random: {listed(missing)}"
        )
    model.config.use_cache = False
    loaded: nn.Module = model
    return loaded


@contextmanager
def _no_progress_bar() -> Iterator[None]:
    """Keeps the loading of weights off the user's terminal."""
    from transformers.utils import logging

    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()


def _inputs(model: Any, request: SourceRequest) -> tuple[InputSpec, ...]:
    """Returns the inputs of the model by its main one."""
    main, config = model.main_input_name, model.config
    if main == "input_ids":
        text = config.get_text_config()
        limit = getattr(text, "max_position_embeddings", None) or _LONGEST_TEXT
        length = min(_LONGEST_TEXT, int(limit))
        words = tokens(length=length, high=int(text.vocab_size))
        if config.is_encoder_decoder:
            return words, mask(length=length), tokens("decoder_input_ids", length, int(text.vocab_size))
        takes_mask = "attention_mask" in forward_parameters(model)
        return (words, mask(length=length)) if takes_mask else (words,)
    if main == "pixel_values":
        vision = getattr(config, "vision_config", config)
        size = getattr(vision, "image_size", None) or 224
        height, width = (size, size) if isinstance(size, int) else tuple(size)[:2]
        return (signal("pixel_values", 2, int(getattr(vision, "num_channels", 3)), height, width),)
    if main == "input_features" and config.is_encoder_decoder and hasattr(config, "max_source_positions"):
        frames = 2 * int(config.max_source_positions)
        return (
            signal("input_features", 1, int(config.num_mel_bins), frames),
            tokens("decoder_input_ids", 8, int(config.vocab_size)),
        )
    if main == "input_values":
        bins = getattr(config, "num_mel_bins", None)
        length = int(getattr(config, "max_length", 1024))
        return (signal("input_values", 2, length, int(bins)) if bins else signal("input_values", 2, 8000),)
    raise UsageError(f"no inputs are known for '{request.spec}', whose main input is '{main}'; {_OWN_CODE}")


def _typed(values: torch.Tensor, model: Any) -> torch.Tensor:
    """Returns values in the model's own type; integers stay."""
    return values.to(model.dtype) if values.is_floating_point() else values
