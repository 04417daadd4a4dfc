"""Writes ticks.json: tick places that matplotlib chooses, for tests/figure.rs.

Needs matplotlib (the file names its version); run in this folder: python gen_ticks.py
"""

import json

import matplotlib
from matplotlib.ticker import LogLocator, MaxNLocator

LOG_RANGES = [
    [0.01, 100.0],
    [1e-5, 1e4],
    [0.0093, 107.0],
    [3e-7, 2e-3],
    [0.7, 1300.0],
    [1.0, 10.0],
    [2.5, 40.0],
    [6.6e-3, 66.0],
    [1e-9, 0.5],
    [8.0, 12.0],
]
LINEAR_RANGES = [
    [0.0, 1.0],
    [0.0, 4.2],
    [-1.3, 2.7],
    [0.0, 109.0],
    [0.93, 1.07],
    [-0.004, 0.0031],
    [1234.0, 1240.5],
    [0.0, 3e6],
    [-7e-6, 2e-6],
    [99.0, 101.0],
]
# Enough that matplotlib never thins the ticks out.
MANY = 99


def within(values, low, high):
    """Values in the range; both programs may draw the line at its very ends differently."""
    slack = 1e-9
    return [float(v) for v in values if low * (1 - slack) <= v <= high * (1 + slack)]


def main():
    log = []
    for low, high in LOG_RANGES:
        major = LogLocator(base=10, subs=(1.0,), numticks=MANY).tick_values(low, high)
        minor = LogLocator(base=10, subs=range(2, 10), numticks=MANY).tick_values(low, high)
        log.append(
            {"range": [low, high], "major": within(major, low, high), "minor": within(minor, low, high)}
        )
    linear = []
    for low, high in LINEAR_RANGES:
        major = MaxNLocator(nbins=6, steps=[1, 2, 5, 10]).tick_values(low, high)
        slack = 1e-9 * (high - low)
        major = [float(v) for v in major if low - slack <= v <= high + slack]
        linear.append({"range": [low, high], "major": major})
    fixture = {"matplotlib": matplotlib.__version__, "log": log, "linear": linear}
    with open("ticks.json", "w", encoding="utf-8") as file:
        json.dump(fixture, file, indent=1)
        file.write("\n")


if __name__ == "__main__":
    main()
