"""Which machine this is, and whether it is free to be measured."""

import atexit
import ctypes
import datetime
import functools
import os
import platform
import subprocess
import tempfile
from pathlib import Path

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


def load():
    """The load averages of 1, 5 and 15 minutes."""
    return " ".join(f"{average:.2f}" for average in os.getloadavg())


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
        "load average": load(),
    }


def is_busy():
    """Whether others compute here; one core of them is enough to spoil a comparison."""
    return os.getloadavg()[0] > 0.7
