"""PyTorch: f32 with fused attention, compiled or not, and dynamic int8 of the linear layers."""

import torch

from .plain_bert import load

VARIANTS = {"f32": ["eager", "compile"], "int8": ["dynamic"]}


class TorchModel:
    def __init__(self, directory, precision, variant, threads, _cache):
        torch.set_num_threads(threads)
        model = load(directory, "sdpa")
        if precision == "int8":
            # Per channel: the per-tensor default is no faster and loses three times as much.
            layers = {torch.nn.Linear: torch.ao.quantization.per_channel_dynamic_qconfig}
            model = torch.ao.quantization.quantize_dynamic(model, layers, dtype=torch.qint8)
        if variant == "compile":
            model = torch.compile(model, dynamic=True)
        self.model = model

    def prepare(self, batch):
        return tuple(torch.from_numpy(array) for array in batch.arrays)

    def compute(self, inputs):
        with torch.inference_mode():
            return [self.model(*each).numpy() for each in inputs]


def open_model(*arguments):
    return TorchModel(*arguments)


def versions():
    return {"torch": torch.__version__, "torch CPU capability": torch.backends.cpu.get_cpu_capability()}
