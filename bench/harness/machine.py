"""Which machine this is, and whether it is free to be measured."""

import atexit
import ctypes
import datetime
import functools
import math
import os
import platform
import subprocess
import tempfile
import time
from pathlib import Path

# Cores busy with others from which on a comparison is less sure.
BUSY = 0.15
FLAGS = ("avx2", "fma", "avx_vnni", "avx512f", "avx512bw", "avx512_vnni", "avx512_bf16", "amx_int8", "amx_bf16")


def cpu():
    """Model name and the vector flags that matter here."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            fields = dict(line.split(":", 1) for line in lines if ":" in line)
    except OSError:
        return platform.processor(), []
    fields = {name.strip(): value.strip() for name, value in fields.items()}
    present = fields.get("flags", "").split()
    return fields.get("model name", platform.processor()), [flag for flag in FLAGS if flag in present]


@functools.cache
def palette_teller():
    """The built engines/palette.c where it is needed and can be built, else None."""
    if "amx_int8" not in cpu()[1]:
        return None
    source = Path(__file__).resolve().parent.parent / "engines" / "palette.c"
    folder = tempfile.TemporaryDirectory(prefix="loxia-palette-")
    atexit.register(folder.cleanup)
    library = Path(folder.name) / "palette.so"
    command = [os.environ.get("CC", "cc"), "-O2", "-shared", "-fPIC", "-o", str(library), str(source)]
    try:
        subprocess.run(command, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return library if ctypes.CDLL(str(library)).palette_is_hidden() else None


def openvino_environment():
    """What OpenVINO needs to live on this machine."""
    library = palette_teller()
    return {"LD_PRELOAD": str(library), "LOXIA_PALETTE": "1"} if library else {}


def commit(directory):
    """The commit that is measured; with + when files differ from it."""
    git = lambda *words: subprocess.run(["git", *words], cwd=directory, capture_output=True, text=True).stdout.strip()
    return git("rev-parse", "--short", "HEAD") + ("+" if git("status", "--porcelain", "-uno") else "")


class Others:
    """CPU time of everyone but this program and its ended children, from now on.

    What the host takes from a virtual machine (steal) is among it. A load average would not do: it remembers the build
    before a run, and the run itself.
    """

    def __init__(self):
        self.began = self.times()

    @staticmethod
    def times():
        """Seconds on the clock, and of others' CPU time: not a number where the system does not say."""
        ours = os.times()
        try:
            with open("/proc/stat", encoding="ascii") as lines:
                user, nice, system, _idle, _waiting, *rest = map(int, lines.readline().split()[1:9])
        except OSError:
            return ours.elapsed, math.nan
        return ours.elapsed, (user + nice + system + sum(rest)) / os.sysconf("SC_CLK_TCK") - sum(ours[:4])

    def cores(self):
        """How many cores they have kept busy so far."""
        (began, before), (now, after) = self.began, self.times()
        return max((after - before) / (now - began), 0.0)

    @classmethod
    def over(cls, seconds):
        others = cls()
        time.sleep(seconds)
        return others.cores()


def describe(directory):
    """Facts for the head of a report."""
    name, flags = cpu()
    hidden = {"AMX": "size of its registers hidden; OpenVINO, which would die, is told (engines/palette.c)"}
    return {
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "CPU": name,
        "cores": os.cpu_count(),
        "flags": " ".join(flags) or "none of interest",
        **(hidden if palette_teller() else {}),
        "system": f"{platform.system()} {platform.release()}",
        "Python": platform.python_version(),
        "commit": commit(directory),
    }
