"""From rows to verdicts: how far Penstock is from the best peer and from the limit.

A point is one collective, type, number of ranks, placement and size. Its columns are the peers
("penstock/pool", "openmpi/cma", ...), each the median over rounds; the limit is the best of its
variants. `vs_peer` is the best peer's time over Penstock's (more than 1: Penstock is faster),
`vs_limit` is Penstock's time over the limit's (1: nothing left to gain).
"""

import math
import statistics
from dataclasses import dataclass, field

# What a point has to reach: with buffers in the pool, `peer` times as fast as the best peer or within
# `limit` of the limit, and nowhere slower than `floor`; with private ones `mean` in the geometric
# mean, and nowhere slower than `floor`.
POOL = {"peer": 1.5, "limit": 1.3, "floor": 0.9}
PRIVATE = {"mean": 1.15, "floor": 0.75}


@dataclass
class Point:
    collective: str
    type: str
    ranks: int
    placement: str
    bytes: int
    columns: dict = field(default_factory=dict)  # "peer/config" -> us
    variant: str = ""  # of the limit
    clean: float = 1.0  # least share of clean samples among the columns

    @property
    def key(self):
        return (self.collective, self.type, self.ranks, self.placement)

    def limit(self):
        return self.columns.get("limit/shared")

    def best_peer(self):
        """(name, us), or None without peers."""
        found = [(us, name) for name, us in self.columns.items()
                 if not name.startswith(("penstock/", "limit/"))]
        return (min(found)[1], min(found)[0]) if found else None

    def vs_peer(self, column):
        best = self.best_peer()
        return best[1] / self.columns[column] if best and column in self.columns else None

    def vs_limit(self, column):
        limit = self.limit()
        return self.columns[column] / limit if limit and column in self.columns else None


def points_of(rows):
    """One point for each combination, in the order in which they were first measured."""
    times, clean = {}, {}
    for row in rows:
        if row["us"] <= 0:
            continue
        key = tuple(row[name] for name in ("collective", "type", "ranks", "placement", "bytes"))
        column = f"{row['peer']}/{row['config']}"
        times.setdefault(key, {}).setdefault(column, {}).setdefault(row["variant"], []).append(
            row["us"])
        share = row["clean"] / max(1, row["samples"])
        clean[key] = min(share, clean.get(key, 1.0))
    points = []
    for key, columns in times.items():
        point = Point(*key, clean=clean[key])
        for column, variants in columns.items():
            medians = {name: statistics.median(found) for name, found in variants.items()}
            variant = min(medians, key=medians.get)
            point.columns[column] = medians[variant]
            if column == "limit/shared":
                point.variant = variant
        points.append(point)
    return points


def geometric_mean(values):
    values = list(values)
    return math.exp(sum(map(math.log, values)) / len(values)) if values else None


def falls_short(point, column):
    """Why the point is below what it has to reach, or None."""
    peer, limit = point.vs_peer(column), point.vs_limit(column)
    if column.endswith("-software") or peer is None:
        return None
    if column == "penstock/pool":
        if peer < POOL["floor"]:
            return f"{peer:.2f} of the best peer, below {POOL['floor']}"
        if peer < POOL["peer"] and (limit is None or limit > POOL["limit"]):
            shown = f", {limit:.2f} times the limit" if limit else ""
            return f"{peer:.2f} of the best peer{shown}"
        return None
    if peer < PRIVATE["floor"]:
        return f"{peer:.2f} of the best peer, below {PRIVATE['floor']}"
    return None


def summarise(points):
    """One entry for each of Penstock's columns, number of ranks and placement."""
    groups = {}
    for point in points:
        for column in point.columns:
            if column.startswith("penstock/"):
                groups.setdefault((column, point.ranks, point.placement), []).append(point)
    summary = []
    for (column, ranks, placement), members in sorted(groups.items()):
        against = [(p.vs_peer(column), p) for p in members if p.vs_peer(column)]
        limits = [p.vs_limit(column) for p in members if p.vs_limit(column)]
        worst = min(against, key=lambda pair: pair[0]) if against else None
        short = [(p, falls_short(p, column)) for p in members]
        mean = geometric_mean(ratio for ratio, _ in against)
        summary.append({
            "column": column, "ranks": ranks, "placement": placement, "points": len(members),
            "vs_peer": mean, "vs_limit": geometric_mean(limits),
            "mean_reached": None if column != "penstock/private" or mean is None
            else mean >= PRIVATE["mean"],
            "worst": {"point": name_of(worst[1]), "vs_peer": worst[0],
                      "peer": worst[1].best_peer()[0]} if worst else None,
            "short": [{"point": name_of(p), "why": why} for p, why in short if why]})
    return summary


def readable(size):
    for shift, suffix in ((20, "MiB"), (10, "KiB")):
        if size >= 1 << shift and size % (1 << shift) == 0:
            return f"{size >> shift} {suffix}"
    return f"{size} B"


def name_of(point):
    size = "" if point.collective == "barrier" else f" {readable(point.bytes)}"
    return f"{point.collective} {point.type}{size}"


def number(value, suffix=""):
    if value is None:
        return "-"
    return (f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else
            f"{value:.2f}") + suffix


def points_json(points):
    out = []
    for point in points:
        best = point.best_peer()
        ours = {column: {"us": us, "vs_peer": point.vs_peer(column),
                         "vs_limit": point.vs_limit(column), "short": falls_short(point, column)}
                for column, us in point.columns.items() if column.startswith("penstock/")}
        out.append({"collective": point.collective, "type": point.type, "ranks": point.ranks,
                    "placement": point.placement, "bytes": point.bytes, "us": point.columns,
                    "best_peer": best[0] if best else None, "limit_variant": point.variant,
                    "clean": point.clean, "penstock": ours})
    return out


def table_lines(points):
    """One table: points of one collective, type, number of ranks and placement."""
    columns = sorted({column for point in points for column in point.columns
                      if column.startswith("penstock/")})
    head = ["size", *columns, "best peer", "limit"]
    head += [f"{column.split('/')[1]} vs peer" for column in columns]
    head += [f"{column.split('/')[1]} / limit" for column in columns]
    yield "| " + " | ".join(head) + " |"
    yield "|" + "---|" * len(head)
    for point in sorted(points, key=lambda p: p.bytes):
        best = point.best_peer()
        cells = ["-" if point.collective == "barrier" else readable(point.bytes)]
        cells += [number(point.columns.get(column)) for column in columns]
        cells.append(f"{number(best[1])} {best[0]}" if best else "-")
        cells.append(f"{number(point.limit())} {point.variant}" if point.limit() else "-")
        cells += [number(point.vs_peer(column), "x") +
                  (" !" if falls_short(point, column) else "") for column in columns]
        cells += [number(point.vs_limit(column)) for column in columns]
        yield "| " + " | ".join(cells) + " |"


def summary_lines(summary):
    yield "| Penstock | ranks | CPUs | points | vs best peer (geometric mean) | / limit | worst | short |"
    yield "|---|---|---|---|---|---|---|---|"
    for entry in summary:
        worst = entry["worst"]
        shown = f"{number(worst['vs_peer'], 'x')} {worst['point']} ({worst['peer']})" if worst else "-"
        yield (f"| {entry['column']} | {entry['ranks']} | {entry['placement']} | {entry['points']} | "
               f"{number(entry['vs_peer'], 'x')} | {number(entry['vs_limit'])} | {shown} | "
               f"{len(entry['short'])} |")
    yield ""
    for entry in summary:
        if entry["mean_reached"] is False:
            yield (f"- {entry['column']}, {entry['ranks']} ranks, {entry['placement']}: the mean "
                   f"{number(entry['vs_peer'], 'x')} is below {PRIVATE['mean']}")
        for short in entry["short"]:
            yield (f"- {entry['column']}, {entry['ranks']} ranks, {entry['placement']}, "
                   f"{short['point']}: {short['why']}")


def flush_lines(flushes):
    yield "| collective | ranks | size | written back | least | invalidated | least |"
    yield "|---|---|---|---|---|---|---|"
    for entry in flushes:
        size = "-" if entry["collective"] == "barrier" else readable(entry["bytes"])
        yield (f"| {entry['collective']} | {entry['ranks']} | {size} | "
               f"{entry['written_back']:.1f} | {entry['least_written_back']} | "
               f"{entry['invalidated']:.1f} | {entry['least_invalidated']} |")


def markdown(points, summary, flushes, about):
    host = about["machine"]
    lines = ["# Collectives beside other libraries and the limit of the memory", "",
             f"{host['cpu']}, {host['cpus']} CPUs, {host['system']}; huge pages of shared memory: "
             f"{host['shared_memory_huge_pages']}" +
             ("; ranks under SCHED_FIFO" if about["realtime"] else ""), "",
             "Microseconds a call, medians; fresh data, all ranks starting together. `vs peer`: the "
             "best peer's time over Penstock's; `/ limit`: Penstock's over the limit kernel's; `!`: "
             "below what is aimed at.", ""]
    lines += [f"- not measured: {name}: {why}" for name, why in about["not_measured"]]
    lines += [f"- failed: {failure}" for failure in about["failures"]]
    lines += ["", "## Summary", "", *summary_lines(summary)]
    groups = {}
    for point in points:
        groups.setdefault(point.key, []).append(point)
    for key in sorted(groups, key=lambda k: (k[2], k[3] != "near")):
        collective, kind, ranks, placement = key
        lines += ["", f"## {collective}, {kind}, {ranks} ranks, CPUs {placement}", "",
                  *table_lines(groups[key])]
    if flushes:
        lines += ["", "## Lines written back and invalidated a call, all ranks together, coherence "
                  "software", "",
                  "The least counts the payload that has to cross and one line a signal; buffers "
                  "are in the pool.", "", *flush_lines(flushes)]
    return "\n".join(lines)
