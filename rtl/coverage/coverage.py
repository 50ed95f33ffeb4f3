#!/usr/bin/env python3
"""Says which lines, branches, cover points and bits of the card's RTL its unit tests have reached.

usage: coverage.py --data FOLDER [--root FOLDER] [--minimum PERCENT] [--json FILE] [--waivers FILE]
                   [--block NAME]... [--files]

--data     the .dat files that tests of a build with PENSTOCK_RTL_COVERAGE wrote; all are merged
--root     the checkout (the one that this script lies in)
--minimum  percent of the lines that each block has to reach (95)
--json     writes the figures and all that was missed
--waivers  lines and cover points that need not be reached (waivers.json beside this script)
--block    only these, not all
--files    a row for each file, too

Of each block, which is a folder of rtl/:
  lines     statements that a simulator counts. A line is hit when every block of statements that
            stands on it ran, in any instance of its module.
  branches  `if` taken, and not taken; what only these miss is told in the JSON alone.
  covers    cover properties; those of a generate loop count one by one.
  toggles   of control blocks: bits that changed since the first reset, of signals of up to 8 bits.
Harnesses of tests are not counted. A source that holds statements, and of which no test wrote
anything, fails: nothing was measured.

The waivers are a list of {"file": of rtl/, "text": the line, "reason": why it cannot be reached}.
The text has to be found in one line of the file, and a waiver for a line that is reached fails.
Exit status: 0; 1 if a block has too few lines, a cover point is not hit, or a waiver is not true;
2 if there is nothing to read.
"""

import argparse
import collections
import glob
import json
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
CONTROL_BLOCKS = ("common", "registers", "command", "sync")
KINDS = ("lines", "branches", "covers", "toggles")
NOT_MEASURED = re.compile(r"(_harness|^stand_in_\w+)\.sv$")
STATEMENTS = re.compile(r"^\s*(always\w*|initial|\w+\s*:\s*cover property|cover property)\b", re.M)


def die(text):
    print(f"coverage: {text}", file=sys.stderr)
    sys.exit(2)


def line_numbers(text):
    """Of "3-5,8"."""
    numbers = []
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        numbers.extend(range(int(first), int(last or first) + 1))
    return numbers


def read_points(paths):
    """The counts, by what a point is; instances and parameters are merged."""
    counts = collections.Counter()
    for path in paths:
        with open(path, encoding="utf-8") as file:
            for text in file:
                if not text.startswith("C '"):
                    continue
                point, _, count = text[3:].rpartition("' ")
                counts[point] += int(count)
    merged = collections.Counter()
    for point, count in counts.items():
        keys = dict(part.split("\2", 1) for part in point.split("\1") if part)
        kind = keys.get("page", "").partition("/")[0]
        name = keys.get("o", "")
        # The turn of a generate loop, as the model's C++ writes it.
        name = name.replace("__BRA__", "[").replace("__KET__", "]").replace("__DOT__", ".")
        merged[kind, keys["f"], int(keys["l"]), int(keys["n"]), name, keys.get("S", "")] += count
    return merged


class File:
    """What is known of a source: of each kind, whether each point was hit."""

    def __init__(self):
        self.points = {kind: {} for kind in KINDS}

    def see(self, kind, key, hit, every):
        """With `every`, all that is seen of a key has to be hit; otherwise one."""
        points = self.points[kind]
        if key in points:
            hit = points[key] and hit if every else points[key] or hit
        points[key] = hit

    def figures(self, kind):
        points = self.points[kind]
        return sum(points.values()), len(points)

    def missed(self, kind):
        return sorted(key for key, hit in self.points[kind].items() if not hit)


def files_of(points, rtl):
    """By the path in rtl/; blocks' files that are measured."""
    files = {}
    for (kind, path, line, column, name, lines), count in sorted(points.items()):
        path = os.path.relpath(os.path.realpath(path), rtl)
        if path.startswith("..") or NOT_MEASURED.search(os.path.basename(path)):
            continue
        file = files.setdefault(path, File())
        hit = count > 0
        if kind in ("v_line", "v_branch"):
            for number in line_numbers(lines):
                file.see("lines", (number,), hit, True)
            if kind == "v_branch":
                file.see("branches", (line, column, name), hit, True)
        elif kind == "v_user":
            file.see("covers", (line, name), hit, False)
        elif kind == "v_toggle" and path.split(os.sep)[0] in CONTROL_BLOCKS:
            file.see("toggles", (line, name), hit, False)
    for path in glob.glob(os.path.join(rtl, "*", "*.sv")):
        name = os.path.relpath(path, rtl)
        if name in files or NOT_MEASURED.search(os.path.basename(name)):
            continue
        with open(path, encoding="utf-8") as source:
            if STATEMENTS.search(source.read()):
                files[name] = None
    return files


def apply_waivers(path, rtl, files, blocks):
    """Takes what is waived out of what is missed; what is wrong with the waivers."""
    with open(path, encoding="utf-8") as source:
        waivers = json.load(source)["waivers"]
    faults, waived = [], []
    for waiver in waivers:
        name, text = waiver["file"], waiver["text"]
        if blocks and name.split("/")[0] not in blocks:
            continue
        if not waiver.get("reason"):
            faults.append(f"{name}: \"{text}\" is waived without a reason")
        try:
            with open(os.path.join(rtl, name), encoding="utf-8") as source:
                found = [number for number, line in enumerate(source, 1) if text in line]
        except OSError:
            found = []
        if len(found) != 1:
            faults.append(f"{name}: the waived \"{text}\" is in {len(found)} lines, not in one")
            continue
        file = files.get(name)
        missed = [(kind, key) for kind in ("lines", "covers") for key in
                  (file.missed(kind) if file else []) if key[0] == found[0]]
        if not missed:
            faults.append(f"{name}:{found[0]}: is waived and was reached")
            continue
        waived.append(f"{name}:{found[0]}: {waiver['reason']}")
        for kind, key in missed:
            del file.points[kind][key]
    return faults, waived


def figure(hit, total):
    return f"{hit}/{total}" + (f" {100 * hit / total:5.1f} %" if total else "        ")


def measure(files):
    """Sums of the blocks, and of the files."""
    blocks = {}
    for name in sorted(files):
        block = blocks.setdefault(name.split(os.sep)[0], {"files": {}, "unmeasured": []})
        file = files[name]
        if file is None:
            block["unmeasured"].append(name)
            continue
        entry = {}
        for kind in KINDS:
            hit, total = file.figures(kind)
            entry[kind] = {"hit": hit, "total": total}
            entry["missed_" + kind] = [list(key) for key in file.missed(kind)]
        block["files"][name] = entry
    for block in blocks.values():
        for kind in KINDS:
            block[kind] = {what: sum(file[kind][what] for file in block["files"].values())
                           for what in ("hit", "total")}
    return blocks


def ranges(numbers):
    text, numbers = [], sorted(numbers)
    while numbers:
        last = 0
        while last + 1 < len(numbers) and numbers[last + 1] == numbers[0] + last + 1:
            last += 1
        text.append(f"{numbers[0]}-{numbers[last]}" if last else str(numbers[0]))
        numbers = numbers[last + 1:]
    return text


def print_report(blocks, rows_of_files):
    rows = []
    for name, block in blocks.items():
        rows.append([name] + [figure(**block[kind]) for kind in KINDS])
        if rows_of_files:
            rows += [["  " + os.path.basename(path)] + [figure(**file[kind]) for kind in KINDS]
                     for path, file in block["files"].items()]
    rows.append(["all"] + [figure(*(sum(block[kind][what] for block in blocks.values())
                                    for what in ("hit", "total"))) for kind in KINDS])
    width = max(len(row[0]) for row in rows)
    print(f"{'block':{width}} " + " ".join(f"{kind:>18}" for kind in KINDS))
    for row in rows:
        print(f"{row[0]:{width}} " + " ".join(f"{cell:>18}" for cell in row[1:]))
    for block in blocks.values():
        for path, file in block["files"].items():
            for numbers in ranges([key[0] for key in file["missed_lines"]]):
                print(f"not hit: rtl/{path}:{numbers}")
            for line, name in file["missed_covers"]:
                print(f"not hit: rtl/{path}:{line}: cover {'' if name == 'cover' else name}".rstrip())
        for path in block["unmeasured"]:
            print(f"not simulated by any test: rtl/{path}")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True)
    parser.add_argument("--root", default=os.path.join(HERE, "..", ".."))
    parser.add_argument("--minimum", type=float, default=95)
    parser.add_argument("--json")
    parser.add_argument("--waivers", default=os.path.join(HERE, "waivers.json"))
    parser.add_argument("--block", action="append", default=[])
    parser.add_argument("--files", action="store_true")
    options = parser.parse_args()
    rtl = os.path.join(os.path.realpath(options.root), "rtl")
    paths = glob.glob(os.path.join(options.data, "*.dat"))
    if not paths:
        die(f"there are no .dat files in {options.data}: build with PENSTOCK_RTL_COVERAGE, and run "
            "the tests with PENSTOCK_RTL_COVERAGE_DIR set to that folder")
    files = files_of(read_points(paths), rtl)
    if options.block:
        files = {name: file for name, file in files.items()
                 if name.split(os.sep)[0] in options.block}
    faults, waived = apply_waivers(options.waivers, rtl, files, options.block)
    blocks = measure(files)
    if not any(block["lines"]["total"] for block in blocks.values()):
        die(f"the files in {options.data} count no line of {rtl}")
    print_report(blocks, options.files)
    for name, block in blocks.items():
        lines, covers = block["lines"], block["covers"]
        if lines["total"] and 100 * lines["hit"] < options.minimum * lines["total"]:
            faults.append(f"{name}: {figure(**lines)} of its lines, and {options.minimum:g} % "
                          "are wanted")
        if covers["hit"] < covers["total"]:
            faults.append(f"{name}: {covers['total'] - covers['hit']} cover points are not hit")
        if block["unmeasured"]:
            faults.append(f"{name}: nothing was measured of {', '.join(block['unmeasured'])}")
    for text in waived:
        print(f"waived: rtl/{text}")
    for text in faults:
        print(f"coverage: {text}")
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"minimum": options.minimum, "tests": len(paths), "passed": not faults,
                       "faults": faults, "waived": waived, "blocks": blocks}, file, indent=1)
            file.write("\n")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
