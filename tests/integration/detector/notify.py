"""What systemd is told by baton-detector: ready, alive, stopping.   notify.py BATON-DETECTOR"""

import os
import signal
import socket
import subprocess
import sys
import tempfile


def main(program):
    with tempfile.TemporaryDirectory() as folder, socket.socket(
            socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        path = os.path.join(folder, "notify")
        manager.bind(path)
        manager.settimeout(60)
        worker = subprocess.Popen(
            [program, "--port", "0", "--host", "127.0.0.1", "--model-cache", folder],
            env=dict(os.environ, NOTIFY_SOCKET=path, WATCHDOG_USEC="100000"),
            stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        try:
            told = []
            while "READY=1" not in told or told.count("WATCHDOG=1") < 2:
                told.append(manager.recv(4096).decode())
            assert "STOPPING=1" not in told, told
            assert any(text.startswith("STATUS=port ") for text in told), told
            worker.send_signal(signal.SIGTERM)
            while "STOPPING=1" not in told:
                told.append(manager.recv(4096).decode())
            _, log = worker.communicate(timeout=240)
            assert worker.returncode == 0, log
        finally:
            worker.kill()
            worker.wait()


main(sys.argv[1])
print("ok")
