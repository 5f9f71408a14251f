"""What is computed: token sequences, and texts to rerank. The same for every engine, drawn from fixed seeds."""

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from harness.models import scores_pairs

CLS, SEP = 101, 102


@dataclass
class Workload:
    """Sequences for one model, and how peers may batch them.

    Peers begin with `batches` and, unless these are `fixed`, go on to smaller or larger ones; the fastest counts.
    """

    key: str
    model: str
    sequences: list
    batches: tuple
    fixed: bool = True
    order: str = "given"
    repeat: int = 1

    @property
    def separator(self):
        return SEP if scores_pairs(self.model) else None

    @property
    def even(self):
        """Whether all sequences have one length."""
        return len(set(map(len, self.sequences))) == 1

    def next_batch(self, best, tried):
        """The size past the edge of those tried, where the best lies on it; else None."""
        beyond = [best // 2] * (best == min(tried)) + [best * 2] * (best == max(tried))
        allowed = [size for size in beyond if 1 <= size <= len(self.sequences)]
        return allowed[0] if allowed and not self.fixed else None

    @property
    def tokens(self):
        return sum(map(len, self.sequences)) * self.repeat


class Words:
    """Words of a vocabulary that are one token each, frequent ones often (Zipf)."""

    def __init__(self, directory):
        vocabulary = json.loads((Path(directory) / "tokenizer.json").read_text(encoding="utf-8"))["model"]["vocab"]
        plain = lambda word: len(word) > 2 and word.isascii() and word.isalpha() and word.islower()
        self.ids = sorted(number for word, number in vocabulary.items() if plain(word))
        spelling = {number: word for word, number in vocabulary.items()}
        self.words = [spelling[number] for number in self.ids]
        weights = 1.0 / np.arange(10, len(self.ids) + 10)
        self.weights = weights / weights.sum()

    def draw(self, stream, count):
        """Positions of so many words."""
        return stream.choice(len(self.ids), count, p=self.weights)

    def sequence(self, stream, length, pair):
        """[CLS] text [SEP], or [CLS] query [SEP] item [SEP], of `length` tokens."""
        ids = [self.ids[place] for place in self.draw(stream, length - 2 - pair)]
        if pair:
            ids.insert(min(8, len(ids) // 2), SEP)
        return [CLS, *ids, SEP]

    def sequences(self, seed, lengths, pair=False):
        stream = np.random.default_rng(seed)
        return [self.sequence(stream, int(length), pair) for length in lengths]


def encoder_workloads(words, quick, smoke):
    """Every workload of token sequences by its key.

    A quick run tries two batch sizes and no others: the smaller leaves a batch for each of two threads. In a smoke
    test the sequences are an eighth as long.
    """
    short = lambda length: length // 8 if smoke else length
    between = lambda seed, low, high, count: np.random.default_rng(seed).integers(short(low), short(high) + 1, count)
    sizes = lambda *every: every[:2] if quick else every
    fixed = quick and not smoke
    long = lambda seed, count, pair: words.sequences(seed, [short(256)] * count, pair=pair)
    few, fewer = (8, 2) if quick else (16, 4)
    mixed = words.sequences(3, between(3, 32, 256, 64), pair=True)
    pairs = words.sequences(5, between(5, *((64, 96) if smoke else (24, 56)), 128), pair=True)
    pair = words.sequences(4, [short(128)], pair=True)
    made = [
        Workload("minilm_256", "cross", long(1, few, True), sizes(4, 8, 16), fixed),
        Workload("base_256", "base_cross", long(2, fewer, True), sizes(1, 2, 4), fixed),
        # Its key says what is compared: padded batches as large as people take them.
        Workload("minilm_mixed_padded", "cross", mixed, sizes(16, 32, 64)),
        Workload("minilm_mixed_bucketed", "cross", mixed, sizes(4, 8, 16), fixed, order="sorted"),
        Workload("minilm_1x128", "cross", pair, sizes(1), repeat=16),
        Workload("minilm_40", "cross", pairs, sizes(16, 32, 64), fixed),
        Workload("minilm_256_embed", "minilm", long(1, few, False), sizes(4, 8, 16), fixed),
        Workload("base_256_embed", "base", long(2, fewer, False), sizes(1, 2, 4), fixed),
    ]
    return {workload.key: workload for workload in made}


def check_workload(words, model):
    """Short, of many lengths, and long enough to fill batches: for comparing outputs."""
    lengths = np.random.default_rng(6).integers(12, 161, 24)
    sequences = words.sequences(6, lengths, pair=scores_pairs(model))
    return Workload("check", model, sequences, (8,), order="sorted")


def write_rerank(words, path, queries, depth=100):
    """A run with texts as long as MS MARCO's: queries of about 6 words, passages of about 60."""
    stream = np.random.default_rng(8)

    def text(count):
        places = words.draw(stream, count)
        parts = [words.words[place] for place in places]
        # One word in eight is no token of its own, and sentences end.
        for n in range(count - 1):
            if stream.random() < 0.125:
                parts[n] += parts[n + 1]
            if stream.random() < 0.08:
                parts[n] += "."
        return " ".join(parts)

    with open(path, "w", encoding="utf-8") as lines:
        for q in range(queries):
            query = text(int(stream.integers(3, 10)))
            for rank in range(depth):
                length = int(np.clip(stream.normal(58, 22), 12, 180))
                record = {"qid": f"q{q}", "query": query, "docno": f"d{q}-{rank}", "text": text(length)}
                print(json.dumps(record | {"rank": rank + 1, "score": depth - rank}), file=lines)
