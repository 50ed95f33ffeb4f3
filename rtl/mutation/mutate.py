#!/usr/bin/env python3
"""Seeds faults into the card's RTL, one at a time, and wants a test to see each.

usage: mutate.py --root FOLDER --work FOLDER [--list FILE] [--only NAME]... [--jobs N]

--root  the checkout
--work  a scratch folder: a copy of the sources and its build. What is there is used again.
--list  the faults (mutants.json beside this script). Each has a name, the file (of rtl/), the text
        that is found once in it, what it becomes, and the test that has to fail.

First the tests are run on the sound sources and have to pass: a test that fails anyway sees nothing.
Exit status: 0 if every fault was seen; 1 if one was not; 2 if something could not be tried.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
BUILD_TIMEOUT_S = 1800
TEST_TIMEOUT_S = 600


def die(text):
    print(f"mutate: {text}", file=sys.stderr)
    sys.exit(2)


def read_mutants(path, names):
    with open(path, encoding="utf-8") as file:
        mutants = json.load(file)["mutants"]
    known = [mutant["name"] for mutant in mutants]
    if len(set(known)) != len(known):
        die(f"{path}: two faults have one name")
    for name in names:
        if name not in known:
            die(f"there is no fault {name}; there are {', '.join(known)}")
    return [mutant for mutant in mutants if not names or mutant["name"] in names]


class Copy:
    """The sources in the scratch folder, and their build."""

    def __init__(self, options):
        self.source = os.path.join(options.work, "source")
        self.build = os.path.join(options.work, "build")
        self.jobs = options.jobs
        self.copy_sources(options.root)
        self.run(["cmake", "-S", self.source, "-B", self.build, "-G", "Ninja",
                  "-DCMAKE_BUILD_TYPE=Debug", "-DCMAKE_C_FLAGS_DEBUG=-O1",
                  "-DCMAKE_CXX_FLAGS_DEBUG=-O1"], "configure")

    def copy_sources(self, root):
        names = subprocess.run(["git", "-C", root, "ls-files", "-z"], check=True,
                               capture_output=True).stdout.decode().split("\0")
        wanted = {name for name in names if name}
        for folder, _, files in os.walk(self.source):
            for file in files:
                path = os.path.join(folder, file)
                if os.path.relpath(path, self.source) not in wanted:
                    os.remove(path)
        for name in sorted(wanted):
            target = os.path.join(self.source, name)
            origin = os.path.join(root, name)
            if os.path.islink(origin) or not os.path.isfile(origin):
                continue
            with open(origin, "rb") as file:
                text = file.read()
            # What is the same stays as old as it is, so that it is not built again.
            if os.path.exists(target):
                with open(target, "rb") as file:
                    if file.read() == text:
                        continue
            os.makedirs(os.path.dirname(target), exist_ok=True)
            shutil.copyfile(origin, target)
            shutil.copymode(origin, target)

    @staticmethod
    def run(command, what):
        result = subprocess.run(command, capture_output=True, text=True, check=False,
                                timeout=BUILD_TIMEOUT_S)
        if result.returncode != 0:
            lines = (result.stdout + result.stderr).splitlines()
            die(f"{what} failed:\n  " + "\n  ".join(lines[-15:]))

    def build_test(self, test):
        command = ["ninja", "-C", self.build, f"-j{self.jobs}", test]
        return subprocess.run(command, capture_output=True, text=True, check=False,
                              timeout=BUILD_TIMEOUT_S)

    def find_test(self, test):
        for folder, _, files in os.walk(os.path.join(self.build, "rtl")):
            if test in files:
                return os.path.join(folder, test)
        die(f"{test} was built, but where?")
        return None

    def passes(self, test):
        """Whether the test passes, and the first thing that it says if not."""
        built = self.build_test(test)
        if built.returncode != 0:
            return None, (built.stdout + built.stderr).strip().splitlines()[-1]
        try:
            result = subprocess.run([self.find_test(test), "--gtest_brief=1"], capture_output=True,
                                    text=True, check=False, timeout=TEST_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            return False, f"it did not end in {TEST_TIMEOUT_S} s"
        said = [line for line in (result.stdout + result.stderr).splitlines()
                if "Failure" in line or "Assertion failed" in line or "FAILED" in line]
        return result.returncode == 0, said[0].strip() if said else ""


def try_mutant(copy, mutant):
    """True if the fault was seen."""
    path = os.path.join(copy.source, "rtl", mutant["file"])
    with open(path, encoding="utf-8") as file:
        sound = file.read()
    if sound.count(mutant["find"]) != 1:
        die(f"{mutant['name']}: \"{mutant['find']}\" is {sound.count(mutant['find'])} times in "
            f"{mutant['file']}, and has to be there once")
    try:
        with open(path, "w", encoding="utf-8") as file:
            file.write(sound.replace(mutant["find"], mutant["replace"]))
        passed, said = copy.passes(mutant["test"])
    finally:
        with open(path, "w", encoding="utf-8") as file:
            file.write(sound)
    if passed is None:
        die(f"{mutant['name']}: it does not build, so no test had to see it: {said}")
    print(f"{mutant['name']}: {'NOT SEEN by' if passed else 'seen by'} {mutant['test']}"
          f"{': ' + said if said and not passed else ''}", flush=True)
    return not passed


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", required=True)
    parser.add_argument("--work", required=True)
    parser.add_argument("--list", default=os.path.join(HERE, "mutants.json"))
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    options = parser.parse_args()
    mutants = read_mutants(options.list, options.only)
    copy = Copy(options)
    for test in sorted({mutant["test"] for mutant in mutants}):
        passed, said = copy.passes(test)
        if not passed:
            die(f"{test} does not pass on the sound sources: {said}")
        print(f"{test}: passes on the sound sources", flush=True)
    unseen = [mutant["name"] for mutant in mutants if not try_mutant(copy, mutant)]
    print(f"{len(mutants) - len(unseen)} of {len(mutants)} faults were seen"
          + (f"; not seen: {', '.join(unseen)}" if unseen else ""))
    return 1 if unseen else 0


if __name__ == "__main__":
    sys.exit(main())
