"""Writes the npy fixtures of loxia-core with NumPy.

    python tools/golden/npy.py crates/loxia-core/tests/fixtures/npy

The tests know the values: cell (r, c) of every matrix is (r * cols + c) / 8 - 1, unless said otherwise.
"""

import sys
from pathlib import Path

import numpy as np
from numpy.lib import format as npy_format


def ramp(rows, cols, dtype):
    return (np.arange(rows * cols, dtype=np.float64) / 8 - 1).reshape(rows, cols).astype(dtype)


def save_version(path, array, version):
    with open(path, "wb") as file:
        npy_format.write_array(file, array, version=version)


def main(out):
    out.mkdir(parents=True, exist_ok=True)
    np.save(out / "f4.npy", ramp(3, 5, "<f4"))
    np.save(out / "f2.npy", ramp(3, 5, "<f2"))
    np.save(out / "f8.npy", ramp(3, 5, "<f8"))
    np.save(out / "u2.npy", np.arange(15, dtype="<u2").reshape(3, 5) * 4000)
    np.save(out / "vector.npy", ramp(1, 7, "<f4")[0])
    np.save(out / "vector_f2.npy", ramp(1, 7, "<f2")[0])
    np.save(out / "no_rows.npy", np.zeros((0, 4), "<f4"))
    np.save(out / "wide.npy", ramp(1, 1200, "<f4"))
    np.save(out / "big_endian.npy", ramp(3, 5, ">f4"))
    np.save(out / "fortran.npy", np.asfortranarray(ramp(3, 5, "<f4")))
    np.save(out / "three.npy", np.zeros((2, 2, 2), "<f4"))
    np.save(out / "structured.npy", np.zeros(2, [("a", "<f4")]))
    save_version(out / "version2.npy", ramp(3, 5, "<f4"), (2, 0))
    save_version(out / "version3.npy", ramp(3, 5, "<f4"), (3, 0))

    nan = ramp(3, 5, "<f4")
    nan[1, 2] = np.nan
    np.save(out / "nan.npy", nan)

    # One value that single precision has to round, one that overflows it.
    thirds = ramp(2, 2, "<f8")
    thirds[0, 1] = 1 / 3
    np.save(out / "thirds_f8.npy", thirds)
    huge = ramp(2, 2, "<f8")
    huge[1, 0] = 1e300
    np.save(out / "huge_f8.npy", huge)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
