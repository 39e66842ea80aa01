#!/usr/bin/python3
"""A worker of Celery on Redis; one job at a time. Each attempt appends a line to the file: when it
starts and ends, by the monotonic clock that all processes of the machine share.

usage: celery_worker.py PORT FILE NAME [VISIBILITY_TIMEOUT_S]; NAME "submit": SECONDS
"""
import sys
import time

import celery

port, file, name = sys.argv[1:4]
app = celery.Celery("jobs", broker=f"redis://127.0.0.1:{port}/0")
# A job that its worker did not finish comes again only if it is acknowledged late.
app.conf.update(task_acks_late=True, worker_prefetch_multiplier=1, task_ignore_result=True)


def record(what):
    with open(file, "a", encoding="utf-8") as out:
        out.write(f"{what} {name} {time.monotonic() * 1e3}\n")


@app.task(name="job")
def job(seconds):
    record("start")
    time.sleep(seconds)
    record("end")


if name == "submit":
    job.delay(float(sys.argv[4]))
else:
    if len(sys.argv) > 4:
        app.conf.broker_transport_options = {"visibility_timeout": float(sys.argv[4])}
    app.worker_main(["worker", "--pool=solo", "--loglevel=warning", f"--hostname={name}@bench"])
