"""PyTorch: f32 with fused attention, as it is, compiled, or compiled with frozen weights; dynamic int8 of linear layers."""

import torch

from .plain_bert import load

VARIANTS = {"f32": ["sdpa", "compile", "freeze"], "int8": ["dynamic"]}


def set_up_compiler():
    """Only where something is compiled: the compiler alone takes as much memory as a small model."""
    # All models share the code whose compiled forms are counted; past the limit PyTorch would go on uncompiled.
    torch._dynamo.config.recompile_limit = 64
    torch._dynamo.config.fail_on_recompile_limit_hit = True


class TorchModel:
    def __init__(self, directory, precision, variant, threads, _cache):
        torch.set_num_threads(threads)
        model = load(directory, "sdpa")
        if precision == "int8":
            # Per channel: the per-tensor default is no faster and loses three times as much.
            layers = {torch.nn.Linear: torch.ao.quantization.per_channel_dynamic_qconfig}
            model = torch.ao.quantization.quantize_dynamic(model, layers, dtype=torch.qint8)
        if variant in ("compile", "freeze"):
            set_up_compiler()
        if variant == "compile":
            model = torch.compile(model, dynamic=True)
        self.model = model
        if variant == "freeze":
            self.frozen = {kind: torch.compile(model, dynamic=kind, options={"freezing": True}) for kind in (False, True)}
        else:
            self.frozen = None

    def prepare(self, batches):
        if self.frozen:
            self.model = self.frozen[len({batch.ids.shape for batch in batches}) > 1]
        return [tuple(torch.from_numpy(array) for array in batch.arrays) for batch in batches]

    def compute(self, inputs):
        # Weights are frozen under no_grad only.
        with torch.no_grad() if self.frozen else torch.inference_mode():
            return [self.model(*each).numpy() for each in inputs]


def open_model(*arguments):
    return TorchModel(*arguments)


def versions():
    return {"torch": torch.__version__, "torch CPU capability": torch.backends.cpu.get_cpu_capability()}
