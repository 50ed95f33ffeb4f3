#!/usr/bin/env python3
"""Explores a model with spin: the model must hold, each of its broken twins must fail.

usage: check.py MODEL.pml --build FOLDER [--full] [--update]

A twin is made by a macro BROKEN_<name> that stands in an #ifdef or #ifndef of the model; the
model's head comment names each. Lines ' * Bounds: NAME=VALUE ...' there say with which numbers the
model is explored as well; ' * Full bounds: ...' only with --full.

The model passes when spin finds no error, has explored more than one state, and has reached every
statement. A twin passes when spin finds an assertion that fails; its shortest trail, as a list of
who makes which step, must be the one in trails/<model>.<twin>.txt, which unit tests replay against
the code. --update writes it. Ends with 1 if anything is otherwise.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys

MAX_LINES = 150
SECONDS = 300  # for one exploration; most take a few, on a busy machine more
MEMORY_MB = 2048


class Failed(Exception):
    pass


def run(command, folder, seconds=SECONDS):
    try:
        result = subprocess.run(command, cwd=folder, capture_output=True, text=True,
                                timeout=seconds, check=False)
    except subprocess.TimeoutExpired as expired:
        raise Failed(f"{command[0]} took more than {seconds} s") from expired
    return result.returncode, result.stdout + result.stderr


def read_model(path):
    """Returns (twins, bounds, full bounds) of the model; Failed if its form is wrong."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    lines = text.count("\n")
    if lines > MAX_LINES:
        raise Failed(f"{lines} lines; at most {MAX_LINES}")
    head = text.split("*/")[0]
    twins = sorted(set(re.findall(r"^\s*#ifn?def\s+(BROKEN_\w+)", text, re.M)))
    documented = sorted(set(re.findall(r"BROKEN_\w+", head)))
    if not twins:
        raise Failed("no broken twin: nothing shows that this model can fail")
    if twins != documented:
        raise Failed(f"its head comment names {documented}, but its twins are {twins}")
    bounds = [line.split() for line in re.findall(r"^ \* Bounds: (.*)$", head, re.M)]
    full = [line.split() for line in re.findall(r"^ \* Full bounds: (.*)$", head, re.M)]
    return twins, bounds, full


def explore(model, defines, folder, options):
    """Returns pan's output."""
    os.makedirs(folder, exist_ok=True)
    name = os.path.basename(model)
    shutil.copy(model, folder)
    trail = os.path.join(folder, name + ".trail")
    if os.path.exists(trail):
        os.remove(trail)
    flags = [f"-D{define}" for define in defines]
    code, output = run(["spin", *flags, "-a", name], folder)
    if code != 0 or "Error" in output:
        raise Failed(f"spin refuses it: {output}")
    code, output = run(["gcc", "-O0", "-w", "-DSAFETY", "-DCOLLAPSE", f"-DMEMLIM={MEMORY_MB}",
                        *options, "-o", "pan", "pan.c"], folder)
    if code != 0:
        raise Failed(f"gcc refuses it: {output}")
    _, output = run(["./pan", "-w20", "-m100000"], folder)
    if "errors: " not in output:
        raise Failed(f"pan ended early: {output}")
    return output


def number(pattern, output):
    match = re.search(pattern, output)
    if not match:
        raise Failed(f"pan's output has no '{pattern}': {output}")
    return int(match.group(1))


def check_right(model, defines, folder, options):
    output = explore(model, defines, folder, options)
    states = number(r"(\d+) states, stored", output)
    if number(r"errors: (\d+)", output) != 0:
        reason = re.search(r"pan:\d+: (.*)", output)
        raise Failed(f"it must hold, but: {reason.group(1) if reason else output}\n"
                     f"{schedule(model, defines, folder)}")
    for sign in ("max search depth too small", "reached -DMEMLIM", "Search not completed"):
        if sign in output:
            raise Failed(f"not explored to the end: {sign}")
    if states < 2:
        raise Failed(f"{states} states: nothing was explored")
    unreached = [line.strip() for line in output.splitlines()
                 if re.match(r"\t\S+:\d+, state \d+", line) and "-end-" not in line]
    if unreached and not defines:
        raise Failed("never reached: " + "; ".join(unreached))
    return states


def schedule(model, defines, folder):
    """The trail as lines 'who step arguments'."""
    flags = [f"-D{define}" for define in defines]
    _, output = run(["spin", *flags, "-t", os.path.basename(model)], folder)
    steps = []
    for line in output.splitlines():
        if line.startswith("#processes"):
            break
        if re.match(r"\s*\d+ [a-z_]+( \d+)*$", line):
            steps.append(line.strip())
    return "\n".join(steps) + "\n"


def check_twin(model, twin, folder, trail, update):
    output = explore(model, [twin], folder, ["-DBFS"])
    if number(r"errors: (\d+)", output) == 0 or "assertion violated" not in output:
        raise Failed("it must fail, but no assertion does")
    steps = schedule(model, [twin], folder)
    if steps.count("\n") < 2:
        raise Failed("its trail has no steps")
    if update:
        os.makedirs(os.path.dirname(trail), exist_ok=True)
        with open(trail, "w", encoding="utf-8") as file:
            file.write(steps)
    if not os.path.exists(trail):
        raise Failed(f"{trail} is missing; --update writes it")
    with open(trail, encoding="utf-8") as file:
        if file.read() != steps:
            raise Failed(f"its trail is not the one in {trail}; --update writes it, and the tests "
                         f"that replay it have to be looked at:\n{steps}")
    return steps.count("\n")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("model")
    parser.add_argument("--build", required=True)
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--update", action="store_true")
    arguments = parser.parse_args()
    model = os.path.abspath(arguments.model)
    name = os.path.splitext(os.path.basename(model))[0]
    failures = 0
    if shutil.which("spin") is None:
        print("spin is not installed (Debian package spin)")
        return 1

    def attempt(title, action):
        nonlocal failures
        try:
            print(f"{name} {title}: {action()}")
        except Failed as failed:
            failures += 1
            print(f"{name} {title}: FAILED: {failed}")

    try:
        twins, bounds, full = read_model(model)
    except Failed as failed:
        print(f"{name}: FAILED: {failed}")
        return 1
    for index, defines in enumerate([[]] + bounds + (full if arguments.full else [])):
        folder = os.path.join(arguments.build, f"{name}.{index}")
        optimised = ["-O2"] if index > len(bounds) else []  # where exploring takes the time
        attempt(" ".join(defines) or "as it stands",
                lambda d=defines, f=folder, o=optimised:
                f"holds, {check_right(model, d, f, o)} states")
    for twin in twins:
        folder = os.path.join(arguments.build, f"{name}.{twin}")
        short = twin[len("BROKEN_"):].lower()
        trail = os.path.join(os.path.dirname(model), "trails", f"{name}.{short}.txt")
        attempt(twin, lambda t=twin, f=folder, r=trail:
                f"fails after {check_twin(model, t, f, r, arguments.update)} steps")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
