"""Checkpoints as PyTorch, Lightning and hard-nce write them, small and random, and what is in them.

Writes crates/loxia-model/tests/fixtures/checkpoints/: `base` (configuration and tokenizer of the model they
pretend to be trained from), the checkpoints, and golden.json (for every tensor its shape, sum and last value).

    python tools/golden/pickles.py
"""

import argparse
import json
import os
import shutil
from pathlib import Path

import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

OUT = Path(__file__).resolve().parents[2] / "crates/loxia-model/tests/fixtures/checkpoints"
WORDS = "a wood stove burns logs crossbill eats seeds of cones move walk".split()
VOCABULARY = ["[PAD]", "[unused0]", "[unused1]", "[unused2]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]


class Config:
    """Stands for the classes trainers pickle beside their weights."""

    def __init__(self):
        self.learning_rate = 1e-5


class Evil:
    def __reduce__(self):
        return os.system, ("echo this must never run",)


def base():
    tokenizer = Tokenizer(models.WordPiece({word: n for n, word in enumerate(VOCABULARY)}, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    ids = [("[CLS]", tokenizer.token_to_id("[CLS]")), ("[SEP]", tokenizer.token_to_id("[SEP]"))]
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=ids
    )
    names = dict(unk_token="[UNK]", sep_token="[SEP]", pad_token="[PAD]", cls_token="[CLS]", mask_token="[MASK]")
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_max_length=256, **names).save_pretrained(OUT / "base")
    config = BertConfig(
        vocab_size=len(VOCABULARY), hidden_size=12, num_attention_heads=2, num_hidden_layers=2, intermediate_size=10,
        max_position_embeddings=256,
    )
    config.save_pretrained(OUT / "base")
    return config


def encoder(config, seed):
    torch.manual_seed(seed)
    state = BertModel(config).state_dict()
    return {name: torch.randn_like(tensor) * 0.3 for name, tensor in state.items()}


def under(prefix, state):
    return {f"{prefix}{name}": tensor for name, tensor in state.items()}


def main():
    shutil.rmtree(OUT, ignore_errors=True)
    OUT.mkdir(parents=True)
    config = base()
    first, second = encoder(config, 1), encoder(config, 2)
    linear = {"weight": torch.randn(1, 12), "bias": torch.randn(1)}
    ids = torch.arange(256).unsqueeze(0)
    lightning = dict(epoch=3, global_step=7, hyper_parameters={"config": Config()}, lr_schedulers=[{"last": 1.5}])

    # A plain state dictionary with a transposed view, a shared storage, a half tensor, a parameter.
    wide = torch.randn(6, 4)
    plain = {
        "transposed": wide.t(),
        "tail": wide[3:, 1:3],
        "half": torch.randn(5).half(),
        "parameter": torch.nn.Parameter(torch.randn(2, 3)),
        "position_ids": ids,
        "scalar": torch.tensor(2.5),
    }
    torch.save(plain, OUT / "plain.bin")
    for protocol in (3, 4, 5):
        torch.save({"weight": wide[1:]}, OUT / f"protocol-{protocol}.bin", pickle_protocol=protocol)

    cls = {**under("model.encoder.bert_model.", first), **under("model.encoder.additional_linear.", linear)}
    torch.save({"state_dict": cls, **lightning}, OUT / "anncur-cls.ckpt")
    torch.save({"state_dict": under("model.encoder.bert_model.", first), **lightning}, OUT / "anncur-emb.ckpt")
    dual = {**under("model.input_encoder.bert_model.", first), **under("model.label_encoder.bert_model.", second)}
    torch.save({"state_dict": dual, **lightning}, OUT / "anncur-dual.ckpt")

    options = argparse.Namespace(lr=1e-5)
    retriever = {**under("mention_encoder.", first), **under("entity_encoder.", second)}
    retriever["mention_encoder.embeddings.position_ids"] = ids
    torch.save({"opt": options, "sd": retriever, "perf": 0.5}, OUT / "hard-nce-dual.pt")
    reranker = {**under("module.encoder.", first), **under("module.score_layer.1.", linear)}
    torch.save({"opt": options, "sd": reranker, "perf": 0.5}, OUT / "hard-nce-full.pt")

    torch.save({"weight": Evil(), "sound": wide}, OUT / "evil.bin")
    torch.save({"weight": wide}, OUT / "legacy.bin", _use_new_zipfile_serialization=False)

    def described(state):
        return {
            name: [list(tensor.shape), float(tensor.double().sum()), float(tensor.double().flatten()[-1])]
            for name, tensor in state.items()
        }

    golden = dict(plain=described(plain), query=described(first), item=described(second), linear=described(linear))
    (OUT / "golden.json").write_text(json.dumps(golden) + "\n")


if __name__ == "__main__":
    main()
