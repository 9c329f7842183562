"""Local folders of Hugging Face's layout."""

from __future__ import annotations

import json

import pytest
import torch
from transformers import BertConfig, BertForSequenceClassification, GPT2Config, GPT2LMHeadModel, ViTConfig, ViTModel

from trueport.adapters.sources import load_subject
from trueport.adapters.sources.huggingface_folder import load
from trueport.adapters.sources.registry import SourceRequest
from trueport.core.errors import SourceError, UsageError

pytestmark = pytest.mark.filterwarnings("ignore")
SMALL = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}


def bert():
    return BertForSequenceClassification(BertConfig(vocab_size=50, max_position_embeddings=16, **SMALL)).eval()


def request(folder, *, trust_pickle=False):
    return SourceRequest(str(folder), trust_pickle, None, {}, 0)


def changed(folder, **values):
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | values))


@pytest.fixture
def folder(tmp_path):
    bert().save_pretrained(tmp_path)
    return tmp_path


def test_weights_and_outputs_are_those_of_the_folder(tmp_path):
    model = bert()
    model.save_pretrained(tmp_path)
    subject = load_subject(str(tmp_path))
    ids, mask = subject.examples[0].args
    assert ids.shape == mask.shape == (2, 12)
    assert int(ids.max()) < 50
    assert not subject.model.training
    torch.testing.assert_close(subject.model(ids, mask)[0], model(ids, attention_mask=mask).logits)
    assert subject.sha256 == load_subject(str(tmp_path)).sha256


def test_parts_are_found_by_their_index(tmp_path):
    bert().save_pretrained(tmp_path, max_shard_size="5KB")
    assert (tmp_path / "model.safetensors.index.json").is_file()
    part = sorted(tmp_path.glob("model-*.safetensors"))[0]
    assert load(request(tmp_path)).model is not None
    index = tmp_path / "model.safetensors.index.json"
    table = json.loads(index.read_text())
    part.unlink()
    with pytest.raises(UsageError, match="lacks 1 of its"):
        load(request(tmp_path))
    table["weight_map"] = dict.fromkeys(table["weight_map"], "../other.safetensors")
    index.write_text(json.dumps(table))
    with pytest.raises(UsageError, match="outside of the folder"):
        load(request(tmp_path))


def test_the_type_is_that_of_the_configuration(tmp_path):
    ViTModel(ViTConfig(image_size=16, patch_size=8, **SMALL)).to(torch.bfloat16).save_pretrained(tmp_path)
    subject = load(request(tmp_path))
    assert subject.examples[0].args[0].dtype is torch.bfloat16
    assert subject.examples[0].args[0].shape == (2, 3, 16, 16)


def test_a_decoder_has_no_cache_among_its_outputs(tmp_path):
    config = GPT2Config(vocab_size=50, n_embd=16, n_layer=1, n_head=2, n_positions=32, bos_token_id=1, eos_token_id=2)
    GPT2LMHeadModel(config).save_pretrained(tmp_path)
    subject = load(request(tmp_path))
    assert len(subject.model(*subject.examples[0].args)) == 1


def test_code_of_the_folder_is_never_run(folder):
    (folder / "modeling_x.py").write_text("raise SystemExit(7)")
    changed(folder, auto_map={"AutoModel": "modeling_x.X"})
    with pytest.raises(UsageError, match=r"code of its own.*model\.py:NAME"):
        load(request(folder, trust_pickle=True))


def test_pickles_need_the_word(folder):
    weights = folder / "model.safetensors"
    torch.save(bert().state_dict(), folder / "pytorch_model.bin")
    weights.unlink()
    with pytest.raises(UsageError, match=r"is a pickle.*--trust-pickle"):
        load(request(folder))
    assert load(request(folder, trust_pickle=True)).model is not None


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"architectures": None}, "to name a class under 'architectures', got None"),
        ({"architectures": ["NoSuchModel"]}, "is a NoSuchModel, which transformers"),
        ({"architectures": ["BertConfig"]}, "is a BertConfig, which transformers"),
        ({"architectures": ["BertForMaskedLM"]}, "lacks .* weights of BertForMaskedLM, which would be random"),
        ({"quantization_config": {"quant_method": "gptq"}}, "quantized weights"),
    ],
)
def test_configurations_that_cannot_be_used(folder, values, message):
    changed(folder, **values)
    with pytest.raises(UsageError, match=message):
        load(request(folder))


def test_damaged_files(folder):
    (folder / "model.safetensors").write_bytes(b"\x08")
    with pytest.raises(SourceError, match="cannot be loaded as BertForSequenceClassification"):
        load(request(folder))
    (folder / "config.json").write_text("[1]")
    with pytest.raises(UsageError, match="to hold a JSON object, got list"):
        load(request(folder))
    (folder / "config.json").write_text("{")
    with pytest.raises(UsageError, match="no readable JSON"):
        load(request(folder))


def test_weights_under_another_name(folder):
    (folder / "model.safetensors").rename(folder / "other.safetensors")
    with pytest.raises(UsageError, match=r"it holds other\.safetensors"):
        load(request(folder))
