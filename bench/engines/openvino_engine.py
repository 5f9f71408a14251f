"""OpenVINO: f32, static int8 by NNCF, and dynamic int8 of compressed weights; each for latency and for throughput."""

from importlib.metadata import version

import numpy as np
import openvino as ov

from .batches import cut
from .onnx_export import exported, kept

VARIANTS = {
    "f32": ["latency", "throughput"],
    "int8": ["nncf latency", "nncf throughput", "dynamic latency", "dynamic throughput"],
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


class OpenVinoModel:
    def __init__(self, directory, precision, variant, threads, cache, **calibrating):
        hint = variant.rsplit(" ", 1)[-1]
        settings = {"PERFORMANCE_HINT": hint.upper(), "INFERENCE_NUM_THREADS": threads}
        if precision == "f32":
            # Without it a machine with AMX would compute in bfloat16.
            settings["INFERENCE_PRECISION_HINT"] = "f32"
            path = exported(directory, cache)
        elif variant.startswith("nncf"):
            path = static_int8(directory, cache, **calibrating)
        else:
            settings["DYNAMIC_QUANTIZATION_GROUP_SIZE"] = "32"
            path = compressed_int8(directory, cache)
        core = ov.Core()
        compiled = core.compile_model(core.read_model(path), "CPU", settings)
        if hint == "throughput":
            jobs = compiled.get_property("OPTIMAL_NUMBER_OF_INFER_REQUESTS")
            self.queue, self.request = ov.AsyncInferQueue(compiled, jobs), None
            self.queue.set_callback(self.receive)
        else:
            self.queue, self.request = None, compiled.create_infer_request()

    def receive(self, request, place):
        self.outputs[place] = request.get_output_tensor().data.copy()

    def prepare(self, batch):
        return list(batch.arrays)

    def compute(self, inputs):
        if self.request:
            return [self.request.infer(each, share_inputs=True)[0].copy() for each in inputs]
        self.outputs = [None] * len(inputs)
        for place, each in enumerate(inputs):
            self.queue.start_async(each, userdata=place, share_inputs=True)
        self.queue.wait_all()
        return self.outputs


def open_model(*arguments, **calibrating):
    return OpenVinoModel(*arguments, **calibrating)


def versions():
    return {"openvino": ov.__version__.split("-")[0], "nncf": version("nncf")}
