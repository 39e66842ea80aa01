"""A bag of jobs, beside `baton agent` on each host, and one process that leads the pool `primes`
(../jobs.c, with the URL agent:).

jobs.py NAME works until it is interrupted; jobs.py NAME COUNT puts jobs in and prints what they
found.
"""
import signal
import sys
import threading

import baton
import baton.work

RANGE = 10000


def count(run):
    first, found = int(run.body) * RANGE, 0
    for number in range(max(2, first), first + RANGE):
        if run.should_stop:  # cancelled, moved, or no right to act: the job runs elsewhere
            return ""
        found += all(number % i for i in range(2, int(number ** 0.5) + 1))
    return str(found)


def ask(pool, jobs):
    given = pool.submit([{"body": str(job), "retries": 3} for job in range(jobs)])
    results = pool.wait(given.ids, timeout=600)
    print(sum(int(result.output) for result in results), "primes below", jobs * RANGE)


def main(name, jobs=None):
    ends = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: ends.set())
    signal.signal(signal.SIGINT, lambda *_: ends.set())
    with baton.Client(name=name) as client:
        pool = baton.work.Pool(client, "primes")
        with pool.worker(name, count, slots=2):  # at its end, what it has begun it ends
            if jobs is None:
                ends.wait()
            else:
                ask(pool, int(jobs))


if __name__ == "__main__":
    main(*sys.argv[1:])
