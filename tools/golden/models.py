"""Tiny random models of every family, with what transformers computes for them.

Writes crates/loxia-model/tests/fixtures/models/FAMILY-SIZE/: a Hugging Face directory (config, weights,
tokenizer) and golden.json (token ids, hidden states and logits in float32). The three sizes have odd widths,
odd head counts and one head, and their weights are stored as f16, f32 and bf16.

    python tools/golden/models.py
"""

import json
import shutil
from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import (
    AutoConfig,
    AutoModelForSequenceClassification,
    AutoTokenizer,
    PreTrainedTokenizerFast,
)

OUT = Path(__file__).resolve().parents[2] / "crates/loxia-model/tests/fixtures/models"

WORDS = (
    "crossbills feed on conifer seeds which they prise from cones with their crossed bills a wood stove burns "
    "logs and pellets the finch family lives in northern forests birds wander far when cones are few ranking "
    "documents for queries needs good scores one model reads both texts at once another reads each alone"
).split()

PAIRS = [
    ("crossbills feed", "they prise seeds from cones with crossed bills"),
    ("stove", "a wood stove burns logs"),
    ("which birds wander far", "finch"),
    ("unseen zebra words", "Ranking, documents! needs; good scores 42"),
    ("a {pad} inside", "one {pad} {pad} model reads"),
]

SIZES = {
    "odd": dict(hidden=36, heads=3, wide=50, layers=2, embedding=20, labels=1, dtype=torch.float16),
    "one-head": dict(hidden=33, heads=1, wide=21, layers=1, embedding=17, labels=2, dtype=torch.float32),
    "even": dict(hidden=48, heads=4, wide=30, layers=1, embedding=48, labels=3, dtype=torch.bfloat16),
}

BERT = dict(unk="[UNK]", sep="[SEP]", pad="[PAD]", cls="[CLS]", mask="[MASK]")
ROBERTA = dict(unk="<unk>", sep="</s>", pad="<pad>", cls="<s>", mask="<mask>")


def template(names, doubled, ids, second_type):
    cls, sep = names["cls"], names["sep"]
    middle = f"{sep} {sep}" if doubled else sep
    return processors.TemplateProcessing(
        single=f"{cls} $A {sep}",
        pair=f"{cls} $A {middle} $B:{second_type} {sep}:{second_type}",
        special_tokens=[(cls, ids(cls)), (sep, ids(sep))],
    )


def wordpiece(names, order, doubled=False, second_type=1):
    tokenizer = Tokenizer(models.WordPiece(unk_token=names["unk"]))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    trainer = trainers.WordPieceTrainer(vocab_size=120, special_tokens=[names[n] for n in order], show_progress=False)
    tokenizer.train_from_iterator([" ".join(WORDS)] * 3, trainer)
    tokenizer.post_processor = template(names, doubled, tokenizer.token_to_id, second_type)
    return tokenizer


def byte_bpe(names, order):
    tokenizer = Tokenizer(models.BPE(unk_token=names["unk"]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=120, special_tokens=[names[n] for n in order], show_progress=False)
    tokenizer.train_from_iterator([" ".join(WORDS)] * 3, trainer)
    tokenizer.post_processor = template(names, True, tokenizer.token_to_id, 0)
    return tokenizer


def unigram(names, order):
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizers.NFKC()
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    trainer = trainers.UnigramTrainer(
        vocab_size=110, special_tokens=[names[n] for n in order], unk_token=names["unk"], show_progress=False
    )
    tokenizer.train_from_iterator([" ".join(WORDS)] * 3, trainer)
    tokenizer.post_processor = template(names, True, tokenizer.token_to_id, 0)
    return tokenizer


BERT_ORDER = ["pad", "unk", "cls", "sep", "mask"]
ROBERTA_ORDER = ["cls", "pad", "sep", "unk", "mask"]
FAMILIES = {
    "bert": (BERT, lambda: wordpiece(BERT, BERT_ORDER)),
    "roberta": (ROBERTA, lambda: byte_bpe(ROBERTA, ROBERTA_ORDER)),
    "xlm-roberta": (ROBERTA, lambda: unigram(ROBERTA, ROBERTA_ORDER)),
    "electra": (BERT, lambda: wordpiece(BERT, BERT_ORDER)),
    "distilbert": (BERT, lambda: wordpiece(BERT, BERT_ORDER, second_type=0)),
    "mpnet": (ROBERTA, lambda: wordpiece(ROBERTA, ROBERTA_ORDER, doubled=True, second_type=0)),
}


def config(family, size, tokenizer, names):
    common = dict(
        vocab_size=tokenizer.get_vocab_size(),
        max_position_embeddings=44,
        pad_token_id=tokenizer.token_to_id(names["pad"]),
        bos_token_id=tokenizer.token_to_id(names["cls"]),
        eos_token_id=tokenizer.token_to_id(names["sep"]),
        num_labels=size["labels"],
    )
    if family == "distilbert":
        common |= dict(dim=size["hidden"], n_heads=size["heads"], hidden_dim=size["wide"], n_layers=size["layers"])
    else:
        common |= dict(
            hidden_size=size["hidden"],
            num_attention_heads=size["heads"],
            intermediate_size=size["wide"],
            num_hidden_layers=size["layers"],
        )
    if family in ("roberta", "xlm-roberta"):
        common |= dict(type_vocab_size=1)
    if family == "electra":
        common |= dict(embedding_size=size["embedding"])
    return AutoConfig.for_model(family, **common)


def rounded(tensor):
    return [float(f"{value:.7g}") for value in tensor.flatten().tolist()]


def write(family, size_name):
    names, build = FAMILIES[family]
    size = SIZES[size_name]
    directory = OUT / f"{family}-{size_name}"
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    fast = PreTrainedTokenizerFast(
        tokenizer_object=build(),
        model_max_length=40,
        model_input_names=["input_ids"] + ["token_type_ids"] * (family in ("bert", "electra")) + ["attention_mask"],
        **{f"{role}_token": token for role, token in names.items()},
    )
    fast.save_pretrained(directory)
    # The name of the class that releases 4 and 5 of transformers both know.
    settings = json.loads((directory / "tokenizer_config.json").read_text())
    settings["tokenizer_class"] = "PreTrainedTokenizerFast"
    (directory / "tokenizer_config.json").write_text(json.dumps(settings, indent=2) + "\n")
    tokenizer = AutoTokenizer.from_pretrained(directory)

    torch.manual_seed(len(family) * 100 + size["hidden"])
    model = AutoModelForSequenceClassification.from_config(config(family, size, fast.backend_tokenizer, names))
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            centre = 1.0 if "norm" in name.lower() and name.endswith("weight") else 0.0
            parameter.copy_(centre + 0.25 * torch.randn_like(parameter))
    model.to(size["dtype"]).save_pretrained(directory)
    model = AutoModelForSequenceClassification.from_pretrained(directory, dtype=torch.float32).eval()

    pairs = []
    for query, item in PAIRS:
        query, item = query.format(pad=names["pad"]), item.format(pad=names["pad"])
        batch = tokenizer(query, item, return_tensors="pt", truncation=True)
        inputs = {"input_ids": batch["input_ids"], "attention_mask": torch.ones_like(batch["input_ids"])}
        if family in ("bert", "electra"):
            inputs["token_type_ids"] = batch["token_type_ids"]
        with torch.no_grad():
            output = model(**inputs, output_hidden_states=True)
        pairs.append(
            dict(
                query=query,
                item=item,
                ids=batch["input_ids"][0].tolist(),
                logits=rounded(output.logits),
                # Two sequences' states are enough, one of them with padding tokens inside.
                states=rounded(output.hidden_states[-1]) if len(pairs) in (0, 4) else [],
            )
        )
    (directory / "golden.json").write_text(json.dumps(dict(pairs=pairs)) + "\n")


if __name__ == "__main__":
    for family in FAMILIES:
        for size_name in SIZES:
            write(family, size_name)
