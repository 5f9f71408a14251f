"""OpenVINO: f32, static int8 by NNCF, and dynamic int8 of compressed weights; each for latency and for throughput.

"reshape" gives the network the exact shape of each batch before it is compiled, as OpenVINO's guide recommends where
shapes are known.
"""

from importlib.metadata import version

import numpy as np
import openvino as ov

from .batches import cut
from .onnx_export import exported, kept

VARIANTS = {
    "f32": ["latency", "throughput", "reshape latency", "reshape throughput"],
    "int8": [
        f"{kind}{shape} {hint}"
        for kind in ("nncf", "dynamic")
        for shape in ("", " reshape")
        for hint in ("latency", "throughput")
    ],
}


def calibration_data(words, pairs, count):
    """Sequences like the workloads', drawn by themselves; `pairs` have a second text."""
    stream = np.random.default_rng(7)
    sequences = []
    for length in stream.integers(32, 257, count):
        text = [int(word) for word in stream.choice(words, length - 2)]
        if pairs:
            text[6] = 102
        sequences.append([101, *text, 102])
    return [batch.arrays for batch in cut(sequences, 1, "given", 102 if pairs else None)]


def derived(directory, cache, kind, change):
    """The model after `change`, in OpenVINO's own format."""

    def make(path):
        path.mkdir()
        model = change(ov.Core().read_model(exported(directory, cache)))
        ov.save_model(model, path / "model.xml", compress_to_fp16=False)

    return kept(cache, directory, kind, make) / "model.xml"


def static_int8(directory, cache, words, pairs, calibration):
    def change(model):
        import nncf

        data = nncf.Dataset(calibration_data(words, pairs, calibration))
        kind = nncf.ModelType.TRANSFORMER
        return nncf.quantize(model, data, model_type=kind, subset_size=calibration)

    return derived(directory, cache, "nncf", change)


def compressed_int8(directory, cache):
    def change(model):
        import nncf

        # OpenVINO 2026.4 in bfloat16 with several streams loses the scale of a compressed layer with one output.
        head = nncf.IgnoredScope(patterns=[".*classifier.*"], validate=False)
        return nncf.compress_weights(model, mode=nncf.CompressWeightsMode.INT8_SYM, ignored_scope=head)

    return derived(directory, cache, "compressed", change)


class Compiled:
    """A compiled network with its request, or for throughput its queue of requests."""

    def __init__(self, model, settings):
        compiled = ov.Core().compile_model(model, "CPU", settings)
        self.queue = self.request = None
        if settings["PERFORMANCE_HINT"] == "THROUGHPUT":
            self.queue = ov.AsyncInferQueue(compiled, compiled.get_property("OPTIMAL_NUMBER_OF_INFER_REQUESTS"))
            self.queue.set_callback(self.receive)
        else:
            self.request = compiled.create_infer_request()

    @staticmethod
    def receive(request, wanted):
        outputs, place = wanted
        outputs[place] = request.get_output_tensor().data.copy()

    def start(self, inputs, outputs, place):
        if self.queue:
            self.queue.start_async(inputs, userdata=(outputs, place), share_inputs=True)
        else:
            outputs[place] = self.request.infer(inputs, share_inputs=True)[0].copy()

    def wait(self):
        if self.queue:
            self.queue.wait_all()


class OpenVinoModel:
    def __init__(self, directory, precision, variant, threads, cache, **calibrating):
        hint = variant.rsplit(" ", 1)[-1]
        self.settings = settings = {"PERFORMANCE_HINT": hint.upper(), "INFERENCE_NUM_THREADS": threads}
        if precision == "f32":
            # Without it a machine with AMX would compute in bfloat16.
            settings["INFERENCE_PRECISION_HINT"] = "f32"
            path = exported(directory, cache)
        elif variant.startswith("nncf"):
            path = static_int8(directory, cache, **calibrating)
        else:
            settings["DYNAMIC_QUANTIZATION_GROUP_SIZE"] = "32"
            path = compressed_int8(directory, cache)
        self.model = ov.Core().read_model(path)
        self.compiled = None if "reshape" in variant else Compiled(self.model, settings)

    def reshaped(self, shape):
        model = self.model.clone()
        model.reshape(dict.fromkeys(model.inputs, ov.PartialShape(shape)))
        return Compiled(model, self.settings)

    def prepare(self, batches):
        shapes = dict.fromkeys(batch.ids.shape for batch in batches)
        runners = {shape: self.compiled or self.reshaped(shape) for shape in shapes}
        return [(runners[batch.ids.shape], list(batch.arrays)) for batch in batches]

    def compute(self, inputs):
        outputs = [None] * len(inputs)
        for place, (runner, arrays) in enumerate(inputs):
            runner.start(arrays, outputs, place)
        for runner in {id(runner): runner for runner, _ in inputs}.values():
            runner.wait()
        return outputs


def open_model(*arguments, **calibrating):
    return OpenVinoModel(*arguments, **calibrating)


def versions():
    return {"openvino": ov.__version__.split("-")[0], "nncf": version("nncf")}
