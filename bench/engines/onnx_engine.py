"""ONNX Runtime: fused f32, and dynamic int8 of the fused graph."""

from concurrent.futures import ThreadPoolExecutor

import onnxruntime

from .onnx_export import INPUTS, config, exported, kept

# "streams" runs one batch a thread, several at once; it is the same as "threads" on one thread.
VARIANTS = {"f32": ["threads", "streams"], "int8": ["threads", "streams"]}


def fused(directory, cache):
    def make(path):
        from onnxruntime.transformers import optimizer
        from onnxruntime.transformers.fusion_options import FusionOptions

        shape = config(directory)
        model = optimizer.optimize_model(
            str(exported(directory, cache)), model_type="bert", num_heads=shape["num_attention_heads"],
            hidden_size=shape["hidden_size"], optimization_options=FusionOptions("bert"), opt_level=0,
        )  # fmt: skip
        found = model.get_fused_operator_statistics()
        if found.get("Attention", 0) != shape["num_hidden_layers"]:
            raise RuntimeError(f"attention was not fused: {found}")
        model.save_model_to_file(str(path))

    return kept(cache, directory, "fused.onnx", make)


def quantized(directory, cache):
    def make(path):
        import onnx
        from onnxruntime.quantization import QuantType, quantize_dynamic

        options = {"DefaultTensorType": onnx.TensorProto.FLOAT}
        source = str(fused(directory, cache))
        quantize_dynamic(source, str(path), weight_type=QuantType.QInt8, per_channel=True, extra_options=options)

    return kept(cache, directory, "int8.onnx", make)


class OnnxModel:
    def __init__(self, directory, precision, variant, threads, cache):
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
        options.intra_op_num_threads = 1 if variant == "streams" else threads
        options.inter_op_num_threads = 1
        path = quantized(directory, cache) if precision == "int8" else fused(directory, cache)
        self.session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        self.pool = ThreadPoolExecutor(threads) if variant == "streams" else None

    def prepare(self, batches):
        return [dict(zip(INPUTS, batch.arrays)) for batch in batches]

    def compute(self, inputs):
        each = self.pool.map if self.pool else map
        return list(each(lambda feed: self.session.run(None, feed)[0], inputs))


def open_model(*arguments):
    return OnnxModel(*arguments)


def versions():
    return {"onnxruntime": onnxruntime.__version__}
