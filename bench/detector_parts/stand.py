"""What every part needs: clips, programs whose cost is known, a place to show figures."""
import ctypes
import os
import signal
import statistics
import subprocess
import sys

FPS = 15
PR_SET_PDEATHSIG = 1


def end_with_the_benchmark():
    """Runs in a child before its program: a benchmark that is killed ends no child itself."""
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def start(command, **options):
    return subprocess.Popen(command, preexec_fn=end_with_the_benchmark, **options)


def run(command, **options):
    return subprocess.run(command, preexec_fn=end_with_the_benchmark, check=True, **options)


class Stand:
    def __init__(self, build, folder, rounds, uses_json):
        self.build, self.folder, self.rounds = os.path.abspath(build), folder, rounds
        self.output = sys.stderr if uses_json else sys.stdout
        self.is_terminal = sys.stderr.isatty()
        self.clips = {}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.progress("")

    def program(self, name):
        path = os.path.join(self.build, "bin", name)
        if not os.access(path, os.X_OK):
            sys.exit(f"bench/detector: {path} is missing: scripts/build release")
        return path

    def progress(self, text):
        """What is under way, in one line that the next one overwrites; on a terminal only."""
        if self.is_terminal:
            print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)

    def show(self, name, value):
        self.progress("")
        print(f"{name:<52} {value}", file=self.output, flush=True)

    def clip(self, seconds, codec="h264"):
        """A camera's picture, 720p at 15 fps and 2 Mbit/s: three rectangles that move, and the
        noise of a sensor everywhere, without which nothing but the rectangles would be coded."""
        key = (seconds, codec)
        if key not in self.clips:
            path = os.path.join(self.folder, f"camera-{seconds}-{codec}.mp4")
            self.progress(f"a clip of {seconds} s is made")
            encoder = {"h264": ["libx264", "-preset", "veryfast", "-tune", "zerolatency",
                                "-profile:v", "main", "-sc_threshold", "0"],
                       "hevc": ["libx265", "-preset", "ultrafast", "-x265-params",
                                "log-level=none"]}[codec]
            def paint(color, size):
                return ["-f", "lavfi", "-i", f"color=c={color}:s={size}:r={FPS}:d={seconds}"]
            run(["ffmpeg", "-nostdin", "-v", "error", "-y", "-f", "lavfi",
                 "-i", f"color=c=0x404040:s=1280x720:r={FPS}:d={seconds},noise=alls=6:allf=t",
                 *paint("red", "200x120"), *paint("lime", "120x160"), *paint("blue", "100x100"),
                 "-filter_complex",
                 "[0][1]overlay=x='40+mod(t*120,1000)':y=60[a];"
                 "[a][2]overlay=x=600:y='40+mod(t*60,480)'[b];"
                 "[b][3]overlay=x='1100-mod(t*90,1000)':y=560",
                 "-c:v", *encoder, "-pix_fmt", "yuv420p", "-g", "30", "-b:v", "2M", "-maxrate",
                 "2M", "-bufsize", "1M", "-an", path], stdin=subprocess.DEVNULL)
            self.clips[key] = path
        return self.clips[key]


def run_measured(command):
    """Its standard output, and the CPU that it and its children took, in seconds: of those that
    were waited for, which are all of ours."""
    child = start(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    output = child.stdout.read()
    child.stdout.close()
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0:
        sys.exit(f"bench/detector: {' '.join(command)}: ended with {child.returncode}")
    return output, usage.ru_utime + usage.ru_stime


def median(values):
    return round(statistics.median(values), 4)


def spread(values):
    """The median, and between what the figures of the rounds lay."""
    return {"median": median(values), "min": round(min(values), 4), "max": round(max(values), 4)}


def children(pid):
    """The process, its children and theirs."""
    found = [pid]
    try:
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/children", encoding="utf-8") as file:
                for child in file.read().split():
                    found += children(int(child))
    except OSError:
        pass
    return found


def proc(pid, name):
    """That file of /proc of the process and of its children, of each that is still there."""
    for one in children(pid):
        try:
            with open(f"/proc/{one}/{name}", encoding="utf-8") as file:
                yield file.read()
        except OSError:
            pass


def cpu_s(pid):
    """What the process and its children have used so far, in seconds of one core."""
    ticks = sum(sum(map(int, text.rsplit(")", 1)[1].split()[11:13])) for text in proc(pid, "stat"))
    return ticks / os.sysconf("SC_CLK_TCK")


def memory_mib(pid):
    """What they have of the machine's memory; what is shared counts once (PSS)."""
    kib = sum(int(text.split("\nPss:")[1].split()[0]) for text in proc(pid, "smaps_rollup"))
    return round(kib / 1024, 1)
