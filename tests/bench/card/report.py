#!/usr/bin/env python3
"""Puts what was measured of the card (card_cycles) and what it costs (synthesis) into one report.

usage: report.py --cycles FILE [--cost FILE] [--placed FILE] --out FOLDER

Writes FOLDER/card-report.json, card-report.md and throughput.svg, and prints the tables.
The RTL's cycles are the measurement; where the SystemC model was measured, too, the report says how
far it is off, and the exit status is 1 if that is more than 10 % anywhere.
"""

import argparse
import html
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "rtl",
                                "synthesis"))
import synthesise  # noqa: E402  pylint: disable=wrong-import-position

TOLERANCE = 0.10
WIDTH, ROW, LEFT, TOP = 760, 18, 260, 40


def read_json(path):
    try:
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    except (OSError, ValueError) as error:
        sys.exit(f"card-report: {path}: {error}")


def merge(cycles):
    """One row per figure: name -> {group, limit, machine: cycles}."""
    rows = {}
    for machine, figures in cycles["machines"].items():
        for figure in figures:
            row = rows.setdefault(figure["name"], {key: figure[key] for key in
                                  ("group", "name", "type", "sources", "bytes", "rows", "limit")})
            row[machine] = figure["cycles"]
    for row in rows.values():
        reference = row.get("rtl", row.get("systemc"))
        if row["limit"]:
            row["of_limit"] = row["limit"] / reference
        if row["group"] == "throughput":
            row["bytes_per_cycle"] = row["bytes"] * row["sources"] / reference
        if row["group"] == "select":
            row["nodes_per_cycle"] = row["rows"] / reference
        if "rtl" in row and "systemc" in row:
            row["model_error"] = row["systemc"] / row["rtl"] - 1
    return list(rows.values())


def number(value, digits=1):
    return "" if value is None else f"{value:.{digits}f}"


def percent(value, sign=False):
    return "" if value is None else f"{100 * value:{'+' if sign else ''}.1f} %"


def table(head, lines):
    out = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return out + ["| " + " | ".join(line) + " |" for line in lines]


def markdown(rows, cycles, cost, placed):
    """The report's lines."""
    latency, speed = cycles["latency"], cycles.get("systemc_source_bytes_per_second")
    out = ["# The card: cycles and cost", "",
           f"Memory answers {latency['read']} cycles after an address and acknowledges "
           f"{latency['write']} cycles after the last beat of a write; a port moves a beat of 64 "
           "bytes per cycle and direction.", ""]
    if speed:
        out += [f"The SystemC model reduced two sources of 16 MiB of f32 at {speed / 1e9:.2f} GB/s of "
                "source bytes, of this computer's time.", ""]
    out += ["## Records back to back", ""]
    def of(group):
        return [row for row in rows if row["group"] == group]
    out += table(["", "cycles", "bytes per cycle", "of the port's limit", "SystemC model"],
                 [[row["name"], number(row.get("rtl")), number(row["bytes_per_cycle"]),
                   percent(row.get("of_limit")), percent(row.get("model_error"), True)]
                  for row in of("throughput")])
    out += ["", "## From the doorbell to the completion", ""]
    out += table(["", "cycles", "SystemC model"],
                 [[row["name"], number(row.get("rtl"), 0), percent(row.get("model_error"), True)]
                  for row in of("latency")])
    out += ["", "## Decisions", ""]
    out += table(["", "cycles per decision", "over the scan", "nodes per cycle", "SystemC model"],
                 [[row["name"], number(row.get("rtl")),
                   number(row.get("rtl", 0) - row["limit"]) if "rtl" in row else "",
                   number(row["nodes_per_cycle"], 2), percent(row.get("model_error"), True)]
                  for row in of("select")])
    return out + cost_lines(cost, placed)


def cost_lines(cost, placed):
    """What synthesis says of each block, and at which frequency small ones were routed."""
    out = []
    if cost:
        out += ["", "## Cost", "",
                f"Cells that yosys maps the blocks to, for {cost['family']} (UltraScale+). It does not "
                "pack, place or route: an estimate. The longest path is in cells between registers.",
                ""] + synthesise.markdown(cost["blocks"]).rstrip().split("\n")
    if placed:
        out += ["", "## Frequency on a small device", "",
                f"Placed and routed by open tools for a Lattice {placed['device']}, some three times "
                "slower than UltraScale+: a way to compare blocks.", ""]
        out += table(["block", "MHz"], [[f"`{block['top']}`", str(block.get("mhz") or
                                         block["failure"])] for block in placed["blocks"]])
    return out


def draw(rows):
    """Bars: how much of the port's limit each kind of record reaches."""
    rows = [row for row in rows if row["group"] == "throughput" and "of_limit" in row]
    height = TOP + ROW * len(rows) + 20
    scale = WIDTH - LEFT - 60
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" '
           'font-family="sans-serif" font-size="11">',
           f'<rect width="{WIDTH}" height="{height}" fill="white"/>',
           '<text x="10" y="22" font-size="15">Share of the memory port\'s limit</text>']
    for index, row in enumerate(rows):
        y = TOP + index * ROW
        share = min(row["of_limit"], 1)
        out.append(f'<text x="{LEFT - 6}" y="{y + 12}" text-anchor="end">'
                   f'{html.escape(row["name"])}</text>')
        out.append(f'<rect x="{LEFT}" y="{y + 2}" width="{scale * share:.1f}" height="{ROW - 5}" '
                   'fill="#0b6e4f"/>')
        out.append(f'<text x="{LEFT + scale * share + 4:.1f}" y="{y + 12}">'
                   f'{100 * row["of_limit"]:.1f} %</text>')
    out.append(f'<line x1="{LEFT + scale}" y1="{TOP}" x2="{LEFT + scale}" y2="{height - 16}" '
               'stroke="#444444" stroke-dasharray="4 3"/>')
    out.append("</svg>")
    return "\n".join(out) + "\n"


def write(folder, name, text):
    with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
        file.write(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cycles", required=True, help="JSON of card_cycles")
    parser.add_argument("--cost", help="JSON of the synthesis")
    parser.add_argument("--placed", help="JSON of place and route")
    parser.add_argument("--out", required=True, help="folder that the report is written to")
    options = parser.parse_args()
    cycles = read_json(options.cycles)
    cost = read_json(options.cost) if options.cost else None
    placed = read_json(options.placed) if options.placed else None
    rows = merge(cycles)
    os.makedirs(options.out, exist_ok=True)
    lines = markdown(rows, cycles, cost, placed)
    write(options.out, "card-report.md", "\n".join(lines) + "\n")
    write(options.out, "card-report.json", json.dumps(
        {"latency": cycles["latency"], "figures": rows, "cost": cost, "placed": placed}, indent=2) + "\n")
    write(options.out, "throughput.svg", draw(rows))
    print("\n".join(lines))
    off = [row for row in rows if abs(row.get("model_error", 0)) > TOLERANCE]
    for row in off:
        print(f"card-report: {row['name']}: the SystemC model is {percent(row['model_error'], True)} "
              "off", file=sys.stderr)
    return 1 if off else 0


if __name__ == "__main__":
    sys.exit(main())
