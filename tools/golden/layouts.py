"""Makes the layout goldens of loxia-model from a second implementation of the published rules.

The rules are in `layout_rules.py`, first written from the notes on these systems without sight of the Rust code;
here are the cases, the way of their texts into pieces, and the files. Layout `pair` is transformers itself.
Writes to crates/loxia-model/tests/fixtures/layouts/:

    cases.jsonl.gz     1,000 cases: L, left, mention, right (left is null: a plain query), title, text
    expected.jsonl.gz  a line for each setting: layout, compat, mark_mention; `crc`: for each case the CRC-32 of
                       pair, query alone and item alone; `full`: every 50th case written out

What a CRC covers, each number a little-endian i32: number of tokens, ids, types, positions, the indices of
mention start, mention end and tag (-1: none), and 1 if anything was cut.

Usage: python tools/golden/layouts.py         (LOXIA_TEST_DATA: default ../shared/data)
"""

import gzip
import json
import os
import random
import struct
import zlib
from pathlib import Path

import layout_rules
from transformers import AutoTokenizer

ROOT = Path(__file__).resolve().parents[2]
DATA = Path(os.environ.get("LOXIA_TEST_DATA", ROOT.parent / "shared" / "data"))
FIXTURES = ROOT / "crates/loxia-model/tests/fixtures"
TOKENIZER = AutoTokenizer.from_pretrained(FIXTURES / "tokenizers/wordpiece")
assert TOKENIZER.pad_token_id == layout_rules.PAD
SPECIALS = layout_rules.Specials(
    TOKENIZER.cls_token_id, TOKENIZER.sep_token_id, *(TOKENIZER.convert_tokens_to_ids(f"[unused{i}]") for i in range(3))
)


def pieces(text):
    return TOKENIZER(text, add_special_tokens=False, verbose=False)["input_ids"]


def finish(row):
    """A `Row` as the fixture writes it."""
    marks = [-1 if mark is None else mark for mark in row.marks]
    return {"ids": row.ids, "types": row.types, "positions": row.positions, "marks": marks, "cut": int(row.truncated)}


def parts(case):
    """Left context, mention, right context; a plain query is a mention without contexts."""
    return ("", case["mention"], "") if case["left"] is None else (case["left"], case["mention"], case["right"])


# --- the published layouts --------------------------------------------------------------------------------

def rows(case, compat, rules, max_length, lower):
    """Pair, query alone and item alone by three functions of one system with two complete rows."""
    pair_rule, query_rule, item_rule = rules
    texts = [part.lower() if lower else part for part in parts(case)]
    query = [pieces(text) for text in texts]
    item = [pieces(case["title"] or ""), pieces(case["text"])]
    length, quirks = case["L"], {"compat": compat is not None}
    mention = {"has_mention": texts[1] != ""}
    return (
        finish(pair_rule(*query, *item, length, length, max_length, SPECIALS, **mention, **quirks)),
        finish(query_rule(*query, length, SPECIALS, **mention, **quirks)),
        finish(item_rule(*item, length, SPECIALS, **quirks)),
    )


def anncur(case, compat, _):
    """Mention and contexts are lower-cased before they are tokenised, titles and texts are not."""
    rules = layout_rules.anncur_pair, layout_rules.anncur_query, layout_rules.anncur_item
    return rows(case, compat, rules, 2 * case["L"], lower=True)


def blink(case, compat, _):
    """Lower-casing belongs to BLINK's files, not to its layout. The compat limit is one that binds."""
    rules = layout_rules.blink_pair, layout_rules.blink_query, layout_rules.blink_item
    max_length = 2 * case["L"] - (6 if compat else 0)
    return rows(case, compat, rules, max_length, lower=False)


def near_words(case, count):
    """Pieces of mention and contexts of at most `count` words, and whether there were more words."""
    left, mention, right = parts(case)
    (left, left_cut), (right, right_cut) = layout_rules.last_words(left, count), layout_rules.first_words(right, count)
    return [pieces(left), pieces(" ".join(mention.split())), pieces(right)], left_cut or right_cut


def hard_nce(case, compat, mark_mention):
    length, quirks = case["L"], {"compat": compat is not None}
    budget, item_budget = layout_rules.reranker_budgets(2 * length)
    query, query_cut = near_words(case, budget)
    text, text_cut = layout_rules.first_words(case["text"], item_budget)
    pair = layout_rules.hard_nce_pair(*query, pieces(text), 2 * length, SPECIALS, mark_mention=mark_mention, **quirks)
    pair.truncated |= query_cut or text_cut

    query, query_cut = near_words(case, layout_rules.retriever_words(length))
    single = layout_rules.hard_nce_query(*query, length, SPECIALS, **quirks)
    single.truncated |= query_cut
    item = layout_rules.hard_nce_item(pieces(case["title"] or ""), pieces(case["text"]), length, SPECIALS, **quirks)
    return finish(pair), finish(single), finish(item)


# --- the tokenizer's own template -------------------------------------------------------------------------

def pair(case, _, __):
    limit = case["L"]
    query = " ".join(part.strip() for part in parts(case) if part.strip()) if case["left"] is not None \
        else case["mention"]
    item = case["text"] if case["title"] is None else f"{case['title']} {case['text']}".strip()

    def encode(*texts):
        # In lists, as sentence-transformers calls it: a lone empty second text would count as none.
        texts = [[text] for text in texts]
        got = TOKENIZER(*texts, truncation=True, max_length=limit)
        whole = TOKENIZER(*texts, verbose=False)["input_ids"][0]
        ids = got["input_ids"][0]
        row = layout_rules.Row(ids, got["token_type_ids"][0], list(range(len(ids))))
        row.truncated = len(ids) < len(whole)
        return finish(row)

    return encode(query, item), encode(query), encode(item)


# --- cases ------------------------------------------------------------------------------------------------

def cases():
    draw = random.Random(7)
    words = []
    with gzip.open(DATA / "wordnet-worlds/documents/verb.motion.jsonl.gz", "rt") as file:
        for line in file:
            words += json.loads(line)["text"].split()
    odd = ["[SEP]", "[PAD]", "[unused0]", "[UNUSED1]", "[unused2]", "漢字", "😀", "Café", "\x01", "\u200b", "İI", "a-b",
           "x" * 120, "ΣΑΣ"]

    def text(length):
        """About as many pieces as asked for: words until they are enough, then single letters."""
        chosen, count = [], 0
        while count < length:
            word = draw.choice(odd) if draw.random() < 0.03 else draw.choice(words)
            if length - count < 5:
                word = draw.choice("abcde")
            chosen.append(word.capitalize() if draw.random() < 0.1 else word)
            count += len(pieces(word))
        return draw.choice([" ", " ", " ", "  "]).join(chosen)

    made = []
    for number in range(1000):
        length = (16, 32, 64, 128)[number % 4]
        near = draw.randrange(max(length - 8, 0), length + 3)
        mention = draw.choice([0, 1, 2, 3, 5, near, near, length // 2, 2 * length])
        side = lambda: draw.choice([0, 1, length // 2 - 3, length // 2, length // 4, length, 3 * length])
        title = draw.choice([None, "", text(2), text(2), text(draw.randrange(length - 5, length + 2)), text(2 * length)])
        made.append({
            "L": length,
            "left": None if number % 37 == 0 else text(side()),
            "mention": draw.choice(["", " ", "\x01"]) if mention == 0 else text(mention),
            "right": text(side()),
            "title": title,
            "text": text(draw.choice([0, 1, length // 2, length, 2 * length + 5])),
        })
    return made


def digest(sequence):
    numbers = [len(sequence["ids"]), *sequence["ids"], *sequence["types"], *sequence["positions"],
               *sequence["marks"], sequence["cut"]]
    return zlib.crc32(struct.pack(f"<{len(numbers)}i", *numbers))


def write(name, rows):
    (FIXTURES / "layouts").mkdir(exist_ok=True)
    with gzip.GzipFile(FIXTURES / "layouts" / name, "wb", mtime=0) as file:
        for row in rows:
            file.write((json.dumps(row, ensure_ascii=False, separators=(",", ":")) + "\n").encode())


def main():
    made = cases()
    write("cases.jsonl.gz", made)
    expected = []
    for layout, rule in (("pair", pair), ("anncur", anncur), ("hard-nce", hard_nce), ("blink", blink)):
        for compat in ([None] if layout == "pair" else [None, layout]):
            for mark_mention in ([False, True] if layout == "hard-nce" else [False]):
                results = [rule(case, compat, mark_mention) for case in made]
                print(layout, compat, mark_mention, sum(result[0]["cut"] for result in results), "of 1000 cut")
                expected.append({
                    "layout": layout, "compat": compat, "mark_mention": mark_mention,
                    "crc": [[digest(sequence) for sequence in result] for result in results],
                    "full": [results[at] for at in range(0, 1000, 50)],
                })
    write("expected.jsonl.gz", expected)


if __name__ == "__main__":
    main()
