"""Worker processes: ours and the peers', spoken to in JSON lines."""

import contextlib
import json
import os
import subprocess
import sys
import threading
from pathlib import Path

from . import machine, report

BENCH = Path(__file__).resolve().parent.parent


class EngineError(Exception):
    """An engine refused, failed or died."""


class Died(EngineError):
    """Its process is gone."""


class Worker:
    """A process that answers each command with one line. A peer's that dies is restarted, once for each thing it is asked."""

    def __init__(self, name, command, environment, log, patience=900):
        self.name = name
        self.patience = patience
        self.start = lambda: subprocess.Popen(
            command, cwd=BENCH, env=os.environ | environment, text=True, encoding="utf-8",
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log,
        )  # fmt: skip
        self.process = self.start()
        # What it was restarted for. Ours must not die, and is not helped.
        self.restarted = set()
        self.helped = name != "loxia"
        # Commands that made what it holds, to be given to its successor.
        self.held = {}

    def ask(self, **command):
        """Sends a command and waits for its answer; raises EngineError if there is none or it is a refusal."""
        try:
            answer = self.ask_once(command)
        except Died as error:
            cause = command["do"], command.get("model"), command.get("workload"), command.get("batch")
            if not self.helped or cause in self.restarted or command["do"] == "drop":
                raise
            report.say(f"restarted: {self.name}: {error}")
            self.restarted.add(cause)
            self.process = self.start()
            for earlier in self.held.values():
                self.ask_once(earlier)
            answer = self.ask_once(command)
        if command["do"] in ("load", "workload"):
            self.held[command["do"], command["model"], command.get("workload")] = command
        elif command["do"] == "drop":
            self.held = {made: held for made, held in self.held.items() if made[1] != command["model"]}
        return answer

    def ask_once(self, command):
        """As `ask` on the process that runs now, for as long as patience lasts."""
        watchdog = threading.Timer(self.patience, self.process.kill)
        watchdog.start()
        try:
            self.process.stdin.write(json.dumps(command) + "\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        finally:
            watchdog.cancel()
        if not line:
            raise Died(f"its process ended (exit code {self.process.wait()})")
        answer = json.loads(line)
        if not answer["ok"]:
            raise EngineError(answer.get("error", "refused"))
        return answer

    def close(self):
        with contextlib.suppress(BrokenPipeError):  # one that died has been told of already
            self.process.stdin.close()
        try:
            self.process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def ours(binary, log, environment=None):
    """Our own worker."""
    return Worker("loxia", [str(binary), "bench", "encoder", "--worker"], environment or {}, log)


def peer(library, threads, log, environment=None):
    """A worker of one library, its thread pools limited before it starts."""
    limits = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), str(threads))
    quiet = {"TOKENIZERS_PARALLELISM": "true", "HF_HUB_OFFLINE": "1", "TRANSFORMERS_VERBOSITY": "error"}
    needed = machine.openvino_environment() if library == "openvino" else {}
    command = [sys.executable, "-m", "engines.worker", library]
    return Worker(library, command, limits | quiet | needed | (environment or {}), log)
