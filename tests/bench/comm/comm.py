#!/usr/bin/env python3
"""Measures Penstock's collectives beside other libraries and beside the limit of the memory.

usage: ./run bench comm [OPTIONS]

Every library runs the same measuring loop (measure.h); rounds go over all libraries in turn, so that
none has the machine's good minutes for itself. Rows of near and far placements of the CPUs are kept
apart. The results go to standard output as Markdown, what is going on to standard error.
"""

import argparse
import json
import os
import platform
import re
import signal
import sys
import time

import peers
import plot
import table

SIZES = "8,64,256,1K,4K,16K,64K,256K,1M,4M,16M"
QUICK_SIZES = "8,4K,64K,1M"
COLLECTIVES = ("all_reduce,broadcast,reduce,all_gather,reduce_scatter,all_to_all,gather,scatter,"
               "send_recv,barrier")
SLOW_SECONDS = 40


def parse_size(text):
    match = re.fullmatch(r"(\d+)([KMG]?)", text.strip(), re.IGNORECASE)
    if not match:
        raise argparse.ArgumentTypeError(f"'{text}' is not a size; write 8, 4K or 16M")
    return int(match[1]) << {"": 0, "K": 10, "M": 20, "G": 30}[match[2].upper()]


def parse_list(text, known, what):
    words = text.split(",")
    for word in words:
        if word not in known:
            raise argparse.ArgumentTypeError(
                f"there is no {what} '{word}'; there are {', '.join(known)}")
    return words


def parse_regex(text):
    try:
        return re.compile(text)
    except re.error as problem:
        raise argparse.ArgumentTypeError(f"'{text}' is no regular expression: {problem}") from None


def parse_ranks(text):
    ranks = [int(word) if word.isdigit() else 0 for word in text.split(",")]
    if not all(1 <= rank <= 16 for rank in ranks):
        raise argparse.ArgumentTypeError(f"'{text}': ranks are numbers from 1 to 16")
    return ranks


def parse_options(arguments, programs):
    parser = argparse.ArgumentParser(prog="./run bench comm", description=__doc__.split("\n")[0])
    add = parser.add_argument
    add("--ranks", type=parse_ranks, default=[2, 4], metavar="N,N", help="default 2,4")
    add("--sizes", type=lambda text: [parse_size(word) for word in text.split(",")], default=None,
        metavar="BYTES,...", help=f"default {SIZES}")
    add("--collectives", type=lambda text: parse_list(text, COLLECTIVES.split(","), "collective"),
        default=COLLECTIVES.split(","), metavar="NAME,...", help="default all")
    add("--types", type=lambda text: parse_list(text, ["f32", "bf16", "int8"], "type"),
        default=["f32", "bf16", "int8"], metavar="NAME,...",
        help="f32, and for all_reduce bf16 and int8 (default); one alone is taken for all")
    add("--buffers", choices=["pool", "private", "both"], default="both",
        help="where Penstock's buffers are")
    add("--coherence", choices=["hardware", "software", "both"], default="both",
        help="of Penstock's pool; with software, lines flushed are counted, too")
    add("--peers", type=parse_regex, default=re.compile("."), metavar="REGEX",
        help="only the peers whose PEER/CONFIG matches; Penstock and the limit always run")
    add("--rounds", type=int, default=None, metavar="N", help="over all peers; default 3")
    add("--samples", type=int, default=None, metavar="N", help="clean ones per point; default 9")
    add("--minutes", type=float, default=14, metavar="N",
        help="no round begins that would end later; default 14")
    add("--quick", action="store_true", help="few sizes, one round: about a minute")
    add("--realtime", action="store_true",
        help="ranks run under SCHED_FIFO (with more ranks than CPUs at nice -20), so that other work "
             "on the machine disturbs less; needs root, and starves that work meanwhile")
    add("--json", metavar="FILE", help="write everything that was measured")
    add("--markdown", metavar="FILE", help="write the tables there, too")
    add("--plot", metavar="FOLDER", help="write a plot (SVG) of each collective")
    add("--programs", metavar="FOLDER", default=programs, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    options.sizes = options.sizes or [
        parse_size(word) for word in (QUICK_SIZES if options.quick else SIZES).split(",")]
    options.rounds = options.rounds or (1 if options.quick else 3)
    options.samples = options.samples or (5 if options.quick else 9)
    options.point_ms = 30 if options.quick else 120
    options.program_seconds = 40 if options.quick else 120
    options.sample_ms = 0.5 if options.quick else 1
    return options


def machine():
    model = "unknown"
    try:
        with open("/proc/cpuinfo", encoding="ascii", errors="replace") as file:
            model = next((line.split(":", 1)[1].strip() for line in file
                          if line.startswith("model name")), model)
    except OSError:
        pass
    return {"cpu": model, "cpus": len(os.sched_getaffinity(0)), "system": platform.platform(),
            "shared_memory_huge_pages": peers.chosen_huge_pages()}


def say(text):
    print(f"bench: {text}", file=sys.stderr, flush=True)


def run_rounds(options, runner, chosen, missed):
    """All rows of all rounds. A round that would end too late is not begun; a peer that takes very
    long (MPICH spins with more ranks than CPUs) has one round only."""
    rows, slow, began, longest = [], set(), time.monotonic(), 0
    for number in range(1, options.rounds + 1):
        spent = time.monotonic() - began
        if number > 1 and spent + longest > options.minutes * 60:
            say(f"round {number} of {options.rounds} would take too long; stopping after "
                f"{spent:.0f} s")
            break
        for ranks in options.ranks:
            for peer in chosen:
                if (peer.name, ranks) in slow:
                    continue
                why = peers.skipped(peer, ranks, options)
                if why:
                    missed.append([f"{peer.name}, {ranks} ranks", why])
                    continue
                started = time.monotonic()
                found = runner.run(peer, ranks)
                rows += [{**row, "round": number} for row in found]
                took = time.monotonic() - started
                say(f"round {number}/{options.rounds}, {ranks} ranks, {peer.name}: "
                    f"{len(found)} rows in {took:.1f} s")
                if took > SLOW_SECONDS:
                    slow.add((peer.name, ranks))
        longest = time.monotonic() - began - spent
    return rows


def main(arguments):
    here = os.path.dirname(os.path.abspath(sys.argv[0]))
    options = parse_options(arguments, os.path.join(here, "comm_programs"))
    chosen, missed = peers.choose(options)
    for name, why in missed:
        say(f"not measured: {name}: {why}")
    with peers.Runner(options, say) as runner:
        rows = run_rounds(options, runner, chosen, missed)
        flushes = runner.flushes() if options.coherence != "hardware" else []
        failures = runner.failures
        missed += runner.stopped
    points = table.points_of(rows)
    summary = table.summarise(points)
    about = {"machine": machine(), "realtime": options.realtime, "not_measured": missed,
             "failures": failures}
    text = table.markdown(points, summary, flushes, about)
    print(text)
    if options.markdown:
        with open(options.markdown, "w", encoding="utf-8") as file:
            file.write(text + "\n")
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({**about, "points": table.points_json(points), "summary": summary,
                       "flushes": flushes, "rows": rows}, file, indent=1)
    if options.plot:
        for path in plot.write_plots(points, options.plot):
            say(f"wrote {path}")
    wrong = [row for row in rows if not row["right"]]
    for row in wrong:
        say(f"WRONG RESULT: {row}")
    return 1 if wrong or failures or not rows else 0


def ended(number, _frame):
    raise SystemExit(128 + number)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, ended)  # so that what was started is ended, and cleaned up
    sys.exit(main(sys.argv[1:]))
