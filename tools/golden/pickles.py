"""Checkpoints as PyTorch, Lightning and hard-nce write them, small and random, and what is in them.

Writes crates/loxia-model/tests/fixtures/checkpoints/: `base` (configuration and tokenizer of the model they
pretend to be trained from), the checkpoints, and golden.json (for every tensor its shape, sum and last value; the scores and
vectors PyTorch makes with the weights, of one pair laid out by layout_rules).

    python tools/golden/pickles.py
"""

import argparse
import json
import os
import shutil
from pathlib import Path

import layout_rules
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


# A mention and an entity, in pieces: every word of them is one piece of the vocabulary.
LEFT, MENTION, RIGHT = "a wood".split(), ["stove"], "burns logs".split()
TITLE, TEXT = ["stove"], "burns wood".split()
SPECIALS = layout_rules.Specials(cls=5, sep=6, start=1, end=2, tag=3)


def ids(words):
    return [VOCABULARY.index(word) for word in words]


def anncur_row():
    sides = ids(LEFT), ids(MENTION), ids(RIGHT), ids(TITLE), ids(TEXT)
    return layout_rules.anncur_pair(*sides, 128, 128, 256, SPECIALS, compat=True)


def hard_nce_row():
    return layout_rules.hard_nce_pair(ids(LEFT), ids(MENTION), ids(RIGHT), ids(TEXT), 256, SPECIALS, compat=True)


def anncur_sides():
    query = layout_rules.anncur_query(ids(LEFT), ids(MENTION), ids(RIGHT), 128, SPECIALS, compat=True)
    return query, layout_rules.anncur_item(ids(TITLE), ids(TEXT), 128, SPECIALS, compat=True)


def hard_nce_sides():
    query = layout_rules.hard_nce_query(ids(LEFT), ids(MENTION), ids(RIGHT), 128, SPECIALS, compat=True)
    return query, layout_rules.hard_nce_item(ids(TITLE), ids(TEXT), 128, SPECIALS, compat=True)


def run(config, state, row):
    """Last states and pooled first state of a row."""
    model = BertModel(config).eval()
    model.load_state_dict(state)
    tensor = lambda values: torch.tensor([values])
    with torch.no_grad():
        out = model(
            input_ids=tensor(row.ids), token_type_ids=tensor(row.types), position_ids=tensor(row.positions),
            attention_mask=torch.ones(1, len(row.ids), dtype=torch.long),
        )
    return out.last_hidden_state[0], out.pooler_output[0]


def scored(config, state, linear, row):
    """The head's logit, or without a head the product of states at marks."""
    states, pooled = run(config, state, row)
    if linear is not None:
        return (linear["weight"] @ pooled + linear["bias"])[0]
    start, end, tag = row.marks
    return 0.5 * (states[start] + states[end]) @ states[tag]


def vector(config, state, row):
    return run(config, state, row)[0][0].tolist()


def main():
    shutil.rmtree(OUT, ignore_errors=True)
    OUT.mkdir(parents=True)
    config = base()
    first, second = encoder(config, 1), encoder(config, 2)
    linear = {"weight": torch.randn(1, 12), "bias": torch.randn(1)}
    numbers = torch.arange(256).unsqueeze(0)
    lightning = dict(epoch=3, global_step=7, hyper_parameters={"config": Config()}, lr_schedulers=[{"last": 1.5}])

    # A plain state dictionary with a transposed view, a shared storage, a half tensor, a parameter.
    wide = torch.randn(6, 4)
    plain = {
        "transposed": wide.t(),
        "tail": wide[3:, 1:3],
        "half": torch.randn(5).half(),
        "parameter": torch.nn.Parameter(torch.randn(2, 3)),
        "position_ids": numbers,
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
    retriever["mention_encoder.embeddings.position_ids"] = numbers
    torch.save({"opt": options, "sd": retriever, "perf": 0.5}, OUT / "hard-nce-dual.pt")
    reranker = {**under("module.encoder.", first), **under("module.score_layer.1.", linear)}
    torch.save({"opt": options, "sd": reranker, "perf": 0.5}, OUT / "hard-nce-full.pt")

    torch.save({"weight": Evil(), "sound": wide}, OUT / "evil.bin")
    bare = {name: tensor for name, tensor in first.items() if not name.startswith("pooler.")}
    torch.save({**bare, "embeddings.LayerNorm.weight": Config()}, OUT / "opaque-wanted.bin")
    torch.save({**bare, "extra_state": Config()}, OUT / "opaque-unwanted.bin")
    torch.save({"weight": torch.tensor([1.0, 70000.0])}, OUT / "large.bin")
    torch.save({"weight": wide}, OUT / "legacy.bin", _use_new_zipfile_serialization=False)

    def described(state):
        return {
            name: [list(tensor.shape), float(tensor.double().sum()), float(tensor.double().flatten()[-1])]
            for name, tensor in state.items()
        }

    scores = {
        "anncur-cls.ckpt": float(scored(config, first, linear, anncur_row())),
        "anncur-emb.ckpt": float(scored(config, first, None, anncur_row())),
        "hard-nce-full.pt": float(scored(config, first, linear, hard_nce_row())),
    }
    sides = {"anncur-dual.ckpt": anncur_sides(), "hard-nce-dual.pt": hard_nce_sides()}
    vectors = {
        name: [vector(config, first, query), vector(config, second, item)] for name, (query, item) in sides.items()
    }
    golden = dict(scores=scores, vectors=vectors)
    golden |= dict(plain=described(plain), query=described(first), item=described(second), linear=described(linear))
    (OUT / "golden.json").write_text(json.dumps(golden) + "\n")


if __name__ == "__main__":
    main()
