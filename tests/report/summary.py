#!/usr/bin/env python3
"""Counts the results of a ctest run and prints "N passed, N failed" as the last line.

usage: summary.py --ctest-status N --left-behind FILE JUNIT

Nothing counted is a failure: a run without tests, an unreadable report, a test that ctest could not
start, and a ctest that failed although every test passed. Files that the run left in /dev/shm are
listed in FILE; they make the test shm_clean fail, which is added to the report.
"""

import argparse
import sys
import xml.etree.ElementTree as ET


def read_cases(root):
    """Returns (passed, failed, skipped) as lists of names."""
    passed, failed, skipped = [], [], []
    for case in root.iter("testcase"):
        name, status = case.get("name", "?"), case.get("status", "")
        if status == "run":
            passed.append(name)
        elif status == "disabled":
            skipped.append(name)
        elif status == "notrun":
            # A test may skip itself. One whose executable is missing did not skip: it is broken.
            note = case.find("skipped")
            reason = note.get("message", "") if note is not None else ""
            (skipped if reason.startswith("SKIP_") else failed).append(name)
        else:
            failed.append(name)
    return passed, failed, skipped


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ctest-status", type=int, required=True)
    parser.add_argument("--left-behind", required=True)
    parser.add_argument("junit")
    options = parser.parse_args()

    tree, passed, failed, skipped = None, [], [], []
    try:
        tree = ET.parse(options.junit)
        passed, failed, skipped = read_cases(tree.getroot())
        if not passed and not failed:
            failed.append("no test was run")
    except (OSError, ET.ParseError) as error:
        failed.append(f"no test report: {error}")
    if options.ctest_status != 0 and not failed:
        failed.append(f"ctest ended with status {options.ctest_status}")

    with open(options.left_behind, encoding="utf-8") as file:
        left = file.read().split("\n")
    left = [name for name in left if name]
    (failed if left else passed).append("shm_clean")
    for name in left:
        print(f"shm_clean: left behind: {name}")
    if tree is not None:
        root = tree.getroot()
        case = ET.SubElement(root, "testcase", name="shm_clean", classname="shm_clean",
                             status="fail" if left else "run")
        if left:
            ET.SubElement(case, "failure", message="left behind: " + " ".join(left))
        counts = {"tests": len(passed) + len(failed) + len(skipped), "failures": len(failed)}
        for key, value in counts.items():
            root.set(key, str(value))
        tree.write(options.junit, encoding="UTF-8", xml_declaration=True)

    for name in skipped:
        print(f"skipped: {name}")
    for name in failed:
        print(f"FAILED: {name}")
    print(f"{len(passed)} passed, {len(failed)} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
