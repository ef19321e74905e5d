"""Run the fuzzer of the tests for as long as you like, and print what it found.

python -m benchmarks.fuzz --minutes 60
python -m benchmarks.fuzz --calls 100000
python -m benchmarks.fuzz --only dips --check row_order --seed 17
"""

import argparse
import resource
import signal
import time
import traceback
from collections import Counter

from benchmarks import fuzz_files
from tests import fuzz

#: One call may take so long (s), and all of them so much memory.
LONGEST, MOST_MEMORY = 60, 6 << 30
#: Calls that take long are made in one round of so many.
SLOW = {
    "audit": 8,
    "audit_cv": 8,
    "mitigation_report": 16,
    "MitigationReport.summary": 32,
    "GroupCalibratedClassifier": 4,
    "GroupThresholdClassifier": 4,
    "marginal_outcome_test": 4,
}


#: Checks that make several calls, in one round of so many.
EVERY = {"threads": 4, "row_order": 2}


def too_long(*_):
    """Raise an error, which no call may."""
    raise TimeoutError(f"longer than {LONGEST} s")


def rounds(first, only, check):
    """Yield what is called, with a new seed in each round."""
    chosen = [
        (name, how)
        for name, how in [*fuzz.tasks(), ("measure", "engines")]
        if only in (None, name) and check in (None, how)
    ]
    seed = first
    while True:
        for name, how in chosen:
            if only or (
                seed % SLOW.get(name, 1) == 0 and seed % EVERY.get(how, 1) == 0
            ):
                yield name, how, seed
        seed += 1


def attempt(name, check, seed):
    """Make one call with its check."""
    if check == "engines":
        fuzz_files.attempt(seed)
    else:
        fuzz.attempt(name, check, seed)


def main() -> int:
    """Call everything in turn, and print each failure with its reproducer."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=float("inf"))
    parser.add_argument("--calls", type=int)
    parser.add_argument("--seed", type=int, default=1000)
    parser.add_argument("--only")
    parser.add_argument("--check", choices=[*fuzz.CHECKS, "engines"])
    asked = parser.parse_args()
    most = asked.calls or (10_000 if asked.minutes == float("inf") else 10**12)
    if asked.only and asked.check and not asked.calls:
        most = 1
    end = time.monotonic() + 60 * asked.minutes
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
    signal.signal(signal.SIGALRM, too_long)
    calls, failures, spent = Counter(), 0, Counter()
    for name, check, seed in rounds(asked.seed, asked.only, asked.check):
        if calls.total() >= most or time.monotonic() > end:
            break
        signal.alarm(LONGEST)
        start = time.perf_counter()
        try:
            attempt(name, check, seed)
        except Exception:  # noqa: BLE001
            failures += 1
            traceback.print_exc()
        signal.alarm(0)
        calls[check] += 1
        spent[name] += time.perf_counter() - start
    print(", ".join(f"{check} {n:,}" for check, n in calls.most_common()))
    print(f"{calls.total():,} calls, {failures} failures, seeds {asked.seed} to {seed}")
    print("most time:", ", ".join(f"{n} {s:.0f} s" for n, s in spent.most_common(8)))
    return int(bool(failures))


if __name__ == "__main__":
    raise SystemExit(main())
