"""Which machine this is, and whether it is free to be measured."""

import datetime
import os
import platform
import subprocess

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
    return {
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "CPU": name,
        "cores": os.cpu_count(),
        "flags": " ".join(flags) or "none of interest",
        "system": f"{platform.system()} {platform.release()}",
        "Python": platform.python_version(),
        "commit": commit(directory),
        "load average": load(),
    }


def is_busy():
    """Whether others compute here; one core of them is enough to spoil a comparison."""
    return os.getloadavg()[0] > 0.7
