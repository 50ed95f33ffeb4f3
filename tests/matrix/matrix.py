#!/usr/bin/env python3
"""Builds Penstock with none of the parts that need something from outside, and with each alone, and
tries each build: `penstock info` has to show exactly that part, and its engine has to conform.

usage: matrix.py --root FOLDER --build FOLDER [--configure] [--jobs N] [CASE...]

CASE is none or a part: OPENCL, CUDA, XRT, SYSTEMC, VERILATOR; all of them unless told. A part whose
library or compiler this machine has not is skipped, and said so. --configure stops before building.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import time

# What each part brings: the engine, or the way to the engine card.
PARTS = {"OPENCL": "opencl", "CUDA": "cuda", "XRT": "card:xrt", "SYSTEMC": "card:systemc",
         "VERILATOR": "card:verilator"}
# Libraries that nothing may come to need.
UNUSED = ["libpmem"]


class Failure(Exception):
    pass


def say(case, text):
    print(f"matrix: {case}: {text}", flush=True)


def environment(root):
    # The same source in the same place of another build folder is compiled once.
    return {**{name: value for name, value in os.environ.items() if not name.startswith("PENSTOCK_")},
            "CCACHE_BASEDIR": root, "CCACHE_NOHASHDIR": "1"}


def run(command, log, env, cwd=None):
    """Its output is kept in the file, and shown if it fails."""
    with open(log, "w", encoding="utf-8") as file:
        status = subprocess.run(command, stdout=file, stderr=subprocess.STDOUT, env=env, cwd=cwd,
                                stdin=subprocess.DEVNULL, check=False).returncode
    with open(log, encoding="utf-8", errors="replace") as file:
        text = file.read()
    if status != 0:
        raise Failure(f"{' '.join(command[:3])} ... failed; {log} ends with:\n{text[-3000:]}")
    return text


def configure(options, case, folder, env):
    """False: what the part needs is not here."""
    command = ["cmake", "-S", options.root, "-B", folder, "-G", "Ninja",
               "-DCMAKE_BUILD_TYPE=Debug", "-DCMAKE_C_FLAGS_DEBUG=-O0",
               "-DCMAKE_CXX_FLAGS_DEBUG=-O0", "-DPENSTOCK_TESTS=OFF", "-DPENSTOCK_WERROR=ON"]
    command += [f"-DPENSTOCK_WITH_{part}={'ON' if part == case else 'OFF'}" for part in PARTS]
    try:
        run(command, folder + ".configure.log", env)
    except Failure as failure:
        missing = re.search(rf"PENSTOCK_WITH_{case} is ON, but\s+(.*?)\s+is\s+missing", str(failure),
                            re.DOTALL)
        if missing is None:
            raise
        say(case, f"skipped: {' '.join(missing[1].split())} is missing here")
        return False
    with open(os.path.join(folder, "sdk", "generated", "absent_parts.h"), encoding="utf-8") as file:
        absent = set(re.findall(r'\{"([A-Z]+)", ', file.read()))
    expected = set(PARTS) - {case}
    if absent & set(PARTS) != expected:
        raise Failure(f"left out are {sorted(absent)}, not {sorted(expected)}")
    return True


def states(tool, env):
    """State and reason of each way to each engine, as `penstock info` has them."""
    out = subprocess.run([tool, "info", "--json"], env=env, capture_output=True, text=True,
                         check=False)
    if out.returncode != 0:
        raise Failure(f"penstock info: exit status {out.returncode}\n{out.stdout}{out.stderr}")
    found = {}
    for engine in json.loads(out.stdout)["engines"]:
        for way in engine.get("variants") or [engine]:
            found[way["name"]] = (way["state"], way["reason"])
    return found


def try_it(options, case, folder, env):
    tool = os.path.join(folder, "sdk", "penstock")
    found = states(tool, env)
    for part, way in PARTS.items():
        state, reason = found.get(way, ("not listed", ""))
        # Several devices of one engine are listed by their own names.
        own = [value for name, value in found.items() if name.startswith(way + ":")]
        if part == case and own:
            state, reason = own[0]
        if (state == "not built") != (part != case) or (state != "available" and not reason):
            raise Failure(f"penstock info says of {way}: {state}: {reason}")
    for name in ("scalar", "simd"):
        if found[name][0] != "available":
            raise Failure(f"penstock info says of {name}: {found[name]}")
    libraries = [tool] + [os.path.join(folder, "sdk", "plugins", name) for name in
                          sorted(os.listdir(os.path.join(folder, "sdk", "plugins")))
                          if name.endswith(".so")] if os.path.isdir(
                              os.path.join(folder, "sdk", "plugins")) else [tool]
    for library in libraries:
        needed = subprocess.run(["ldd", library], capture_output=True, text=True, check=True).stdout
        for name in UNUSED:
            if name in needed:
                raise Failure(f"{library} needs {name}")
    names = ["simd"] if case == "none" else [PARTS[case]]
    for name in names:
        ways = [way for way in found if way == name or way.startswith(name + ":")]
        if not any(found[way][0] == "available" for way in ways):
            say(case, f"{name} is {found[ways[0]][0]}: {found[ways[0]][1]}")
            continue
        text = run([tool, "conformance", "--engine", name, "--quick"], folder + ".conformance.log",
                   env)
        say(case, text.strip().splitlines()[-1])
    return libraries


def run_case(options, case):
    began = time.monotonic()
    env = environment(options.root)
    folder = os.path.join(options.build, case.lower())
    os.makedirs(folder, exist_ok=True)
    if not configure(options, case, folder, env):
        return
    say(case, f"configured after {time.monotonic() - began:.0f} s")
    if options.configure:
        return
    targets = ["penstock_tool"]
    known = subprocess.run(["ninja", "-C", folder, "-t", "targets", "all"], env=env,
                           capture_output=True, text=True, check=True).stdout
    if re.search(r"^penstock_plugins: phony", known, re.MULTILINE):
        targets.append("penstock_plugins")
    run(["ninja", "-C", folder, "-j", str(options.jobs), *targets], folder + ".build.log", env)
    say(case, f"built after {time.monotonic() - began:.0f} s")
    libraries = try_it(options, case, folder, env)
    say(case, f"tried after {time.monotonic() - began:.0f} s; {len(libraries)} binaries, none of "
              f"which needs {' or '.join(UNUSED)}")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", required=True)
    parser.add_argument("--build", required=True)
    parser.add_argument("--configure", action="store_true")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("cases", nargs="*", metavar="CASE")
    options = parser.parse_args()
    options.root = os.path.abspath(options.root)
    options.build = os.path.abspath(options.build)
    cases = options.cases or ["none", *PARTS]
    unknown = [case for case in cases if case not in ("none", *PARTS)]
    if unknown:
        parser.error(f"there is no case {unknown[0]}; there are none, {', '.join(PARTS)}")
    failed = []
    for case in cases:
        try:
            run_case(options, case)
        except Failure as failure:
            say(case, f"FAILED: {failure}")
            failed.append(case)
    print(f"matrix: {len(cases) - len(failed)} right, {len(failed)} wrong"
          + (f" ({', '.join(failed)})" if failed else ""))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
