#!/usr/bin/env python3
"""Takes every write-back, invalidation and fence out of the production code, one at a time, and looks
whether a scenario of the incoherent pool notices.

usage: mutants.py --sim PROGRAM --survivors FILE --root FOLDER [OPTION...]

Nothing is recompiled: the simulated platform acts as if the calls made at a place in the source were
not there. The places are found by running the scenarios and reading the return addresses above each
call, so the program has to be built with -g and without sibling calls (-O1). There are two kinds:

  the line that calls the platform, for one primitive
  the line that calls a function which only wraps such calls (WRAPPERS), for all primitives

A place that nobody notices must be listed in the file of survivors, with the reason; one that is
listed must survive. Ends with 1 otherwise, or if fewer than MIN_PLACES were found.
"""

import argparse
import collections
import json
import os
import re
import subprocess
import sys
import time

MIN_PLACES = 20
# Functions that do nothing but publish or observe what they are told to.
WRAPPERS = re.compile(r"(MappedPool::(publish|observe)|SharedMemory::(load|store)|"
                      r"Access::(publish|observe|source|shared)|Lane::(publish|observe)|"
                      r"RegionTable::(load|state))\(")
# Tried in this order: what sees most comes first.
COMM_FIRST = ("sequence,rejoin,overlap,two_comms,all_reduce,all_gather,reduce_scatter,all_to_all,"
              "broadcast,reduce,gather,scatter,send_recv,barrier,window_put,window_blocks,shrink,split,"
              "grow,rank_dies,rank_aborts,rank_pauses,regions,names,regions_of_machines,fence,reclaim")
MEMORY_FIRST = ("fence,regions,names,regions_of_machines,reclaim,rejoin,sequence,overlap,two_comms,"
                "window_put,window_blocks,shrink,split,grow,rank_dies,rank_pauses")


def run_sim(options, arguments):
    command = [options.sim, "--json"] + arguments
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=1500)
    if not result.stdout.startswith("{"):  # a check of the code under test aborted
        line = result.stderr.strip().splitlines()[-1:] or [f"ended with {result.returncode}"]
        return result.returncode, None, line[0]
    report = json.loads(result.stdout)
    failures = [f"{failure['replay']}: {failure['failure']}" for each in report["results"]
                for failure in each["failures"]]
    return result.returncode, report, failures[0] if failures else ""


def symbolize(program, addresses):
    """address -> frames (function, file, line), innermost first."""
    # A return address may already belong to the next line.
    text = "\n".join(hex(int(address, 16) - 1) for address in addresses)
    output = subprocess.run(["addr2line", "-e", program, "-a", "-f", "-C", "-i"], input=text,
                            capture_output=True, text=True, check=True).stdout.splitlines()
    frames, at = {}, None
    index = 0
    while index < len(output):
        if output[index].startswith("0x"):
            at = f"{int(output[index], 16) + 1:x}"
            frames[at] = []
            index += 1
            continue
        place = output[index + 1].split(" ")[0]
        file, _, line = place.rpartition(":")
        frames[at].append((output[index], file, int(line) if line.isdigit() else 0))
        index += 2
    return frames


class Place:
    """A line of the source, and the return addresses that stand for it."""

    def __init__(self, function, file, line, text, primitive):
        self.function = re.sub(r"\(anonymous namespace\)::", "", function)
        self.function = re.sub(r"\(.*", "", self.function).replace("penstock::", "")
        self.file, self.line, self.text, self.primitive = file, line, text, primitive
        self.addresses = set()

    def drops(self):
        return ",".join(f"{self.primitive}@{address}" for address in sorted(self.addresses))

    def __str__(self):
        return f"{self.file}:{self.line} {self.function} [{self.primitive}] {self.text}"


def source_line(root, file, line):
    try:
        with open(os.path.join(root, file), encoding="utf-8") as handle:
            lines = handle.read().split("\n")
    except OSError:
        return ""
    return lines[line - 1].strip() if 0 < line <= len(lines) else ""


def production_file(root, path):
    """Relative to the root, or None for what is not production code."""
    # A layer's header is found through a link in the build folder.
    match = re.search(r"/include/\w+/penstock/(\w+)/(.*)$", path)
    relative = os.path.join("host", *match.groups()) if match else os.path.relpath(path, root)
    return relative if relative.startswith("host/") else None


def find_places(options, sites):
    addresses = sorted({address for site in sites for address in site["callers"]})
    frames = symbolize(options.sim, addresses)
    places = collections.OrderedDict()

    def add(frame, primitive, address):
        function, path, line = frame
        file = production_file(options.root, path)
        if file is None:
            return
        key = (file, line, primitive)
        if key not in places:
            text = source_line(options.root, file, line)
            places[key] = Place(function, file, line, text, primitive)
        places[key].addresses.add(address)

    for site in sites:
        chain = [(frame, address) for address in site["callers"] for frame in frames.get(address, [])]
        if not chain:
            continue
        add(chain[0][0], site["primitive"], chain[0][1])
        for (frame, address) in chain[1:]:
            if not WRAPPERS.search(frame[0]):
                if WRAPPERS.search(chain[0][0][0]):
                    add(frame, "any", address)
                break
    return list(places.values())


def read_survivors(path):
    """Lines "FILE FUNCTION PRIMITIVE | TEXT OF THE LINE | REASON"."""
    survivors = []
    with open(path, encoding="utf-8") as handle:
        for number, line in enumerate(handle, 1):
            line = line.strip()
            if not line or line.startswith("#"):
                continue
            parts = [part.strip() for part in line.split("|")]
            words = parts[0].split()
            if len(parts) != 3 or len(words) != 3 or not parts[2]:
                raise ValueError(f"{path}:{number}: not FILE FUNCTION PRIMITIVE | TEXT | REASON")
            survivors.append((words[0], words[1], words[2], parts[1], parts[2]))
    return survivors


def is_listed(place, survivors):
    for file, function, primitive, text, _ in survivors:
        if (place.file == file and place.function == function and place.primitive == primitive and
                text in place.text):
            return True
    return False


def main():
    parser = argparse.ArgumentParser(description="See the beginning of this file.")
    parser.add_argument("--sim", required=True)
    parser.add_argument("--survivors", required=True)
    parser.add_argument("--root", required=True)
    parser.add_argument("--seeds", type=int, default=200, help="per scenario and place")
    parser.add_argument("--find-seeds", type=int, default=20, help="to find the places")
    parser.add_argument("--share", default="1/1", help="I/N: every N-th place, from the I-th on")
    parser.add_argument("--from", dest="begin", type=int, default=0, help="the first place")
    parser.add_argument("--find-in", default="all", help="the scenarios to find them with")
    parser.add_argument("--only", default="",
                        help="places whose description holds one of these texts, joined by ','")
    parser.add_argument("--skip-listed", action="store_true", help="listed survivors are not run")
    parser.add_argument("--list", action="store_true", help="only lists the places")
    options = parser.parse_args()
    options.root = os.path.realpath(options.root)

    code, report, failure = run_sim(options, ["--scenario", options.find_in, "--seeds",
                                             str(options.find_seeds), "--sites"])
    if code != 0:
        print(f"without any change it fails already: {failure}")
        return 1
    places = find_places(options, report["sites"])
    print(f"{len(places)} places, at {len(report['sites'])} call sites")
    if len(places) < MIN_PLACES:
        print("too few: is the program built with -g?")
        return 1
    first, share = (int(part) for part in options.share.split("/"))
    if options.list:
        for place in places:
            print(place)
        return 0

    survivors = read_survivors(options.survivors)
    caught = listed = wrong = 0
    for index, place in enumerate(places):
        chosen = any(text in str(place) for text in options.only.split(","))
        expected = is_listed(place, survivors)
        if (index % share != first - 1 or index < options.begin or not chosen or
                (expected and options.skip_listed)):
            continue
        order = MEMORY_FIRST if place.file.startswith("host/memory/") else COMM_FIRST
        began = time.monotonic()
        _, report, failure = run_sim(options, ["--scenario", order, "--seeds", str(options.seeds),
                                               "--drop", place.drops()])
        seconds = time.monotonic() - began
        if failure:
            caught += 1
            print(f"caught    {place}\n          {failure}  ({seconds:.1f} s)")
            if expected:
                print("          but it is listed as a survivor")
                wrong += 1
        elif expected:
            listed += 1
            print(f"survives  {place}  (listed)")
        else:
            wrong += 1
            print(f"SURVIVES  {place}  ({report['dropped']} calls dropped, {seconds:.1f} s)")
        sys.stdout.flush()
    print(f"{caught} caught, {listed} survive with a reason, {wrong} wrong")
    return 1 if wrong or caught == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
