#!/usr/bin/env python3
"""What a block costs on an UltraScale+ device, from yosys.

usage: synthesise.py --manifest FILE [--list FILE] [--top MODULE]... [--json FILE]
                     [--markdown FILE] [--yosys PROGRAM] [--timeout SECONDS] [--jobs N]

--manifest  blocks.json of the build folder (rtl/blocks.json): the sources of each block
--list      which tops, with which parameters (blocks.json beside this script)
            "by_module": each module is mapped by itself, once, and nothing is optimised across their
            borders, which is a tenth of the time for blocks of many equal parts, and counts more

Gives for each top: LUTs of logic and of memory, flip-flops, carry chains (CARRY4), DSPs, block RAMs
(36 Kb, a half for 18 Kb), UltraRAMs, and the longest path: how many cells a signal passes between two
registers, RAMs or ports. A carry chain counts each of its CARRY4. What yosys counts is an estimate:
it does not pack, place or route, and maps memories and multipliers less well than a vendor's tool.
"""

import argparse
import concurrent.futures
import json
import os
import re
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
# LUTs that one cell of distributed RAM takes.
LUT_RAM = {"RAM32M16": 8, "RAM64M8": 8, "RAM32M": 4, "RAM64M": 4, "RAM32X1D": 2, "RAM64X1D": 2,
           "RAM128X1D": 4, "RAM256X1D": 8, "RAM32X1S": 1, "RAM64X1S": 1, "RAM128X1S": 2,
           "RAM256X1S": 4, "RAM512X1S": 8, "SRL16E": 1, "SRLC32E": 1}
COLUMNS = [("lut", "LUT"), ("lut_memory", "LUT as memory"), ("ff", "FF"), ("carry", "CARRY4"),
           ("dsp", "DSP"), ("bram", "BRAM36"), ("uram", "URAM"), ("path", "longest path")]


def script_of(entry, sources, stat):
    parameters = "".join(f" -set {name} {value}"
                         for name, value in entry.get("parameters", {}).items())
    lines = [f"read_verilog -sv {' '.join(sources)}"]
    if parameters:
        lines.append(f"chparam{parameters} {entry['top']}")
    # -nosrl: with shift registers yosys 0.23 drops the clock enable. Wide multiplexers are counted
    # as LUTs, which is what they cost without their dedicated ones.
    flatten = "" if entry.get("by_module") else " -flatten"
    lines += [f"synth_xilinx -family xcup -noiopad{flatten} -nowidelut -nosrl -top {entry['top']}",
              "flatten; opt_clean" if entry.get("by_module") else "",
              f"tee -q -o {stat} stat -json",
              # What is clocked ends a path. -noff alone sees through the vendor's cells.
              "delete t:FD* t:RAMB* t:URAM* t:DSP*", "tee -a /dev/stdout ltp -noff"]
    return "; ".join(filter(None, lines))


def figures(cells, log):
    def total(*prefixes):
        return sum(count for kind, count in cells.items() if kind.startswith(prefixes))

    path = re.search(r"Longest topological path in .*\(length=(\d+)\)", log)
    return {"lut": total("LUT"), "ff": total("FD"), "carry": total("CARRY"), "dsp": total("DSP"),
            "lut_memory": sum(size * cells.get(kind, 0) for kind, size in LUT_RAM.items()),
            "bram": cells.get("RAMB36E2", 0) + cells.get("RAMB18E2", 0) / 2,
            "uram": total("URAM"), "path": int(path.group(1)) if path else None}


def synthesise(options, entry, sources):
    """Returns the figures, or a sentence that says why there are none."""
    with tempfile.TemporaryDirectory() as work:
        stat = os.path.join(work, "stat.json")
        command = [options.yosys, "-e", "implicitly declared", "-p",
                   script_of(entry, sources, stat)]
        try:
            result = subprocess.run(command, capture_output=True, text=True, check=False,
                                    timeout=options.timeout)
        except subprocess.TimeoutExpired:
            return f"not done in {options.timeout:.0f} s"
        if result.returncode != 0:
            return (result.stderr.strip() or "yosys failed").splitlines()[-1]
        with open(stat, encoding="utf-8") as file:
            cells = json.load(file)["design"]["num_cells_by_type"]
    return figures(cells, result.stdout)


def markdown(results):
    head = ["block"] + [title for _, title in COLUMNS]
    lines = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    for result in results:
        name = f"`{result['top']}`"
        if result["parameters"]:
            name += " (" + ", ".join(f"{key} {value}"
                                     for key, value in result["parameters"].items()) + ")"
        if "failure" in result:
            lines.append(f"| {name} | {result['failure']} |" + " |" * (len(COLUMNS) - 1))
        else:
            lines.append("| " + " | ".join([name] + [f"{result[key]:,g}" if result[key] is not None
                                                     else "" for key, _ in COLUMNS]) + " |")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--manifest", required=True)
    parser.add_argument("--list", default=os.path.join(HERE, "blocks.json"))
    parser.add_argument("--top", action="append")
    parser.add_argument("--json")
    parser.add_argument("--markdown")
    parser.add_argument("--yosys", default="yosys")
    parser.add_argument("--timeout", type=float, default=1800)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    with open(options.manifest, encoding="utf-8") as file:
        manifest = json.load(file)
    with open(options.list, encoding="utf-8") as file:
        entries = json.load(file)["blocks"]
    entries = [entry for entry in entries if entry["block"] in manifest and  # else not built here
               (not options.top or entry["top"] in options.top)]

    def one(entry):
        started = time.monotonic()
        result = {"block": entry["block"], "top": entry["top"],
                  "parameters": entry.get("parameters", {})}
        found = synthesise(options, entry, manifest[entry["block"]]["sources"])
        result.update(found if isinstance(found, dict) else {"failure": found})
        result["seconds"] = round(time.monotonic() - started, 1)
        print(f"{entry['top']}: {result['seconds']} s", file=sys.stderr, flush=True)
        return result

    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        results = list(pool.map(one, entries))
    if not results:
        print("no such block", file=sys.stderr)
        return 1
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"family": "xcup", "blocks": results}, file, indent=2)
            file.write("\n")
    text = markdown(results)
    if options.markdown:
        with open(options.markdown, "w", encoding="utf-8") as file:
            file.write(text)
    print(text, end="")
    return 1 if any("failure" in result for result in results) else 0


if __name__ == "__main__":
    sys.exit(main())
