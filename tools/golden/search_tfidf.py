"""Goldens of the TF-IDF code from scikit-learn and numpy: vocabulary, idf, weights, singular values, dot products.

    python tools/golden/search_tfidf.py

writes crates/loxia-search/tests/fixtures/tfidf.json.
"""
import json
import pathlib
import random

import numpy as np
import scipy.sparse
from sklearn.feature_extraction.text import TfidfVectorizer

OUT = pathlib.Path(__file__).resolve().parents[2] / "crates/loxia-search/tests/fixtures/tfidf.json"
DIMS = 8

PLACES = "pine spruce larch fir forest taiga valley ridge".split()
BIRDS = "crossbill parrot_crossbill siskin redpoll grosbeak nuthatch".split()
DEEDS = "eats seeds of|opens the cones of|nests early in|calls over|drinks below|flies between two".split("|")
ODD = [
    "",
    "a I x",
    "Éire's ÉCOLE, naïve café\tcafé  CAFÉ",
    "ΣΊΣΥΦΟΣ rolls; Straße STRASSE",
    "42 birds, 7 nests, x_1 and x_1",
    "日本語 の テキスト 日本語",
    "tabs\tand\u2003wide\u00a0spaces\x1cand separators",
    "don't re-use co-op 3.14",
]


def main() -> None:
    rng = random.Random(5)
    items = list(ODD)
    for _ in range(40):
        bird, place = rng.choice(BIRDS), rng.choice(PLACES)
        text = f"{bird} {rng.choice(DEEDS)} the {place}, {rng.choice(DEEDS)} {rng.choice(PLACES)}"
        items.append(text + f" and {bird}" * rng.randrange(3))
    queries = ["which CROSSBILL opens cones", "unseenword only", "", "the the the nest of a redpoll", "café Σίσυφος"]

    words = TfidfVectorizer()
    characters = TfidfVectorizer(analyzer="char_wb", ngram_range=(3, 5), min_df=2, sublinear_tf=True)
    x = scipy.sparse.hstack([words.fit_transform(items), characters.fit_transform(items)]).tocsr()
    q = scipy.sparse.hstack([words.transform(queries), characters.transform(queries)]).tocsr()
    _, values, vt = np.linalg.svd(x.toarray(), full_matrices=False)
    item_vectors, query_vectors = x @ vt[:DIMS].T, q @ vt[:DIMS].T

    def part(vectorizer):
        return {"terms": vectorizer.get_feature_names_out().tolist(), "idf": vectorizer.idf_.tolist()}

    def rows(matrix):
        matrix.sort_indices()
        return [[row.indices.tolist(), row.data.tolist()] for row in matrix]

    def matrix(values):
        return [[round(value, 9) for value in row] for row in values.tolist()]

    fixture = {
        "items": items,
        "queries": queries,
        "words": part(words),
        "characters": part(characters),
        "query_rows": rows(q),
        "item_rows": rows(x[len(ODD) - 3 : len(ODD) + 6]),
        "item_rows_start": len(ODD) - 3,
        "singular_values": values[:DIMS].tolist(),
        "item_dots": matrix(item_vectors[:12] @ item_vectors.T),
        "query_dots": matrix(query_vectors @ item_vectors.T),
        "word_cosines": matrix((words.transform(queries) @ words.transform(items).T).toarray()),
    }
    print("gap at the last value:", values[DIMS - 1], values[DIMS])
    OUT.write_text(json.dumps(fixture, ensure_ascii=False, indent=0) + "\n")
    print(OUT, OUT.stat().st_size, "bytes")


if __name__ == "__main__":
    main()
