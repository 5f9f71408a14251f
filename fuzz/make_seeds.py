"""Writes `seeds/TARGET/`: small valid inputs from which the fuzzer starts.

Where the repository has fixtures they are used; the rest is made here with the standard library alone.

    python3 fuzz/make_seeds.py
"""
import gzip
import hashlib
import io
import json
import pathlib
import pickle
import shutil
import struct
import zipfile
import zlib

ROOT = pathlib.Path(__file__).resolve().parents[1]
SEEDS = ROOT / "fuzz/seeds"
NPY = ROOT / "crates/loxia-core/tests/fixtures/npy"
MODEL = ROOT / "crates/loxia-model/tests/fixtures"
SMALL = 12_000  # bytes; larger seeds slow every mutation down


def seed(target: str, name: str, content: bytes | str) -> None:
    directory = SEEDS / target
    directory.mkdir(parents=True, exist_ok=True)
    content = content.encode() if isinstance(content, str) else content
    assert len(content) <= SMALL, (target, name, len(content))
    (directory / name).write_bytes(content)


def lines(*records) -> str:
    return "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)


def safetensors(tensors: dict[str, list[int]], dtype: str = "F32", size: int = 4) -> bytes:
    header, offset = {"__metadata__": {"format": "pt"}}, 0
    for name, shape in tensors.items():
        length = size
        for side in shape:
            length *= side
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [offset, offset + length]}
        offset += length
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + bytes(offset)


def archive(entries: dict[str, bytes], method: int = zipfile.ZIP_STORED) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as target:
        for name, content in entries.items():
            target.writestr(zipfile.ZipInfo(name), content, compress_type=method)
    return out.getvalue()


def bundle(*files: tuple[int, bytes | str]) -> bytes:
    """Files as `loxia_fuzz::files_of` cuts them."""
    out = b""
    for name, content in files:
        content = content.encode() if isinstance(content, str) else content
        out += struct.pack("<BH", name, len(content)) + content
    return out


def score_matrix(storage: str, rows: int, cols: int, tile: tuple[int, int], repair: bool) -> bytes:
    row_ids = "".join(f"q{row}\n" for row in range(rows)).encode()
    col_ids = "".join(f"d{col}\n" for col in range(cols)).encode()
    log = b""

    def record(number: int, offset: int, content: bytes) -> bytes:
        head = struct.pack("<QQQI", number, offset, len(content), zlib.crc32(content))
        return head + struct.pack("<I", zlib.crc32(head))

    if storage == "dense":
        score = lambda row, col: struct.pack("<f", row - 0.5 * col)
        data = b"".join(score(row, col) for row in range(rows) for col in range(cols))
        number = 0
        for top in range(0, rows, tile[0]):
            for left in range(0, cols, tile[1]):
                cells = [(row, col) for row in range(top, min(rows, top + tile[0]))
                         for col in range(left, min(cols, left + tile[1]))]
                log += record(number, 4 * (top * cols + left), b"".join(score(*cell) for cell in cells))
                number += 1
    else:
        data = b""
        for number, top in enumerate(range(0, rows, tile[0])):
            held = [list(range(0, cols, 2 + row % 2)) for row in range(top, min(rows, top + tile[0]))]
            block = b"".join(struct.pack("<I", len(columns)) for columns in held)
            block += b"".join(struct.pack("<I", col) for columns in held for col in columns)
            block += b"".join(struct.pack("<f", 1.5 * col) for columns in held for col in columns)
            log += record(number, len(data), block)
            data += block
    manifest = json.dumps({
        "format_version": 1, "kind": "score-matrix", "shape": [rows, cols], "dtype": "f32",
        "digests": {"rows": hashlib.sha256(row_ids).hexdigest(), "cols": hashlib.sha256(col_ids).hexdigest()},
        "command": "score", "created_by": "loxia 0.1.0",
        "details": {"storage": storage, "tile_rows": tile[0], "tile_cols": tile[1]},
    })
    files = [(0, manifest), (1, row_ids), (2, col_ids), (3, log), (4 if storage == "dense" else 5, data)]
    return bytes([repair]) + bundle(*files)


def bert(hidden: int, vocabulary: int, inner: int, positions: int) -> tuple[str, dict[str, list[int]]]:
    config = json.dumps({
        "model_type": "bert", "architectures": ["BertForSequenceClassification"], "vocab_size": vocabulary,
        "hidden_size": hidden, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": inner,
        "hidden_act": "gelu", "max_position_embeddings": positions, "type_vocab_size": 2, "num_labels": 1,
        "layer_norm_eps": 1e-12,
    })
    tensors = {
        "bert.embeddings.word_embeddings.weight": [vocabulary, hidden],
        "bert.embeddings.position_embeddings.weight": [positions, hidden],
        "bert.embeddings.token_type_embeddings.weight": [2, hidden],
    }

    def norm(name: str) -> None:
        tensors[f"{name}.weight"] = tensors[f"{name}.bias"] = [hidden]

    def linear(name: str, outputs: int, inputs: int) -> None:
        tensors[f"{name}.weight"], tensors[f"{name}.bias"] = [outputs, inputs], [outputs]

    norm("bert.embeddings.LayerNorm")
    layer = "bert.encoder.layer.0"
    for part in ("query", "key", "value"):
        linear(f"{layer}.attention.self.{part}", hidden, hidden)
    linear(f"{layer}.attention.output.dense", hidden, hidden)
    norm(f"{layer}.attention.output.LayerNorm")
    linear(f"{layer}.intermediate.dense", inner, hidden)
    linear(f"{layer}.output.dense", hidden, inner)
    norm(f"{layer}.output.LayerNorm")
    linear("bert.pooler.dense", hidden, hidden)
    linear("classifier", 1, hidden)
    return config, tensors


def tokenizer(model: dict, **parts) -> str:
    empty = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "normalizer": None,
             "pre_tokenizer": None, "post_processor": None, "decoder": None}
    return json.dumps(empty | parts | {"model": model}, ensure_ascii=False)


shutil.rmtree(SEEDS, ignore_errors=True)

# Weights.
seed("safetensors", "two", safetensors({"a": [2, 3], "b": [4]}))
seed("safetensors", "half", safetensors({"weight": [3], "empty": [0, 7], "scalar": []}, "F16", 2))
seed("safetensors", "none", safetensors({}))
seed("safetensors", "bf16", safetensors({"x.weight": [2, 2, 2]}, "BF16", 2))
checkpoints = MODEL / "checkpoints"
for name in ("protocol-3", "protocol-4", "protocol-5", "evil", "plain"):
    content = (checkpoints / f"{name}.bin").read_bytes()
    seed("torch_file", name, content)
    seed("zip", name, content)
    with zipfile.ZipFile(io.BytesIO(content)) as source:
        program = next(entry for entry in source.namelist() if entry.endswith("data.pkl"))
        seed("pickle", name, source.read(program))
        entries = {entry: source.read(entry) for entry in source.namelist()}
    seed("torch_file", f"{name}-deflated", archive(entries, zipfile.ZIP_DEFLATED))
seed("torch_file", "legacy", (checkpoints / "legacy.bin").read_bytes())
for protocol in range(6):
    value = {"a": [1, 2.5, None, True, -(2**70)], "b": ("text", b"bytes", {"k": {1, 2}}), 3: "\u00e9" * 40}
    value["again"] = value["a"]
    seed("pickle", f"containers-{protocol}", pickle.dumps(value, protocol))
seed("zip", "stored", archive({"a": b"hello", "b/c": b""}))
seed("zip", "deflated", archive({"a": b"hello " * 200}, zipfile.ZIP_DEFLATED))

# Matrices and artefacts.
for path in sorted(NPY.glob("*.npy")):
    seed("npy", path.stem, path.read_bytes())
    seed("npy_header", path.stem, path.read_bytes()[:128])
header = b"{'descr': '<f4', 'fortran_order': False, 'shape': (3, 0), }\n"
seed("npy", "no_columns", b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header)
for repair in (False, True):
    which = "repaired" if repair else "sound"
    seed("score_matrix", f"dense-{which}", score_matrix("dense", 3, 4, (2, 4), repair))
    seed("score_matrix", f"dense-tiles-{which}", score_matrix("dense", 3, 5, (2, 2), repair))
    seed("score_matrix", f"sparse-{which}", score_matrix("sparse", 5, 6, (2, 6), repair))
    seed("score_matrix", f"empty-{which}", score_matrix("dense", 0, 3, (1, 1), repair))
seed("manifest", "matrix", json.dumps({
    "format_version": 1, "kind": "score-matrix", "shape": [3, 4], "dtype": "f32",
    "digests": {"model": "12ab", "rows": "cd"}, "command": "loxia score", "created_by": "loxia 0.1.0",
    "details": {"storage": "dense", "tile_rows": 2, "nested": {"a": [1, 2.5, None, True]}}}, indent=2))
seed("manifest", "bare", '{"format_version":1,"kind":"vectors"}')
seed("id_list", "three", "d1\nd2\n\u00e9\n")
seed("id_list", "cut", "d1\nd2")

# Models.
for directory in sorted((MODEL / "models").glob("*-even")):
    seed("config_json", directory.name, (directory / "config.json").read_bytes())
    text = (directory / "tokenizer.json").read_bytes()
    seed("tokenizer", directory.name, text)
    seed("tokenizer", f"{directory.name}-configured", text + b"\0" + (directory / "tokenizer_config.json").read_bytes())
vocabulary = {"[UNK]": 0, "[CLS]": 1, "[SEP]": 2, "a": 3, "b": 4, "##a": 5, "ab": 6}
word_piece = {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
              "max_input_chars_per_word": 100, "vocab": vocabulary}
added = [{"id": i, "content": t, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False,
          "special": True} for t, i in list(vocabulary.items())[:3]]
template = {"type": "TemplateProcessing",
            "single": [{"SpecialToken": {"id": "[CLS]", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
            "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"SpecialToken": {"id": "[CLS]", "type_id": 0}},
                     {"Sequence": {"id": "B", "type_id": 1}}],
            "special_tokens": {"[CLS]": {"id": "[CLS]", "ids": [1], "tokens": ["[CLS]"]}}}
seed("tokenizer", "word-piece", tokenizer(word_piece, added_tokens=added, post_processor=template,
     normalizer={"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True,
                 "strip_accents": None, "lowercase": True}, pre_tokenizer={"type": "BertPreTokenizer"}))
seed("tokenizer", "unigram", tokenizer(
    {"type": "Unigram", "unk_id": 0, "byte_fallback": False, "vocab": [["<unk>", 0.0], ["\u2581a", -1.5], ["a", -2.0]]},
    pre_tokenizer={"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "always", "split": True},
    normalizer={"type": "Sequence", "normalizers": [{"type": "NFKC"}, {"type": "Nmt"}, {"type": "Strip",
                "strip_left": True, "strip_right": True}, {"type": "Replace", "pattern": {"Regex": " {2,}"},
                                                           "content": " "}]}))
seed("tokenizer", "bpe", tokenizer(
    {"type": "BPE", "dropout": None, "unk_token": "[UNK]", "continuing_subword_prefix": None,
     "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False, "ignore_merges": False,
     "vocab": {"[UNK]": 0, "a": 1, "b": 2, "ab": 3}, "merges": [["a", "b"]]},
    pre_tokenizer={"type": "Sequence", "pretokenizers": [
        {"type": "Split", "pattern": {"Regex": "\\s+|\\w(?=b)"}, "behavior": "Isolated", "invert": False},
        {"type": "Digits", "individual_digits": True}, {"type": "Punctuation", "behavior": "Isolated"},
        {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True}]},
    post_processor={"type": "RobertaProcessing", "sep": ["b", 2], "cls": ["a", 1], "trim_offsets": True,
                    "add_prefix_space": True}))
seed("tokenizer", "word-level", tokenizer({"type": "WordLevel", "vocab": vocabulary, "unk_token": "[UNK]"},
     pre_tokenizer={"type": "Whitespace"}, post_processor={"type": "BertProcessing", "sep": ["[SEP]", 2],
                                                           "cls": ["[CLS]", 1]},
     truncation={"direction": "Right", "max_length": 8, "strategy": "LongestFirst", "stride": 2},
     padding={"strategy": {"Fixed": 8}, "direction": "Left", "pad_to_multiple_of": 4, "pad_id": 0,
              "pad_type_id": 0, "pad_token": "[UNK]"}))
config, tensors = bert(4, 7, 3, 5)
small = tokenizer(word_piece, added_tokens=added, post_processor=template)
weights = safetensors(tensors)
seed("model_directory", "cross-encoder", bundle((0, config), (1, small), (2, '{"model_max_length": 5}'), (3, weights)))
modules = json.dumps([{"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
                      {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
                      {"idx": 2, "name": "2", "path": "", "type": "sentence_transformers.models.Normalize"}])
seed("model_directory", "sentence-transformer", bundle(
    (0, config), (1, small), (3, weights), (5, modules), (6, '{"word_embedding_dimension": 4, "pooling_mode_mean_tokens": true}'),
    (8, '{"max_seq_length": 5, "do_lower_case": false}'), (9, '{"similarity_fn_name": "cosine", "prompts": {"query": "q: "}}')))
loxia = [json.dumps(json.loads(path.read_text())) for path in sorted((ROOT / "assets/tiny-models").glob("*/loxia.json"))]
seed("model_directory", "loxia", bundle((0, config), (1, small), (3, weights), (4, loxia[-1])))
names = sorted(tensors)
shards = json.dumps({"weight_map": {name: "model.safetensors" for name in names}})
seed("model_directory", "shards", bundle((0, config), (11, "\n".join(vocabulary) + "\n"), (3, weights), (10, shards),
                                         (14, '{"unk_token": "[UNK]"}'), (15, '{"[NEW]": 7}')))
for number, text in enumerate(loxia):
    seed("loxia_json", str(number), text)
seed("loxia_json", "towers", json.dumps(json.loads(loxia[0]) | {"towers": {"query": "query", "item": "item"}}))

# Data.
trec = "q1 Q0 d1 1 3.5 tag\nq1 Q0 d2 2 -1e-3 tag\nq2\tQ0\td1\t1\t7\ttag\n"
run = [{"qid": "q1", "query": "red", "docno": "d1", "text": "r\u00e9d", "title": "t", "rank": 1, "score": 2.5},
       {"qid": 2, "docno": 7, "text": "x", "rank": 2, "score": 1}]
seed("run", "trec", trec)
seed("run", "lines", lines(*run))
seed("run", "array", json.dumps(run))
seed("run", "ranks", lines({"qid": "q", "docno": "a", "rank": 2}, {"qid": "q", "docno": "b", "rank": 1}))
seed("run", "gzip", gzip.compress(trec.encode(), mtime=0))
seed("qrels", "trec", "q1 0 d1 2\nq1 0 d2 0\nq2\t0\td1\t-1\n")
seed("qrels", "beir", "query-id\tcorpus-id\tscore\nq1\td1\t1\nq1\td1\t1\n")
seed("candidates", "zeshel", lines({"mention_id": "m1", "tfidf_candidates": ["d1", "d2"]}, {"mention_id": "m2", "candidates": [3]}))
context = {"context_left": "the", "mention": "red", "context_right": "fox"}
seed("mentions", "worlds", lines({"mention_id": "m1", "world": "w", "label_document_id": "d1"} | context))
seed("mentions", "blink", lines({"world": "w", "label_id": 3, "label_title": "t", "label": "x"} | context))
seed("mentions", "anncur", lines({"mention_id": 5, "type": "w", "label_id": "d"} | context))
seed("mentions", "zeshel", lines({"mention_id": "m", "corpus": "w", "context_document_id": "d", "start_index": 1,
                                  "end_index": 2, "text": "red fox", "label_document_id": "e"}))
seed("training", "texts", "\0query\tpositive text\tnegative text\n")
seed("training", "ids", "\1q1\td1\td2\nq2\td3\td4\n")
seed("training", "pairs", "\2" "12.5\t3.25\tq1\td7\td9\n")
seed("training", "lists", "\3" + lines(["q1", ["d1", 2.5], [7, -1]], [3, ["d", 0]]))
seed("items", "json", "\0" + lines({"_id": "d1", "title": "t", "text": "x"}, {"docno": 3, "text": "\u00e9\n\"", "query": "q"}))
seed("items", "queries", "\0" + lines({"qid": "q1", "query": "x"}, {"query_id": "q2", "text": "y"}))
seed("items", "tsv", "\1d1\tred\nd2\tblue\tgreen\r\n")
seed("items", "text", "\2\ufeffone\n\ntwo")
seed("items", "gzip", b"\1" + gzip.compress(b"d1\tred\nd2\tblue\n", mtime=0))
seed("gzip_lines", "one", gzip.compress(b"one\r\ntwo\n", mtime=0))
seed("gzip_lines", "members", gzip.compress(b"one\n", mtime=0) + gzip.compress(b"two", 0, mtime=0))
seed("gzip_lines", "bomb", gzip.compress(b"x" * 100_000, mtime=0))
seed("gzip_lines", "plain", "\ufeffone\ntwo\r\n\n")
for number, text in enumerate(["nDCG@10", "RR(rel=2)@10", "SetF(beta=2.0)", "P.5,10", "iprec_at_recall_0.10", "official",
                               "nDCG(dcg='exp-log2',judged_only=True)@5", "ndcg_cut", "SetP(relative=True)"]):
    seed("measures", str(number), text)

# Search.
def digest(kind: str, *parts: str) -> str:
    lengths = b"".join(struct.pack("<Q", len(part.encode())) + part.encode() for part in parts)
    return hashlib.sha256(kind.encode() + lengths).hexdigest()


def kept(query: str, item: str, score: float) -> bytes:
    key = int(digest("pair", digest("plain", query), digest("untitled", item))[:32], 16)
    record = key.to_bytes(16, "little") + struct.pack("<f", score)
    return record + struct.pack("<I", zlib.crc32(record))


def tfidf_part(analyser: bytes, terms: list[str], items: int) -> bytes:
    text = "".join(terms).encode()
    lengths = struct.pack(f"<{len(terms)}I", *(len(term.encode()) for term in terms))
    return analyser + struct.pack("<IQ", len(terms), len(text)) + lengths + text + struct.pack("<I", items) * len(terms)


header = b"loxscore" + struct.pack("<II", 1, 4) + b"fuzz"
header += struct.pack("<I", zlib.crc32(header))
seed("score_cache", "empty", header)
seed("score_cache", "whole", header + kept("a", "x", 2.5) + kept("b", "y", -1) + kept("c", "z", 0))
seed("score_cache", "torn", header + kept("a", "x", 2.5) + kept("a", "y", 3)[:11])
seed("score_cache", "damaged", header + kept("a", "x", 2.5)[:-1] + b"\0" + kept("a", "y", float("nan")) + kept("b", "x", 1))
seed("tfidf_vectors", "small", b"loxtfidf" + struct.pack("<IQI", 1, 3, 2) + tfidf_part(b"\0\0\0\0", ["red", "w\u00e9"], 2)
     + tfidf_part(b"\1\3\5\1", [" re", "red", "ed "], 3) + struct.pack("<I2f10f", 2, 1.5, 0.5, *(n / 8 for n in range(10))))

print(sum(1 for path in SEEDS.rglob("*") if path.is_file()), "seeds,",
      sum(path.stat().st_size for path in SEEDS.rglob("*") if path.is_file()) // 1000, "kB")
