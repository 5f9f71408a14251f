"""No engine: what a worker with Python and NumPy takes by itself, for comparing memory."""

import numpy

VARIANTS = {}


def versions():
    return {"numpy": numpy.__version__}
