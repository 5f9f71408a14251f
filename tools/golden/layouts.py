"""Makes the layout goldens of loxia-model: a second implementation of the published rules.

It shares no code with the Rust one and works on whole token lists of a transformers tokenizer. ANNCUR and
BLINK follow the notes on these systems; for hard-nce-el the original windows were read as well (what its
reranker does with a mention that fills the budget). Layout `pair` is transformers itself. Writes to crates/loxia-model/tests/fixtures/layouts/:

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

from transformers import AutoTokenizer

ROOT = Path(__file__).resolve().parents[2]
DATA = Path(os.environ.get("LOXIA_TEST_DATA", ROOT.parent / "shared" / "data"))
FIXTURES = ROOT / "crates/loxia-model/tests/fixtures"
TOKENIZER = AutoTokenizer.from_pretrained(FIXTURES / "tokenizers/wordpiece")
PAD, CLS, SEP = TOKENIZER.pad_token_id, TOKENIZER.cls_token_id, TOKENIZER.sep_token_id
START, END, TAG = (TOKENIZER.convert_tokens_to_ids(f"[unused{i}]") for i in range(3))


def pieces(text):
    return TOKENIZER(text, add_special_tokens=False, verbose=False)["input_ids"]


class Marked(int):
    """A marker put in by a layout: an id that knows it is not from a text."""


def markers():
    return Marked(START), Marked(END), Marked(TAG)


def finish(ids, types, positions, cut):
    """Finds the markers by identity, so that the same token in a text is not mistaken for one."""
    marks = [next((at for at, token in enumerate(ids) if isinstance(token, Marked) and token == wanted), -1)
             for wanted in (START, END, TAG)]
    return {"ids": [int(i) for i in ids], "types": types, "positions": positions, "marks": marks, "cut": int(cut)}


def alone(row, cut, drop_pads=False):
    kept = [(token, at) for at, token in enumerate(row) if not (drop_pads and token == PAD)]
    return finish([t for t, _ in kept], [0] * len(kept), [at for _, at in kept], cut)


def parts(case):
    return ("", case["mention"], "") if case["left"] is None else (case["left"], case["mention"], case["right"])


# --- ANNCUR and BLINK -------------------------------------------------------------------------------------

def context_row(case, length, lower, quirks):
    left, mention, right = (part.lower() if lower else part for part in parts(case))
    start, end, _ = markers()
    left_ids, mention_ids, right_ids = pieces(left), pieces(mention), pieces(right)
    everything = len(left_ids) + len(mention_ids) + len(right_ids) + 2
    if quirks:
        block = [start] + mention_ids + [end] if mention else []
        everything -= 0 if mention else 2
    else:
        block = [start] + mention_ids[:length - 4] + [end]
    lq = (length - len(block)) // 2 - 1
    rq = length - len(block) - lq - 2
    if len(left_ids) <= lq and len(right_ids) > rq:
        rq += lq - len(left_ids)
    elif len(left_ids) > lq and len(right_ids) <= rq:
        lq += rq - len(right_ids)
    if quirks:
        window = left_ids[-lq:] + block + right_ids[:rq]
    else:
        window = (left_ids[-lq:] if lq > 0 else []) + block + right_ids[:max(rq, 0)]
    row = ([CLS] + window + [SEP])[:length]
    return row, everything > len(window) or len(window) + 2 > length


def entity_row(case, length, keep_tag):
    tag = markers()[2]
    title, text = pieces(case["title"] or ""), pieces(case["text"])
    whole = title + [tag] + text
    if keep_tag and len(title) > length - 3:
        row = title[:length - 3] + [tag]
    else:
        row = whole[:length - 2]
    return [CLS] + row + [SEP], len(row) < len(whole)


def rows_pair(query, item, length, limit, quirks):
    (query_row, query_cut), (item_row, item_cut) = query, item
    cut = query_cut or item_cut
    if not quirks:
        ids = query_row + item_row[1:]
        return finish(ids, [0] * len(query_row) + [1] * (len(item_row) - 1), list(range(len(ids))), cut)
    # The original pads the query, joins, cuts, and masks what has the padding's id.
    padded = query_row + [PAD] * (length - len(query_row)) + item_row[1:]
    cut = cut or len(padded) > limit
    seen = [(token, at) for at, token in enumerate(padded[:limit]) if token != PAD]
    return finish([t for t, _ in seen], [int(at >= length) for _, at in seen], [at for _, at in seen], cut)


def anncur(case, compat, _):
    length, quirks = case["L"], compat is not None
    query, item = context_row(case, length, True, quirks), entity_row(case, length, not quirks)
    return rows_pair(query, item, length, 2 * length, quirks), alone(*query, quirks), alone(*item, quirks)


def blink(case, compat, _):
    length, quirks = case["L"], compat is not None
    query, item = context_row(case, length, False, quirks), entity_row(case, length, False)
    limit = 2 * length - 6 if quirks else 2 * length
    return rows_pair(query, item, length, limit, quirks), alone(*query, quirks), alone(*item, quirks)


# --- hard-nce-el ------------------------------------------------------------------------------------------

def hard_nce(case, compat, mark_mention):
    length, quirks = case["L"], compat is not None
    return reranker(case, 2 * length, mark_mention, quirks), retriever(case, length, quirks), \
        alone(*entity_row(case, length, False))


def retriever(case, length, quirks):
    start, end, _ = markers()
    budget = length - 2
    left, mention, right = (part.split() for part in parts(case))
    near_left, near_right = left[-(budget + 1):], right[:budget + 1]
    lost = len(near_left) < len(left) or len(near_right) < len(right)
    l, m, r = (pieces(" ".join(part)) for part in (near_left, mention, near_right))
    if len(m) >= budget:
        return alone([CLS] + m[:budget] + [SEP], True)
    rest = budget - len(m) - 2
    half = rest // 2
    if len(l) > half:
        keep = half if len(r) > half else rest - len(r)
        if quirks:
            kept_left = l[-keep:]
        else:
            kept_left = l[len(l) - min(max(keep, 0), len(l)):]
    else:
        kept_left = l
    window = (kept_left + [start] + m + [end] + r)[:budget]
    return alone([CLS] + window + [SEP], lost or len(window) < len(l) + len(m) + len(r) + 2)


def reranker(case, length, mark_mention, quirks):
    start, end, _ = markers()
    budget = (length - 3) // 2
    item_budget = length - 3 - budget
    left, mention, right = (part.split() for part in parts(case))
    near_left, near_right = left[-budget:], right[:budget]
    lost = len(near_left) < len(left) or len(near_right) < len(right)
    l, m, r = (pieces(" ".join(part)) for part in (near_left, mention, near_right))
    if mark_mention:
        m = [start] + m + [end]
    rest = max(budget - len(m), 0)
    half = (rest + 1) // 2
    if len(l) >= half:
        keep = half if len(r) >= half else rest - len(r)
    else:
        keep = len(l)
    window = ((l[-keep:] if keep else []) + m + r)[:budget]
    lost = lost or len(window) < len(l) + len(m) + len(r)
    words = case["text"].split()
    candidate = pieces(" ".join(words[:item_budget]))
    lost = lost or len(words) > item_budget or len(candidate) > item_budget
    candidate = candidate[:item_budget]
    ids = [CLS] + window + [SEP] + candidate + [SEP]
    types = [0] * (len(window) + 2) + [1] * (len(candidate) + 1)
    if quirks:
        types += [0] * (length - len(ids))
        ids += [PAD] * (length - len(ids))
    return finish(ids, types, list(range(len(ids))), lost)


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
        return finish(ids, got["token_type_ids"][0], list(range(len(ids))), len(ids) < len(whole))

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
