"""A model directory as an ONNX file, made once and kept for every engine and thread count.

PyTorch is imported only to make one, so that it does not count as memory of the engines that run it.
"""

import hashlib
import json
from pathlib import Path

INPUTS = ("ids", "mask", "types")


def kept(cache, directory, kind, make):
    """The path of a derived file or directory, made on first use under a temporary name."""
    name = hashlib.sha256(str(Path(directory).resolve()).encode()).hexdigest()[:12]
    path = Path(cache) / f"{name}-{kind}"
    if not path.exists():
        draft = path.with_name(f"draft-{path.name}")
        make(draft)
        draft.rename(path)
    return path


def example():
    import torch

    ids = torch.randint(1000, 2000, (2, 24))
    mask = torch.ones_like(ids)
    mask[1, 16:] = 0
    return ids, mask, torch.zeros_like(ids)


def exported(directory, cache):
    """The plain graph, attention spelled out."""

    def make(path):
        import torch

        from .plain_bert import load

        axes = {name: {0: "batch", 1: "length"} for name in INPUTS} | {"out": {0: "batch"}}
        with torch.no_grad():
            torch.onnx.export(
                load(directory, "eager"), example(), str(path), input_names=list(INPUTS), output_names=["out"],
                dynamic_axes=axes, opset_version=17, dynamo=False,
            )  # fmt: skip

    return kept(cache, directory, "plain.onnx", make)


def config(directory):
    return json.loads((Path(directory) / "config.json").read_text())
