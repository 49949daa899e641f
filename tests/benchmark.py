"""Times of what must be quick: `make bench`."""

from __future__ import annotations

import subprocess
import sys
from statistics import median
from time import perf_counter

PROCESSES = {
    "tokroof --help": ["-m", "tokroof", "--help"],
    "import model": ["-c", "import model"],
}


def process_s(arguments: list[str]) -> float:
    """How long one fresh Python process takes, in s."""
    start = perf_counter()
    subprocess.run([sys.executable, *arguments], check=True, capture_output=True)
    return perf_counter() - start


def main(repeats: int = 7) -> None:
    """Print the best and the median of each, in ms; the best is the least disturbed."""
    for name, arguments in PROCESSES.items():
        times = [process_s(arguments) for _ in range(repeats)]
        print(f"{name:<24} best {min(times) * 1e3:7.1f} ms   median {median(times) * 1e3:7.1f} ms")


if __name__ == "__main__":
    main()
