"""Works where this process leads: report.py ELECTION, beside `baton agent` on each host."""
import os
import signal
import sys

import baton


def work(leadership):
    while not leadership.stopping.wait(0.05):  # leadership is to be handed over, or is lost
        leadership.check()  # before each step; raises Lost
        print(os.getpid(), "works", leadership.epoch, flush=True)  # the epoch with each write


def end(*_):
    raise SystemExit(0)  # the with-block ends: leadership is handed on


def main(election):
    signal.signal(signal.SIGTERM, end)
    while True:
        with baton.lead(election) as leadership:
            try:
                work(leadership)
            except baton.Lost:
                pass
        print(os.getpid(), "ends", leadership.epoch, leadership.reason, flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
