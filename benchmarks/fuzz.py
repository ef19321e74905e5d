"""Run the fuzzer of the tests for as long as you like, and print what it found.

python -m benchmarks.fuzz --minutes 60
python -m benchmarks.fuzz --calls 100000
"""

import argparse
import time

import numpy as np

from tests import fuzz


def main() -> int:
    """Call every function in turn, with a new seed in each round."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=float("inf"))
    parser.add_argument("--calls", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1000)
    asked = parser.parse_args()
    limited = asked.minutes < float("inf")
    end = time.monotonic() + 60 * asked.minutes
    functions, calls, failures, seed = fuzz.callables(), 0, [], asked.seed
    while time.monotonic() < end and (limited or calls < asked.calls):
        for name, function in functions.items():
            for check in fuzz.CHECKS:
                said = check(name, function, np.random.default_rng(seed))
                calls += 1
                if said:
                    failures.append(f"seed {seed}: {said}")
        seed += 1
    print(f"{calls:,} calls, {len(failures)} failures")
    print("\n".join(failures))
    return int(bool(failures))


if __name__ == "__main__":
    raise SystemExit(main())
