#!/usr/bin/env python3
"""Simulates what yosys made of a module beside the module itself, with the same inputs.

usage: netlist_check.py --manifest FILE --block BLOCK --top MODULE [--parameter NAME=VALUE]...
                        [--cycles N] [--work FOLDER] [--yosys PROGRAM] [--verilator PROGRAM]

yosys 0.23 gets some SystemVerilog wrong without a word; what is proved and counted with it is worth
something only where its netlist does what the source does. Both start with all registers 0 and see
random inputs, dense ones and sparse ones, and now and then a reset. Every output is compared in every
cycle. Ends with 1 if one differs, or if fewer than half of the outputs' bits ever changed: a check
that saw nothing is none.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile


def run(command, **options):
    result = subprocess.run(command, capture_output=True, text=True, check=False, **options)
    if result.returncode != 0:
        print(f"{command[0]} failed:\n{(result.stdout + result.stderr)[-4000:]}")
        sys.exit(1)
    return result.stdout


def make_netlist(options, sources, work):
    """Writes netlist.v with the module <top>_netlist; returns {port: (direction, bits)}."""
    parameters = "".join(f" -set {name} {value}" for name, value in options.parameters)
    netlist, ports = os.path.join(work, "netlist.v"), os.path.join(work, "ports.json")
    script = [f"read_verilog -sv {' '.join(sources)}",
              f"chparam{parameters} {options.top}" if parameters else "",
              f"synth -flatten -noabc -top {options.top}", f"write_json {ports}",
              f"rename {options.top} {options.top}_netlist", f"write_verilog -noattr {netlist}"]
    run([options.yosys, "-q", "-e", "implicitly declared", "-p", "; ".join(script)])
    with open(ports, encoding="utf-8") as file:
        module = json.load(file)["modules"][options.top]
    return {name: (port["direction"], len(port["bits"])) for name, port in module["ports"].items()}


def bench_text(options, ports):
    """A bench that drives both and compares; prints a line with what it saw."""
    inputs = [name for name, (kind, _) in ports.items() if kind == "input" and name != "clk_i"]
    outputs = [name for name, (kind, _) in ports.items() if kind == "output"]
    width = {name: bits for name, (_, bits) in ports.items()}
    total = sum(width[name] for name in outputs)
    lines = ["module bench;", "  logic clk_i = 0;", "  int unsigned cycle = 0;", "  int unsigned mode;"]
    lines += [f"  logic [{width[name] - 1}:0] {name} = '0;" for name in inputs]
    for name in outputs:
        lines.append(f"  wire [{width[name] - 1}:0] {name}_s, {name}_n;")
        lines.append(f"  logic [{width[name] - 1}:0] {name}_q = '0, {name}_moved = '0;")
    common = [f".{name}({name})" for name in ["clk_i"] + inputs if name in ports]
    overrides = ", ".join(f".{name}({value})" for name, value in options.parameters)
    source = f"{options.top} #({overrides})" if overrides else options.top
    for kind, suffix in ((source, "s"), (options.top + "_netlist", "n")):
        connections = ", ".join(common + [f".{name}({name}_{suffix})" for name in outputs])
        lines.append(f"  {kind} i_{suffix} ({connections});")
    lines += ["  initial forever #1 clk_i = !clk_i;", "  always @(negedge clk_i) begin",
              "    cycle <= cycle + 1;", "    if (cycle % 64 == 0) mode <= $urandom % 4;"]
    for name in inputs:
        words = (width[name] + 31) // 32
        one, two = ("{" + ", ".join(["$urandom"] * words) + "}" for _ in range(2))
        if name.endswith("rst_ni"):
            lines.append(f"    {name} <= cycle > 4 && $urandom % 500 != 0;")
            continue
        lines += ["    case (mode)",
                  f"      0: {name} <= {width[name]}'({one});",
                  f"      1: {name} <= {width[name]}'({one} & {two});",
                  f"      2: {name} <= {width[name]}'({one} & {two} & {one});",
                  f"      default: {name} <= {width[name]}'({one} | {two});", "    endcase"]
    lines += ["  end", "  always @(posedge clk_i) begin"]
    for name in outputs:
        lines += [f"    if ({name}_s !== {name}_n) begin",
                  f'      $display("cycle %0d: {name} is %h, in the netlist %h", cycle, {name}_s,'
                  f" {name}_n);", "      $finish;", "    end",
                  f"    {name}_q <= {name}_s;",
                  f"    if (cycle > 0) {name}_moved <= {name}_moved | ({name}_q ^ {name}_s);"]
    moved = " + ".join(f"$countones({name}_moved)" for name in outputs)
    lines += [f"    if (cycle == {options.cycles}) begin",
              f'      $display("equal %0d {total}", {moved});', "      $finish;", "    end", "  end",
              "endmodule", ""]
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--manifest", required=True)
    parser.add_argument("--block", required=True)
    parser.add_argument("--top", required=True)
    parser.add_argument("--parameter", action="append", default=[])
    parser.add_argument("--cycles", type=int, default=20000)
    parser.add_argument("--work")
    parser.add_argument("--yosys", default="yosys")
    parser.add_argument("--verilator", default="verilator")
    options = parser.parse_args()
    options.parameters = [text.split("=", 1) for text in options.parameter]
    with open(options.manifest, encoding="utf-8") as file:
        sources = json.load(file)[options.block]["sources"]
    with tempfile.TemporaryDirectory(dir=options.work) as work:
        ports = make_netlist(options, sources, work)
        bench = os.path.join(work, "bench.sv")
        with open(bench, "w", encoding="utf-8") as file:
            file.write(bench_text(options, ports))
        run([options.verilator, "--binary", "-Wno-fatal", "-Wno-lint", "--x-initial", "0",
             "--x-assign", "0", "-O3", "-CFLAGS", "-O1", "--top-module", "bench", "--Mdir", work,
             *sources, os.path.join(work, "netlist.v"), bench], timeout=900)
        output = run([os.path.join(work, "Vbench")], timeout=900)
    print(output, end="")
    for line in output.splitlines():
        if line.startswith("equal "):
            moved, total = (int(word) for word in line.split()[1:])
            print(f"{options.top}: equal in {options.cycles} cycles, {moved} of {total} bits of its "
                  "outputs changed")
            return 0 if 2 * moved >= total else 1
    return 1


if __name__ == "__main__":
    sys.exit(main())
