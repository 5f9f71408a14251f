"""Goldens of crates/loxia-eval from scipy: Student's t, the paired t-test, and TOST.

    python tools/golden/eval_significance.py crates/loxia-eval/tests/fixtures/significance.json
"""

import json
import sys

import numpy
from scipy import stats


def main():
    rng = numpy.random.default_rng(3)
    cdf = [
        [t, df, float(stats.t.cdf(t, df))]
        for df in [1, 1.5, 2, 3, 7, 30, 42, 99.5, 1000, 6979, 1e6]
        for t in [-200.0, -37.5, -8.0, -2.1, -1.0, -1e-3, 0.3, 1.96, 5.0]
    ]
    paired = []
    for size, shift, spread in [(2, 0.1, 0.1), (5, 0.0, 0.2), (43, 0.02, 0.05), (43, 0.0, 0.02), (200, 0.01, 0.01),
                                (1000, 0.001, 0.05), (50, 0.019, 0.001), (50, -0.021, 0.001)]:
        baseline = rng.random(size).round(4)
        system = (baseline + shift + spread * rng.standard_normal(size)).round(4)
        test = stats.ttest_rel(system, baseline)
        case = {"baseline": baseline.tolist(), "system": system.tolist(), "statistic": test.statistic,
                "p": test.pvalue, "tost": []}
        for delta in [0.005, 0.02, 0.1]:
            above = stats.ttest_rel(baseline + delta, system, alternative="greater").pvalue
            below = stats.ttest_rel(baseline - delta, system, alternative="less").pvalue
            case["tost"].append([delta, float(max(above, below))])
        paired.append(case)
    with open(sys.argv[1], "w") as out:
        json.dump({"cdf": cdf, "paired": paired}, out, separators=(",", ":"))
        out.write("\n")


if __name__ == "__main__":
    main()
