"""Prints the versions of the peers that this environment has."""

import re
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

here = Path(__file__).parent
print(f"{'Python':22} {sys.version.split()[0]}")
for file in ("requirements.txt", "requirements-optional.txt"):
    for name in re.findall(r"^[a-z][a-z0-9-]*", (here / file).read_text(), re.MULTILINE):
        try:
            print(f"{name:22} {version(name)}")
        except PackageNotFoundError:
            print(f"{name:22} missing")
