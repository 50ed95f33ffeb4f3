"""Plots of time over size as SVG, both axes logarithmic, without any plotting package."""

import html
import math
import os

WIDTH, HEIGHT = 720, 440
LEFT, RIGHT, TOP, BOTTOM = 70, 190, 40, 50
COLOURS = {"penstock/pool": "#0b6e4f", "penstock/private": "#1f77b4",
           "penstock/pool-software": "#8c6d31", "penstock/private-software": "#9467bd",
           "best peer": "#d62728", "limit": "#444444"}


def series_of(points):
    """name -> [(bytes, us)] of Penstock's columns, the best peer and the limit."""
    series = {}
    for point in sorted(points, key=lambda p: p.bytes):
        for column, us in point.columns.items():
            if column.startswith("penstock/"):
                series.setdefault(column, []).append((point.bytes, us))
        if point.best_peer():
            series.setdefault("best peer", []).append((point.bytes, point.best_peer()[1]))
        if point.limit():
            series.setdefault("limit", []).append((point.bytes, point.limit()))
    return series


class Axis:
    """Maps a value to a coordinate, logarithmically."""

    def __init__(self, values, start, end, base):
        self.base, self.start, self.end = base, start, end
        self.low = math.floor(math.log(min(values), base))
        self.high = max(self.low + 1, math.ceil(math.log(max(values), base)))

    def at(self, value):
        part = (math.log(value, self.base) - self.low) / (self.high - self.low)
        return self.start + part * (self.end - self.start)

    def ticks(self):
        return [self.base ** power for power in range(self.low, self.high + 1)]


def size_text(value):
    for shift, suffix in ((20, "M"), (10, "K")):
        if value >= 1 << shift:
            return f"{int(value) >> shift}{suffix}"
    return f"{int(value)}"


def draw(title, series):
    """The SVG document."""
    sizes = [size for line in series.values() for size, _ in line]
    times = [us for line in series.values() for _, us in line]
    across = Axis(sizes, LEFT, WIDTH - RIGHT, 4)
    up = Axis(times, HEIGHT - BOTTOM, TOP, 10)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" '
           'font-family="sans-serif" font-size="12">',
           f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
           f'<text x="{LEFT}" y="22" font-size="15">{html.escape(title)}</text>']
    for value in across.ticks():
        x = across.at(value)
        out.append(f'<line x1="{x:.1f}" y1="{TOP}" x2="{x:.1f}" y2="{HEIGHT - BOTTOM}" '
                   'stroke="#e0e0e0"/>')
        out.append(f'<text x="{x:.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">'
                   f'{size_text(value)}</text>')
    for value in up.ticks():
        y = up.at(value)
        out.append(f'<line x1="{LEFT}" y1="{y:.1f}" x2="{WIDTH - RIGHT}" y2="{y:.1f}" '
                   'stroke="#e0e0e0"/>')
        out.append(f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{value:g}</text>')
    out.append(f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 12}" text-anchor="middle">'
               'bytes</text>')
    out.append(f'<text x="18" y="{(TOP + HEIGHT - BOTTOM) / 2}" text-anchor="middle" '
               f'transform="rotate(-90 18 {(TOP + HEIGHT - BOTTOM) / 2})">microseconds</text>')
    for index, (name, line) in enumerate(sorted(series.items())):
        colour = COLOURS.get(name, "#777777")
        dashes = ' stroke-dasharray="6 4"' if name == "limit" else ""
        path = " ".join(f"{across.at(size):.1f},{up.at(us):.1f}" for size, us in line)
        out.append(f'<polyline points="{path}" fill="none" stroke="{colour}" '
                   f'stroke-width="2"{dashes}/>')
        out += [f'<circle cx="{across.at(size):.1f}" cy="{up.at(us):.1f}" r="3" fill="{colour}"/>'
                for size, us in line]
        y = TOP + 14 + index * 20
        out.append(f'<rect x="{WIDTH - RIGHT + 16}" y="{y - 9}" width="14" height="10" '
                   f'fill="{colour}"/>')
        out.append(f'<text x="{WIDTH - RIGHT + 36}" y="{y}">{html.escape(name)}</text>')
    out.append("</svg>")
    return "\n".join(out) + "\n"


def write_plots(points, folder):
    """One file for each collective, type, number of ranks and placement; returns their paths."""
    os.makedirs(folder, exist_ok=True)
    groups = {}
    for point in points:
        if point.collective != "barrier":
            groups.setdefault(point.key, []).append(point)
    paths = []
    for (collective, kind, ranks, placement), members in groups.items():
        path = os.path.join(folder, f"{collective}-{kind}-{ranks}-{placement}.svg")
        title = f"{collective}, {kind}, {ranks} ranks, CPUs {placement}"
        with open(path, "w", encoding="utf-8") as file:
            file.write(draw(title, series_of(members)))
        paths.append(path)
    return paths
