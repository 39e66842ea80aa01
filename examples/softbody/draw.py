#!/usr/bin/env python3
"""Draws a run of the soft bodies as SVG that any browser shows, on light and dark pages.

usage: draw.py film STATES BATCHES [LOG]     the bodies, moving (SMIL, no script)
       draw.py sheet STATES BATCHES [LOG]    six moments, with the lattices
       draw.py timeline LOG                  who was master when, and who ran which batch

STATES is a file of whole scenes, as batch.h lays them out, one behind the other. A body has the
colour of its batch or, with a LOG, of the process that ran its batch at that frame. LOG has a line
for each event, with the time in seconds since the start:

    TIME master NAME EPOCH               NAME has become the master
    TIME batch B on NAME attempt N       NAME runs batch B from here on; it is its Nth runner
    TIME frame F                         all batches have reached frame F
    TIME end NAME                        NAME has died, with all that it was and ran
"""
import collections
import math
import re
import struct
import sys

# Apart from each other also for people who see red and green alike. Red is left to failures.
COLOURS = ("#3f7fd1", "#f2a33a", "#2fa58b", "#b06ac0", "#e4c63c", "#5cb8e6", "#9a7a63", "#ef8fb0",
           "#86a83a", "#7b7fd9")
WIDTH = 960
STYLE = """<style>
svg{--panel:#f7f9fc;--ink:#222b38;--faint:#5d6878;--line:#d3dae4;--track:#e6ebf2;--fault:#d0342c;
--solid:#a9b4c3}
@media(prefers-color-scheme:dark){svg{--panel:#121924;--ink:#e3e9f2;--faint:#93a0b3;--line:#303c4d;
--track:#1e2836;--fault:#ff6b5e;--solid:#4a586c}}
text{font:13px system-ui,'Helvetica Neue',Arial,sans-serif;fill:var(--ink)}
.faint{fill:var(--faint)}.line{stroke:var(--line)}.track{fill:var(--track)}
.solid{fill:var(--solid)}.fault{fill:var(--fault)}.cut{stroke:var(--fault);stroke-dasharray:4 3}
.curve{fill:none;stroke:var(--ink);stroke-width:1.5;stroke-linejoin:round}
.end{text-anchor:end}.middle{text-anchor:middle}
.in{fill:#10161f;font-size:11px;font-weight:600}.mark{fill:#fff;font-size:11px;font-weight:600}
.body{stroke:#000;stroke-width:3;stroke-opacity:.35}
.lattice{fill:none;stroke:#fff;stroke-opacity:.55;stroke-width:2.5}
</style>"""


def colour(index):
    return COLOURS[index % len(COLOURS)]


def picture(height, label, parts):
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:g}" '
        f'width="{WIDTH}" height="{height:g}" role="img" aria-label="{label}">', STYLE,
        f'<rect width="{WIDTH}" height="{height:g}" rx="10" style="fill:var(--panel)"/>',
        *parts, "</svg>"])


def legend(x, y, names):
    for i, name in enumerate(names):
        yield f'<rect x="{x:g}" y="{y - 11:g}" width="14" height="14" rx="4" fill="{colour(i)}"/>' \
              f'<text x="{x + 20:g}" y="{y:g}">{name}</text>'
        x += 42 + 7.5 * len(name)


# ---- The log -------------------------------------------------------------------------------------

Bar = collections.namedtuple("Bar", "lane name number begin end is_open")
NAME = r"([\w.-]+)"
EVENTS = [re.compile(r"([0-9.]+) " + rest + "$") for rest in (
    rf"(master) {NAME} (\d+)", rf"(batch) (\d+) on {NAME} attempt (\d+)", r"(frame) (\d+)",
    rf"(end) {NAME}")]


class Log:
    """The bars of each lane (the master's is -1, the others are of the batches) in the order of
    their ends, the frames as (time, frame), and the deaths as (time, name)."""

    def __init__(self, path):
        self.bars, self.frames, self.deaths, self.names = [], [], [], []
        self.end = 0.0
        self.open = {}
        with open(path, encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                line = line.strip()
                if line and line[0] != "#":
                    found = next(filter(None, (event.match(line) for event in EVENTS)), None)
                    if not found or float(found.group(1)) < self.end:
                        sys.exit(f"{path}:{number}: no event, or before the line above: {line}")
                    self.end = float(found.group(1))
                    self.take(*found.groups()[1:])
        for lane in list(self.open):
            self.close(lane, True)
        self.batches = 1 + max((bar.lane for bar in self.bars), default=-1)

    def take(self, event, *words):
        if event == "master":
            self.begin(-1, words[0], int(words[1]))
        elif event == "batch":
            self.begin(int(words[0]), words[1], int(words[2]))
        elif event == "frame":
            self.frames.append((self.end, int(words[0])))
        else:
            self.deaths.append((self.end, words[0]))
            for lane, (name, _, _) in list(self.open.items()):
                if name == words[0]:
                    self.close(lane, False)

    def begin(self, lane, name, number):
        if lane in self.open:
            self.close(lane, False)
        if name not in self.names:
            self.names.append(name)
        self.open[lane] = (name, number, self.end)

    def close(self, lane, is_open):
        name, number, begin = self.open.pop(lane)
        self.bars.append(Bar(lane, name, number, begin, self.end, is_open))

    def runner(self, batch, frame):
        """The index of the name that ran the batch when it came to this frame."""
        at = next((at for at, reached in self.frames if reached >= frame), self.end)
        bars = [bar for bar in self.bars if bar.lane == batch and bar.begin <= at]
        return self.names.index(max(bars, key=lambda bar: bar.begin).name) if bars else 0

    def idle_after(self, cut):
        """How long the lane of a bar is idle after it; infinite if for good."""
        later = [bar.begin for bar in self.bars if bar.lane == cut.lane and bar.begin >= cut.end]
        return min(later, default=math.inf) - cut.end


# ---- The timeline --------------------------------------------------------------------------------

LEFT, RIGHT, TOP = 92, WIDTH - 24, 38
MASTER, FRAMES, GAP = 28, 76, 12  # heights


def nice(rough):
    """The next of 1, 2 and 5 times a power of ten."""
    power = 10 ** math.floor(math.log10(rough))
    return next(step * power for step in (1, 2, 5, 10) if rough <= step * power * (1 + 1e-9))


def text(x, y, words, kind=""):
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}">{words}</text>'


def track(y, height):
    return f'<rect class="track" x="{LEFT}" y="{y:.1f}" width="{RIGHT - LEFT}" ' \
           f'height="{height:.1f}" rx="4"/>'


def after(seconds, what, never):
    if seconds == math.inf:
        return never
    span = f"{seconds * 1e3:.3g} ms" if seconds < 1 else f"{seconds:.3g} s"
    return f"{what} after {span}"


def cost(log, at, name):
    """What a death has cost, in words."""
    cut = [bar for bar in log.bars if bar.name == name and bar.end == at and not bar.is_open]
    words = [f"{at:.2f} s: {name} dies"]
    words += [after(log.idle_after(bar), "a new master", "no master any more")
              for bar in cut if bar.lane < 0]
    batches = [log.idle_after(bar) for bar in cut if bar.lane >= 0]
    if batches:
        its, run = ("its batch", "runs") if len(batches) == 1 else \
            (f"its {len(batches)} batches", "run")
        words.append(after(max(batches), f"{its} {run} again", f"{its} never {run} again"))
    return "; ".join(words)


def curve(log, x_of, y):
    """How long each round took. Of those that would fall on one pixel the longest is drawn."""
    points = {}
    for (before, _), (at, _) in zip(log.frames, log.frames[1:]):
        x = round(x_of(at))
        points[x] = max(points.get(x, 0), (at - before) * 1e3)
    top = nice(max([*points.values(), 1e-3]))
    yield track(y, FRAMES)
    yield text(LEFT - 10, y + FRAMES / 2 + 4, "ms a round", "end")
    yield text(LEFT - 10, y + 11, f"{top:g}", "end faint")
    yield text(LEFT - 10, y + FRAMES, "0", "end faint")
    yield '<path class="curve" d="M' + "L".join(
        f"{x} {y + FRAMES - ms / top * FRAMES:.1f}" for x, ms in points.items()) + '"/>'


def bar_of(log, bar, x_of, y, height):
    x, name = x_of(bar.begin), log.names.index(bar.name)
    width = max(x_of(bar.end) - x, 1)
    words = bar.name if bar.lane >= 0 else f"{bar.name}, epoch {bar.number}"
    yield f'<rect x="{x:.2f}" y="{y:.1f}" width="{width:.2f}" height="{height:.1f}" ' \
          f'rx="{min(4, width / 3):.2g}" fill="{colour(name)}"/>'
    if height > 11 and width > 7 * len(words) + 8:
        yield text(x + 6, y + height / 2 + 4, words, "in")


def axis(log, x_of, y):
    step = nice(max(log.end, 1e-3) / 10)
    for i in range(int(log.end / step * (1 + 1e-9)) + 1):
        x = x_of(i * step)
        yield f'<path class="line" d="M{x:.1f} {TOP}V{y + 6:.1f}"/>'
        yield text(x, y + 21, f"{i * step:g}", "middle faint")
    yield text((LEFT + RIGHT) / 2, y + 39, "time since the start, in s", "middle faint")


def mark(x, y, number):
    return f'<circle class="fault" cx="{x:.1f}" cy="{y:.1f}" r="8"/>' + \
           text(x, y + 4, number, "middle mark")


def timeline(log):
    def x_of(at):
        return LEFT + at / max(log.end, 1e-3) * (RIGHT - LEFT)

    lane = min(20.0, 264 / max(log.batches, 1))
    first = TOP + MASTER + GAP
    y = first + lane * log.batches + GAP
    parts = [text(LEFT - 10, TOP + MASTER / 2 + 5, "master", "end"), track(TOP, MASTER)]
    for i in range(log.batches):
        parts.append(track(first + lane * i + 1, lane - 2))
        if i % math.ceil(13 / lane) == 0:
            parts.append(text(LEFT - 10, first + lane * (i + 0.5) + 4.5,
                              f"batch {i}" if i == 0 else i, "end faint"))
    parts += [*curve(log, x_of, y), *axis(log, x_of, y + FRAMES + GAP / 2)]
    y += FRAMES + GAP / 2
    for bar in log.bars:
        if bar.lane < 0:
            parts += bar_of(log, bar, x_of, TOP, MASTER)
        else:
            parts += bar_of(log, bar, x_of, first + lane * bar.lane + 1, lane - 2)
    parts += legend(LEFT, y + 66, log.names)
    for i, (at, name) in enumerate(log.deaths):
        note = y + 92 + 20 * i
        parts.append(f'<path class="cut" d="M{x_of(at):.1f} {TOP - 10}V{y:.1f}"/>')
        parts += [mark(x_of(at), TOP - 18, i + 1), mark(LEFT + 7, note - 4.5, i + 1),
                  text(LEFT + 22, note, cost(log, at, name))]
    return picture(y + 84 + 20 * len(log.deaths), "who was master when, and who ran which batch",
                   parts)


# ---- Film and contact sheet ----------------------------------------------------------------------

RINGS, SPOKES = 3, 16
NODES = 1 + RINGS * SPOKES
FRAMES_PER_S = 60
UNITS = 100  # to a metre
WORLD_WIDTH, WORLD_HEIGHT = 16, 9  # the width is that of body.c
PEGS = ((3.5, 3.7, 1.3), (8, 4.6, 1.3), (12.5, 3.7, 1.3))  # of body.c, too
HEAD = struct.Struct("<IHHIIQI")
ROW = struct.Struct(f"<I2d{4 * NODES}d")
MARGIN, LEGEND = 14, 40
SHOTS_MAX = 41  # of a film, which has some 3.5 KB of each

Shot = collections.namedtuple("Shot", "frame bodies owners")


def read_shots(path, batches, log):
    with open(path, "rb") as file:
        data = file.read()
    at, shots = 0, []
    while at < len(data):
        _, _, _, _, _, frame, count = HEAD.unpack_from(data, at)
        at += HEAD.size
        bodies = []
        for _ in range(count):
            row = ROW.unpack_from(data, at)[3:]
            at += ROW.size
            bodies.append([(round(x * UNITS), round((WORLD_HEIGHT - y) * UNITS))
                           for x, y in zip(row[0::4], row[1::4])])
        at += 4  # the sum
        cut = [batch for batch in range(batches)
               for _ in range(batch * count // batches, (batch + 1) * count // batches)]
        runners = [log.runner(batch, frame) if log else batch for batch in range(batches)]
        shots.append(Shot(frame, bodies, [runners[batch] for batch in cut]))
    return shots


def outline(nodes):
    """A closed curve through the middles of the outline's edges, with the nodes as control points.
    `t` mirrors the control point before it, so each middle is rounded to where the mirrored point
    comes to lie next to its node: the curve stays within a unit, at a third of the bytes."""
    ring = nodes[-SPOKES:]
    control = ring[0]
    middle = tuple((a + b) // 2 for a, b in zip(ring[-1], ring[0]))
    path = f"M{middle[0]} {middle[1]}q{control[0] - middle[0]} {control[1] - middle[1]}"
    for k in range(1, SPOKES + 1):
        following = tuple((a + b) // 2 for a, b in zip(ring[k % SPOKES], control))
        path += "t" * (k == 2) + "".join(f" {a - b}" for a, b in zip(following, middle))
        control = tuple(2 * a - b for a, b in zip(following, control))
        middle = following
    return path.replace("t ", "t").replace(" -", "-") + "z"


def lattice(nodes):
    """The rings inside of the outline, and the spokes."""
    def line(points):
        return "M" + "L".join(f"{x} {y}" for x, y in points)

    rings = [line(nodes[1 + ring * SPOKES:][:SPOKES]) + "z" for ring in range(RINGS - 1)]
    spokes = [line(nodes[:1] + nodes[1 + k::SPOKES]) for k in range(SPOKES)]
    return "".join(rings + spokes)


DEFINITIONS = f"""<defs><radialGradient id="gloss" cx=".36" cy=".3" r=".8">
<stop stop-color="#fff" stop-opacity=".55"/>
<stop offset=".55" stop-color="#fff" stop-opacity=".08"/>
<stop offset="1" stop-opacity=".14"/></radialGradient>
<clipPath id="w"><rect width="{WORLD_WIDTH * UNITS}" height="{WORLD_HEIGHT * UNITS}" rx="16"/>
</clipPath></defs>"""


def stage(x, y, scale):
    """The world without its bodies; a group that is left open."""
    yield f'<g transform="translate({x:g} {y:g}) scale({scale:.4f})" clip-path="url(#w)">' \
          f'<rect class="track" width="{WORLD_WIDTH * UNITS}" height="{WORLD_HEIGHT * UNITS}"/>'
    for peg_x, peg_y, radius in PEGS:
        yield f'<circle class="solid" cx="{peg_x * UNITS:g}" ' \
              f'cy="{(WORLD_HEIGHT - peg_y) * UNITS:g}" r="{radius * UNITS:g}"/>'


def animate(attribute, seconds, values, more=""):
    return f'<animate attributeName="{attribute}" dur="{seconds:g}s" repeatCount="indefinite" ' \
           f'{more}values="{";".join(values)}"/>'


def body_of(name, owner, shape, moves="", paint=""):
    """One path, painted twice: with its owner's colour, which may change, and with gloss. (Browsers
    do not animate a fill that is a gradient.)"""
    return f'<defs><path id="{name}" d="{shape}">{moves}</path></defs>' \
           f'<use href="#{name}" class="body" fill="{colour(owner)}">{paint}</use>' \
           f'<use href="#{name}" fill="url(#gloss)"/>'


def film(shots, names):
    shots = shots[::math.ceil(len(shots) / SHOTS_MAX)]
    scale = (WIDTH - 2 * MARGIN) / (WORLD_WIDTH * UNITS)
    height = WORLD_HEIGHT * UNITS * scale
    seconds = (shots[-1].frame - shots[0].frame) / FRAMES_PER_S
    parts = [DEFINITIONS, *stage(MARGIN, MARGIN, scale)]
    parts.append("<g>" + animate("opacity", seconds, "0110", 'keyTimes="0;.02;.97;1" '))
    for i in range(len(shots[0].bodies)):
        owners = [shot.owners[i] for shot in shots]
        moves = animate("d", seconds, [outline(shot.bodies[i]) for shot in shots])
        paint = animate("fill", seconds, [colour(owner) for owner in owners],
                        'calcMode="discrete" ') if len(set(owners)) > 1 else ""
        parts.append(body_of(f"b{i}", owners[0], outline(shots[0].bodies[i]), moves, paint))
    parts += ["</g></g>", *legend(MARGIN, MARGIN + height + 26, names)]
    return picture(MARGIN + height + LEGEND, "soft bodies fall, squeeze through and pile up", parts)


def sheet(shots, names, columns=3, rows=2):
    width = (WIDTH - (columns + 1) * MARGIN) / columns
    scale = width / (WORLD_WIDTH * UNITS)
    row = WORLD_HEIGHT * UNITS * scale + 34
    parts = [DEFINITIONS]
    for i in range(columns * rows):
        shot = shots[(len(shots) - 1) * i // (columns * rows - 1)]
        x = MARGIN + i % columns * (width + MARGIN)
        y = MARGIN + i // columns * row
        parts += stage(x, y, scale)
        for k, (nodes, owner) in enumerate(zip(shot.bodies, shot.owners)):
            parts.append(body_of(f"b{i}-{k}", owner, outline(nodes))
                         + f'<path class="lattice" d="{lattice(nodes)}"/>')
        parts.append("</g>" + text(x + 2, y + row - 16, f"{shot.frame / FRAMES_PER_S:.1f} s, "
                                   f"frame {shot.frame}", "faint"))
    parts += legend(MARGIN, MARGIN + rows * row + 20, names)
    return picture(MARGIN + rows * row + LEGEND, "six moments of the soft bodies", parts)


def main(arguments):
    if len(arguments) == 2 and arguments[0] == "timeline":
        print(timeline(Log(arguments[1])))
    elif len(arguments) in (3, 4) and arguments[0] in ("film", "sheet"):
        batches = int(arguments[2])
        log = Log(arguments[3]) if len(arguments) == 4 else None
        names = log.names if log else [f"batch {i}" for i in range(batches)]
        shots = read_shots(arguments[1], batches, log)
        print((film if arguments[0] == "film" else sheet)(shots, names))
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
