"""Writes crates/loxia-nn/tests/fixtures/kernels.json: activations, softmax and layer norm of torch on a few
hundred values, and the distance buckets of transformers' MPNet. Needs torch and transformers."""

import json
from pathlib import Path

import torch
from transformers.models.mpnet.modeling_mpnet import MPNetEncoder

FIXTURE = Path(__file__).parents[2] / "crates/loxia-nn/tests/fixtures/kernels.json"
functional = torch.nn.functional


def numbers(tensor):
    """Shortest decimals that read back as the same f32."""
    return [float(f"{value:.9g}") for value in tensor.flatten().tolist()]


def activations():
    x = torch.cat([torch.linspace(-12, 12, 241), torch.linspace(-0.01, 0.01, 21), torch.tensor([-90.0, 90.0])])
    exact = x.double()
    functions = {
        "gelu": functional.gelu(exact),
        "gelu_tanh": functional.gelu(exact, approximate="tanh"),
        "gelu_quick": exact * torch.sigmoid(1.702 * exact),
        "relu": functional.relu(exact),
        "silu": functional.silu(exact),
        "tanh": torch.tanh(exact),
        "sigmoid": torch.sigmoid(exact),
        "identity": exact,
    }
    return {"x": numbers(x), **{name: numbers(y) for name, y in functions.items()}}


def layer_norm():
    generator = torch.Generator().manual_seed(1)
    x, scale, shift = (torch.randn(shape, generator=generator) for shape in ((3, 37), (37,), (37,)))
    x[1] += 100
    y = functional.layer_norm(x.double(), (37,), scale.double(), shift.double(), 1e-5)
    return {"x": numbers(x), "scale": numbers(scale), "shift": numbers(shift), "y": numbers(y)}


def buckets():
    distances = torch.arange(-600, 601)
    pairs = [(32, 128), (32, 100), (16, 64), (64, 512), (12, 50)]
    return [
        {
            "buckets": count,
            "max_distance": furthest,
            "of": MPNetEncoder.relative_position_bucket(distances, count, furthest).tolist(),
        }
        for count, furthest in pairs
    ]


fixture = {"activations": activations(), "layer_norm": layer_norm(), "buckets": buckets()}
FIXTURE.parent.mkdir(parents=True, exist_ok=True)
FIXTURE.write_text(json.dumps(fixture, separators=(",", ":")) + "\n")
