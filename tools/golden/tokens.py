"""Makes the tokenisation goldens of loxia-model.

Trains small tokenizers on WordNet glosses, loads each through transformers, and writes to
crates/loxia-model/tests/fixtures/tokenizers/:

    <name>/               the files of a tokenizer, as a model directory would hold them
    lines.jsonl.gz        10,000 texts, one JSON string a line
    <name>.crc            u32 CRC-32 over the ids of all lines, then a u16 for each line (CRC-32 of its ids,
                          halves xored); ids are little-endian u32, without special tokens
    templates.json        ids and types of a single text and of a pair, special tokens included

Usage: python tools/golden/tokens.py          (LOXIA_TEST_DATA: default ../shared/data)
"""

import gzip
import json
import os
import random
import shutil
import struct
import zlib
from pathlib import Path

from tokenizers import Tokenizer, models, pre_tokenizers, trainers, normalizers
from transformers import AutoTokenizer, BertTokenizer, MPNetTokenizer, RobertaTokenizer, XLMRobertaTokenizer

ROOT = Path(__file__).resolve().parents[2]
DATA = Path(os.environ.get("LOXIA_TEST_DATA", ROOT.parent / "shared" / "data"))
OUT = ROOT / "crates/loxia-model/tests/fixtures/tokenizers"
COUNT = 10_000

SPECIAL = ["[SEP]", "[CLS]", "[MASK]", "[UNK]", "[PAD]", "[unused0]", "[sep]", "<s>", "</s>", "<mask>", "<unk>",
           "<pad>", " <mask> ", "[SEP][SEP]", "x[MASK]y", "[ SEP ]"]
EMOJI = ["😀", "👩‍👩‍👧‍👦", "👍🏽", "🇫🇮", "❤️", "🏴󠁧󠁢󠁥󠁮󠁧󠁿", "☃", "🫠", "1️⃣"]
SCRIPTS = ["漢字", "日本語の文章", "カタカナ", "한국어 텍스트", "中文分词", "ไทย", "हिन्दी", "العربية", "עברית שלום",
           "Ελληνικάς ΣΑΣ", "Русский ЁЖ", "Tiếng Việt", "İstanbul ıI", "ﬁ ﬂ Ǆ", "Åström naïve café", "ÅÄÖ",
           "𝕳𝖊𝖑𝖑𝖔", "𠀀𠀁", "豈", "ﷺ", "①②", "½ ⅓", "ß ẞ", "e\u0301\u0323 e\u0323\u0301", "a\u0300\u0301\u0302",
           "\u0301lone", " \u0308 ", "\u1100\u1161\u11a8"]
CONTROL = ["\x00", "\x01\x02", "a\x0bb", "a\x0cb", "x\x1cy", "\x7f", "\x85", "\u200b", "\u200d", "\ufeff", "\u00ad",
           "\u202eabc\u202c", "\u2028", "\u2029", "\u00a0", "\u3000", "\u1680", "\ufffd", "\ue000", "\U000f0000",
           "\u0378", "\r", "\n", "\r\n", "\t", "\u180e", "\u2060"]
OTHER = ["https://example.org/a/b?c=d&e=%20#f", "user@example.com", "3.14159", "1,000,000", "-1e-9", "C++", "don't",
         "we'll they've I'd", "...", "—", "“quoted”", "a_b-c/d", "$5 €6 ¥7", "#tag @name", "{}[]()<>", "\\n", "'s 's",
         "2024-01-31", "0x1F", "x²", "~", "^", "`", "|", "§", "¿qué?", "a" * 99, "b" * 100, "c" * 101, "∑∫√"]


def words():
    found = []
    for world in ["verb.motion", "noun.plant", "adj.pert"]:
        with gzip.open(DATA / "wordnet-worlds/documents" / f"{world}.jsonl.gz", "rt") as file:
            for line in file:
                found += json.loads(line)["text"].split()
    return found


def texts(vocabulary):
    draw = random.Random(20)
    lines = ["", " ", "   ", "\t\n\r ", "\u00a0", "\u200b"] + SPECIAL + EMOJI + SCRIPTS + CONTROL + OTHER
    block = " ".join(draw.choice(vocabulary) for _ in range(300))
    odd = " ".join(draw.choice(EMOJI + SCRIPTS + CONTROL + OTHER + SPECIAL) for _ in range(300))
    for unit in [block + " ", block + " " + odd + " ", "a", "漢字", "😀", "ab12!?", " ", "word\u00a0", "<mask> [SEP] x "]:
        lines.append((unit * (100_000 // len(unit) + 1))[:100_000])
    while len(lines) < COUNT:
        parts = []
        for _ in range(draw.choice([1, 2, 3, 5, 8, 12])):
            kind = draw.random()
            if kind < 0.72:
                word = draw.choice(vocabulary)
                word = draw.choice([word, word, word, word.capitalize(), word.upper()])
            elif kind < 0.94:
                word = draw.choice(draw.choice([SPECIAL, EMOJI, SCRIPTS, CONTROL, OTHER]))
            else:
                plane = draw.choice([0x80, 0x250, 0x3000, 0xFFFF, 0x1FFFF])
                word = "".join(chr(draw.randrange(0x20, plane)) for _ in range(draw.randrange(1, 4)))
                word = "".join(c for c in word if not 0xD800 <= ord(c) < 0xE000)
            parts += [word, draw.choice([" ", " ", " ", " ", " ", "  ", "", "\t", "\n"])]
        lines.append("".join(parts))
    return lines


def train(model, trainer, corpus, normalizer=None, pre=None):
    tokenizer = Tokenizer(model)
    if normalizer:
        tokenizer.normalizer = normalizer
    tokenizer.pre_tokenizer = pre
    tokenizer.train_from_iterator(corpus, trainer)
    return json.loads(tokenizer.to_str())["model"]


def build(corpus):
    bert = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    roberta = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    mpnet = ["<s>", "<pad>", "</s>", "<unk>", "[UNK]", "<mask>"]

    def pieces(special, lower):
        trainer = trainers.WordPieceTrainer(vocab_size=1500, special_tokens=special, show_progress=False)
        normalizer = normalizers.BertNormalizer(lowercase=lower)
        return train(models.WordPiece(unk_token="[UNK]"), trainer, corpus, normalizer,
                     pre_tokenizers.BertPreTokenizer())["vocab"]

    def save(name, tokenizer, keep=None):
        directory = OUT / name
        shutil.rmtree(directory, ignore_errors=True)
        tokenizer.save_pretrained(directory)
        for file in directory.iterdir():
            if keep and file.name not in keep:
                file.unlink()
        return directory

    cased = pieces(bert, False)
    save("wordpiece-cased", BertTokenizer(cased, do_lower_case=False))
    # Settings that contradict the stored normaliser: the settings win.
    directory = save("wordpiece-overruled", BertTokenizer(cased, do_lower_case=False))
    edit(directory, do_lower_case=True, strip_accents=False, tokenize_chinese_chars=False)
    directory = save("vocab-txt", BertTokenizer(cased, do_lower_case=False), keep=["tokenizer_config.json"])
    edit(directory, do_lower_case=True, strip_accents=None)
    by_id = sorted(cased, key=cased.get)
    (directory / "vocab.txt").write_text("".join(token + "\n" for token in by_id), encoding="utf-8")

    save("mpnet", MPNetTokenizer(pieces(mpnet, True)))

    trainer = trainers.BpeTrainer(vocab_size=1500, special_tokens=roberta, show_progress=False,
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    model = train(models.BPE(), trainer, corpus, pre=pre_tokenizers.ByteLevel(add_prefix_space=False))
    merges = [tuple(merge) if isinstance(merge, list) else tuple(merge.split(" ")) for merge in model["merges"]]
    save("roberta", RobertaTokenizer(model["vocab"], merges))
    directory = save("vocab-merges", RobertaTokenizer(model["vocab"], merges), keep=["tokenizer_config.json"])
    (directory / "vocab.json").write_text(json.dumps(model["vocab"], ensure_ascii=False), encoding="utf-8")
    (directory / "merges.txt").write_text(
        "#version: 0.2\n" + "".join(f"{a} {b}\n" for a, b in merges), encoding="utf-8")

    trainer = trainers.UnigramTrainer(vocab_size=1500, special_tokens=roberta, unk_token="<unk>", show_progress=False)
    pre = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()])
    model = train(models.Unigram(), trainer, corpus, pre=pre)
    save("xlm-roberta", XLMRobertaTokenizer([tuple(piece) for piece in model["vocab"]]))


def edit(directory, **settings):
    path = directory / "tokenizer_config.json"
    config = json.loads(path.read_text())
    config.update(settings)
    path.write_text(json.dumps(config, indent=2) + "\n")


def main():
    vocabulary = words()
    corpus = [" ".join(vocabulary[start:start + 20]) for start in range(0, len(vocabulary), 20)]
    corpus += [word.capitalize() for word in vocabulary[::7]] + SCRIPTS
    build(corpus)
    lines = texts(vocabulary)
    with gzip.GzipFile(OUT / "lines.jsonl.gz", "wb", mtime=0) as file:
        for line in lines:
            file.write((json.dumps(line, ensure_ascii=False) + "\n").encode())
    templates = {}
    for directory in sorted(path for path in OUT.iterdir() if path.is_dir()):
        tokenizer = AutoTokenizer.from_pretrained(directory)
        print(directory.name, type(tokenizer).__name__, len(tokenizer))
        total, each = 0, []
        for line in lines:
            ids = tokenizer(line, add_special_tokens=False)["input_ids"]
            packed = struct.pack(f"<{len(ids)}I", *ids)
            total, crc = zlib.crc32(packed, total), zlib.crc32(packed)
            each.append((crc >> 16) ^ (crc & 0xFFFF))
        (OUT / f"{directory.name}.crc").write_bytes(struct.pack(f"<I{len(each)}H", total, *each))
        single = tokenizer("seed plant", return_token_type_ids=True)
        pair = tokenizer("seed plant", "to walk", return_token_type_ids=True)
        templates[directory.name] = {
            "single": [single["input_ids"], single["token_type_ids"]],
            "pair": [pair["input_ids"], pair["token_type_ids"]],
        }
    (OUT / "templates.json").write_text(json.dumps(templates) + "\n")


if __name__ == "__main__":
    main()
