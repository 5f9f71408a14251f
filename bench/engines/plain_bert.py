"""BERT in plain PyTorch: what the peers run.

The same network as transformers' BertModel, read from the same files, without its bookkeeping: no mask building in
Python, no hooks, one output. PyTorch runs it as it is; ONNX Runtime and OpenVINO get it exported. `attention` selects
how attention is written: "sdpa" is PyTorch's fused operation, "eager" the products and softmax spelled out in the form
that ONNX Runtime's transformer optimizer knows how to fuse.
"""

import json
import math
from pathlib import Path

import torch
from safetensors.torch import load_file
from torch import nn
from torch.nn import functional as F


class Attention(nn.Module):
    def __init__(self, hidden, heads, attention):
        super().__init__()
        self.heads, self.width, self.attention = heads, hidden // heads, attention
        self.query, self.key, self.value = (nn.Linear(hidden, hidden) for _ in range(3))
        self.output = nn.Linear(hidden, hidden)

    def split(self, states):
        return states.view(states.size(0), states.size(1), self.heads, self.width).permute(0, 2, 1, 3)

    def forward(self, states, mask):
        query, key, value = self.split(self.query(states)), self.split(self.key(states)), self.split(self.value(states))
        if self.attention == "sdpa":
            context = F.scaled_dot_product_attention(query, key, value, attn_mask=mask)
        else:
            scores = torch.matmul(query, key.transpose(-1, -2)) / math.sqrt(self.width)
            context = torch.matmul(nn.functional.softmax(scores + mask, dim=-1), value)
        context = context.permute(0, 2, 1, 3).contiguous()
        return self.output(context.view(context.size(0), context.size(1), self.heads * self.width))


class Layer(nn.Module):
    def __init__(self, config, attention):
        super().__init__()
        hidden, inner, eps = config["hidden_size"], config["intermediate_size"], config["layer_norm_eps"]
        self.attention = Attention(hidden, config["num_attention_heads"], attention)
        self.attention_norm = nn.LayerNorm(hidden, eps=eps)
        self.intermediate = nn.Linear(hidden, inner)
        self.output = nn.Linear(inner, hidden)
        self.output_norm = nn.LayerNorm(hidden, eps=eps)

    def forward(self, states, mask):
        states = self.attention_norm(self.attention(states, mask) + states)
        return self.output_norm(self.output(F.gelu(self.intermediate(states))) + states)


class PlainBert(nn.Module):
    """Ids, mask and types (each [batch, length], int64) in; vectors [batch, hidden] or scores [batch, 1] out."""

    def __init__(self, config, attention, head):
        super().__init__()
        hidden, eps = config["hidden_size"], config["layer_norm_eps"]
        self.attention, self.head = attention, head
        self.word = nn.Embedding(config["vocab_size"], hidden)
        self.position = nn.Embedding(config["max_position_embeddings"], hidden)
        self.segment = nn.Embedding(config["type_vocab_size"], hidden)
        self.norm = nn.LayerNorm(hidden, eps=eps)
        self.layers = nn.ModuleList(Layer(config, attention) for _ in range(config["num_hidden_layers"]))
        if head == "score":
            self.pooler, self.classifier = nn.Linear(hidden, hidden), nn.Linear(hidden, 1)

    def forward(self, ids, mask, types):
        positions = torch.arange(ids.size(1), device=ids.device).unsqueeze(0)
        states = self.norm(self.word(ids) + self.position(positions) + self.segment(types))
        if self.attention == "sdpa":
            # PyTorch itself skips the mask where nothing is padded, as transformers does; a trace cannot.
            unmasked = not torch.jit.is_tracing() and bool(mask.all())
            allowed = None if unmasked else mask[:, None, None, :].bool()
        else:
            allowed = (1.0 - mask[:, None, None, :].to(states.dtype)) * -10000.0
        for layer in self.layers:
            states = layer(states, allowed)
        if self.head == "score":
            return self.classifier(torch.tanh(self.pooler(states[:, 0])))
        weights = mask.unsqueeze(-1).to(states.dtype)
        mean = (states * weights).sum(1) / weights.sum(1)
        return F.normalize(mean, p=2.0, dim=1) if self.head == "normalized" else mean


def head_of(directory):
    """What stands on the encoder of a directory, as ours would decide."""
    modules = Path(directory) / "modules.json"
    if not modules.exists():
        return "score"
    kinds = [module["type"] for module in json.loads(modules.read_text())]
    return "normalized" if any(kind.endswith("Normalize") for kind in kinds) else "mean"


def load(directory, attention):
    """Reads a Hugging Face directory; every tensor must be there."""
    directory = Path(directory)
    config = json.loads((directory / "config.json").read_text())
    head = head_of(directory)
    model = PlainBert(config, attention, head)
    stored = {name.removeprefix("bert."): tensor for name, tensor in load_file(directory / "model.safetensors").items()}
    model.load_state_dict({ours: stored[theirs].float() for ours, theirs in names(model, config["num_hidden_layers"])})
    return model.eval()


def names(model, layers):
    """Pairs of our names and Hugging Face's."""
    table = {
        "word": "embeddings.word_embeddings",
        "position": "embeddings.position_embeddings",
        "segment": "embeddings.token_type_embeddings",
        "norm": "embeddings.LayerNorm",
        "pooler": "pooler.dense",
        "classifier": "classifier",
    }
    for n in range(layers):
        here, there = f"layers.{n}", f"encoder.layer.{n}"
        for part in ("query", "key", "value"):
            table[f"{here}.attention.{part}"] = f"{there}.attention.self.{part}"
        table[f"{here}.attention.output"] = f"{there}.attention.output.dense"
        table[f"{here}.attention_norm"] = f"{there}.attention.output.LayerNorm"
        table[f"{here}.intermediate"] = f"{there}.intermediate.dense"
        table[f"{here}.output"] = f"{there}.output.dense"
        table[f"{here}.output_norm"] = f"{there}.output.LayerNorm"
    for name in model.state_dict():
        module, kind = name.rsplit(".", 1)
        yield name, f"{table[module]}.{kind}"
