#!/usr/bin/env python3
"""Proves what a block's immediate assertions (`ifdef FORMAL`) say, with yosys-smtbmc and z3.

usage: prove.py --list FILE [--top MODULE] [--index N] [--work FOLDER] [--yosys PROGRAM] [--smtbmc PROGRAM]
                [--timeout SECONDS] [--no-faults]

FILE is a block's formal.json:

  {"proofs": [{"top": "penstock_fifo",             the module
               "sources": ["penstock_fifo.sv"],    beside FILE, or ../<block>/..., in their order
               "parameters": {"DEPTH": 3},         small, so that the solver ends
               "depth": 12,                        cycles from reset that are looked at
               "induction": 8,                     cycles of the inductive step; 0: bounded only
               "cover": 20,                        cycles in which every cover has to be reached
               "full": true,                       only in the long run of the tests
               "faults": [{"file": "penstock_fifo.sv", "replace": "...", "with": "..."}]}]}

A proof holds if no assertion fails within `depth` cycles of any start, none can fail after
`induction` cycles in which all held, and every cover is reached. Each fault is the source with one
text replaced (it has to stand there once); a fault that no assertion sees within `depth` cycles, or
that induction lets through, fails the proof: an assertion that cannot fail proves nothing.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time


class Prover:
    """Runs the tools on one proof. `where` is the folder of its list."""

    def __init__(self, options, where, proof):
        self.options, self.where, self.proof = options, where, proof
        self.failures = []

    def synthesise(self, work, sources):
        """Writes the model that the solver reads; returns its path, or None after a message."""
        model = os.path.join(work, "model.smt2")
        parameters = "".join(f" -set {name} {value}"
                             for name, value in self.proof.get("parameters", {}).items())
        top = self.proof["top"]
        script = "; ".join([f"read_verilog -formal -sv {' '.join(sources)}",
                            f"chparam{parameters} {top}" if parameters else "",
                            f"hierarchy -check -top {top}", "proc", "opt", "memory -nordff -nomap",
                            "opt -fast", "async2sync", "dffunmap", f"write_smt2 -wires {model}"])
        result = subprocess.run([self.options.yosys, "-q", "-e", "implicitly declared", "-p", script],
                                capture_output=True, text=True, check=False)
        if result.returncode != 0:
            self.failures.append(f"yosys:\n{result.stdout}{result.stderr}")
            return None
        return model

    def solve(self, model, arguments):
        """Returns ("passed", "failed" or "timeout", the solver's words)."""
        try:
            result = subprocess.run([self.options.smtbmc, "-s", "z3", "--unroll", "--noprogress", *arguments,
                                     model],
                                    capture_output=True, text=True, check=False,
                                    timeout=self.options.timeout)
        except subprocess.TimeoutExpired:
            return "timeout", ""
        words = result.stdout + result.stderr
        if "Status: PASSED" in words:
            return "passed", words
        return ("failed" if "Status: FAILED" in words else "error"), words

    def modes(self):
        proof = self.proof
        yield "bounded", ["-t", str(proof["depth"])]
        if proof.get("induction"):
            yield "induction", ["-i", "-t", str(proof["induction"])]
        if proof.get("cover"):
            yield "cover", ["-c", "-t", str(proof["cover"])]

    def prove(self, work):
        model = self.synthesise(work, [os.path.join(self.where, file)
                                       for file in self.proof["sources"]])
        if model is None:
            return
        with open(model, encoding="utf-8") as file:
            text = file.read()
        asserts = len(re.findall(r"^; yosys-smt2-assert ", text, flags=re.M))
        covers = len(re.findall(r"^; yosys-smt2-cover ", text, flags=re.M))
        if asserts == 0:
            self.failures.append("there is nothing to prove")
        for mode, arguments in self.modes():
            started = time.monotonic()
            verdict, words = self.solve(model, arguments)
            count = covers if mode == "cover" else asserts
            print(f"  {mode} {arguments[-1]}: {count} {verdict}, {time.monotonic() - started:.1f} s",
                  flush=True)
            if verdict != "passed":
                what = [line for line in words.splitlines()
                        if re.search("failed|Unreached|Error|ERROR|rror:", line)]
                self.failures.append(f"{mode}: {verdict}\n    " + "\n    ".join(what[-20:]))

    def break_it(self, work, number, fault):
        """True if the fault is seen."""
        sources = []
        replaced = 0
        for file in self.proof["sources"]:
            path = os.path.join(self.where, file)
            if file == fault["file"]:
                with open(path, encoding="utf-8") as source:
                    text = source.read()
                replaced = text.count(fault["replace"])
                path = os.path.join(work, f"fault{number}_{os.path.basename(file)}")
                with open(path, "w", encoding="utf-8") as copy:
                    copy.write(text.replace(fault["replace"], fault["with"]))
            sources.append(path)
        name = f"fault {number}, '{fault['replace']}' -> '{fault['with']}'"
        if replaced != 1:
            self.failures.append(f"{name}: its text stands in {fault['file']} {replaced} times, not once")
            return
        model = self.synthesise(work, sources)
        if model is None:
            return
        for mode, arguments in self.modes():
            if mode == "cover":
                continue
            verdict, _ = self.solve(model, arguments)
            if verdict == "failed":
                print(f"  {name}: seen ({mode})", flush=True)
                return
        self.failures.append(f"{name}: no assertion sees it")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--list", required=True)
    parser.add_argument("--top")
    parser.add_argument("--index", type=int, help="this proof alone, counted from 0")
    parser.add_argument("--work")
    parser.add_argument("--yosys", default="yosys")
    parser.add_argument("--smtbmc", default="yosys-smtbmc")
    parser.add_argument("--timeout", type=float, default=300)
    parser.add_argument("--no-faults", action="store_true")
    options = parser.parse_args()
    with open(options.list, encoding="utf-8") as file:
        proofs = json.load(file)["proofs"]
    proofs = [proof for number, proof in enumerate(proofs)
              if options.top in (None, proof["top"]) and options.index in (None, number)]
    if not proofs:
        print(f"{options.list} has no proof of {options.top}")
        return 1
    failed = 0
    for proof in proofs:
        print(proof["top"], flush=True)
        prover = Prover(options, os.path.dirname(os.path.abspath(options.list)), proof)
        work = tempfile.mkdtemp(dir=options.work)
        try:
            prover.prove(work)
            if not options.no_faults and not prover.failures:
                for number, fault in enumerate(proof.get("faults", []), 1):
                    prover.break_it(work, number, fault)
                if not proof.get("faults"):
                    prover.failures.append("no fault shows that the assertions can fail")
        finally:
            shutil.rmtree(work)
        for failure in prover.failures:
            print(f"  FAILED {failure}")
        failed += bool(prover.failures)
    print(f"{len(proofs) - failed} proved, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
