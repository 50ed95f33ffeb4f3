#!/usr/bin/env python3
"""netlist_check.py finds what yosys 0.23 is known to get wrong, and passes what it gets right.

usage: netlist_check_test.py [argument of netlist_check.py]...
"""

import json
import os
import subprocess
import sys
import tempfile

CHECK = os.path.join(os.path.dirname(os.path.abspath(__file__)), "netlist_check.py")

# An array of a struct type becomes one bit wide.
WRONG = """
module sample (input logic clk_i, input logic rst_ni, input logic [7:0] in_i, output logic [7:0] out_o);
  typedef struct packed { logic [3:0] high; logic [3:0] low; } pair_s;
  pair_s pair_q [0:1];
  always_ff @(posedge clk_i) begin
    pair_q[0] <= in_i;
    pair_q[1] <= pair_q[0];
  end
  assign out_o = pair_q[1];
endmodule
"""
RIGHT = WRONG.replace("pair_s pair_q [0:1]", "logic [7:0] pair_q [0:1]")
# Nothing to see: a constant is equal in any netlist.
STILL = WRONG.replace("assign out_o = pair_q[1]", "assign out_o = 8'd3")


def check(text, arguments):
    with tempfile.TemporaryDirectory() as work:
        source, manifest = os.path.join(work, "sample.sv"), os.path.join(work, "blocks.json")
        with open(source, "w", encoding="utf-8") as file:
            file.write(text)
        with open(manifest, "w", encoding="utf-8") as file:
            json.dump({"sample": {"sources": [source]}}, file)
        result = subprocess.run([sys.executable, CHECK, "--manifest", manifest, "--block", "sample",
                                 "--top", "sample", "--cycles", "500", *arguments],
                                capture_output=True, text=True, check=False)
    return result.returncode, result.stdout + result.stderr


def main():
    failed = 0
    for name, text, expected, words in (("an array of structs", WRONG, 1, "in the netlist"),
                                        ("an array of vectors", RIGHT, 0, "8 of 8 bits"),
                                        ("a constant", STILL, 1, "0 of 8 bits")):
        code, output = check(text, sys.argv[1:])
        if code != expected or words not in output:
            failed += 1
            print(f"{name}: ended with {code}, not {expected}, or without '{words}':\n{output}")
    print(f"{3 - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
