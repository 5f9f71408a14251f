"""A process that runs one library's engines as it is told: the peers' side of `loxia bench encoder --worker`.

One JSON object a line on stdin, one answer a line on stdout; bench/README.md lists the commands. Whatever the library
prints goes to stderr.
"""

import importlib
import json
import os
import sys
import time
import traceback
import warnings

import numpy as np

from .batches import cut


class Worker:
    def __init__(self, library):
        self.engine = importlib.import_module(f"engines.{library}_engine")
        self.models, self.workloads = {}, {}

    def machine(self, _command):
        return {"versions": self.engine.versions(), "variants": self.engine.VARIANTS}

    def load(self, command):
        wanted = ("words", "pairs", "calibration") if command["library"] == "openvino" else ()
        extra = {name: command[name] for name in wanted}
        given = [command[name] for name in ("directory", "precision", "variant", "threads", "cache")]
        self.models[command["model"]] = self.engine.open_model(*given, **extra)
        return {}

    def workload(self, command):
        model = self.models[command["model"]]
        place = command["model"], command["workload"]
        if getattr(model, "takes_texts", False):
            pairs = model.read(command["run"][0])
            self.workloads[place] = (pairs, None, len(pairs))
        else:
            self.forget(command["model"])
            sequences = command["ids"]
            batches = cut(sequences, command["batch"], command["order"], command.get("separator"))
            inputs = model.prepare(batches)
            rows = [row for batch in batches for row in batch.rows]
            self.workloads[place] = (inputs, rows, len(sequences))
        return {}

    def forget(self, model):
        """Drops a model's workloads: with some engines they hold a network compiled for their shape."""
        self.workloads = {place: held for place, held in self.workloads.items() if place[0] != model}

    def run(self, command):
        model = self.models[command["model"]]
        inputs, rows, count = self.workloads[command["model"], command["workload"]]
        wall, cpu = time.perf_counter(), time.process_time()
        for _ in range(command.get("repeat", 1)):
            outputs = model.compute(inputs)
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        answer = {"wall": wall, "cpu": cpu}
        if command.get("values"):
            values = np.concatenate([np.asarray(output, np.float32).reshape(len(output), -1) for output in outputs])
            ordered = np.empty_like(values)
            ordered[rows if rows is not None else np.arange(count)] = values
            answer["values"] = ordered.reshape(-1).tolist()
        return answer

    def drop(self, command):
        self.forget(command["model"])
        return {"ok": self.models.pop(command["model"], None) is not None}

    def memory(self, _command):
        with open("/proc/self/status", encoding="ascii") as status:
            fields = dict(line.split(":", 1) for line in status)
        return {name: int(fields[key].split()[0]) * 1024 for name, key in (("peak", "VmHWM"), ("now", "VmRSS"))}


def main():
    warnings.filterwarnings("ignore")
    # Answers go to the real stdout; libraries that print reach stderr.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    worker = None
    for line in sys.stdin:
        try:
            worker = worker or Worker(sys.argv[1])
            command = json.loads(line)
            answer = {"ok": True} | getattr(worker, command["do"])(command)
        except Exception as error:  # noqa: BLE001: an engine that fails is dropped, whatever failed in it
            traceback.print_exc()
            answer = {"ok": False, "error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
