#!/usr/bin/env python3
"""Shows that check.py finds what it is for: it passes on the kernels as they are, and fails on each
change that synthesis, or somebody who calls a kernel, would trip over.

usage: check_test.py
"""

import os
import shutil
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import check  # noqa: E402

FOLDER = os.path.dirname(os.path.abspath(__file__))

# File, what is replaced (once), by what, and a part of the finding.
CHANGES = [
    ("fold.h", '#include "float32.h"', '#include <vector>\n#include "float32.h"', "includes vector"),
    ("fold.h", '#include "float32.h"', '#include "penstock/base/status.h"\n#include "float32.h"',
     "includes penstock/base/status.h"),
    ("fold.h", '#include "float32.h"', '#include "plain/hls_stream.h"\n#include "float32.h"',
     "includes plain/hls_stream.h"),
    ("reduce_stages.h", "u64 source[kMaxSources];", "u64* source = new u64[kMaxSources];", "'new'"),
    ("reduce_stages.h", "Word before = 0;", "float before = 0;", "'float'"),
    ("fold.h", "if (mode.raw) return;", "if (mode.raw) throw 1;", "'throw'"),
    ("fold.h", "struct Lanes {", "struct Lanes { virtual void grow();", "'virtual'"),
    ("fold.h", "u32 lane[kLanes];", "std::array<u32, kLanes> lane;", "std::array"),
    ("reduce_job.h", "ReduceJob job;", "ReduceJob job; const auto f = [&] { return 1; };", "'[&] {'"),
    ("reduce_stages.h", "#pragma HLS LOOP_TRIPCOUNT min = 1 max = 63\n", "",
     "without LOOP_TRIPCOUNT"),
    ("reduce_stages.h", "#pragma HLS LOOP_TRIPCOUNT min = 1 max = 63\n",
     "#pragma HLS LOOP_TRIPCOUNT max = 63\n", "without LOOP_TRIPCOUNT"),
    ("reduce_stages.h", "for (u32 i = 0; i < unanswered; ++i) {", "while (unanswered-- > 0) {",
     "a loop with while"),
    ("reduce_stages.h", "for (u32 i = 0; i < unanswered; ++i) {", "for (;;) {", "without an end"),
    ("reduce_stages.h", "#pragma HLS PIPELINE II = 1", "#pragma HLS PIPELINE II = 2", "II = 1"),
    ("reduce_stages.h", "#pragma HLS PIPELINE II = 1", "#pragma HLS PIPELINED II = 1", "not known"),
    ("reduce_stages.h", "variable = accumulators dim = 2", "variable = accumulator dim = 2",
     "no variable accumulator"),
    ("reduce_job.h", "kFoldDistance = 16;", "kFoldDistance = 8;", "distance 16"),
    ("reduce_stages.h", "distance = 4 ", "distance = 5 ", "distance 5"),
    ("float32.h", "const u64 code =", "const u64 code = f32_add(a, b) +", "calls itself"),
    ("reduce.cpp", "mode = m_axi port = pool_edge", "mode = m_axi port = pool_edges",
     "pool_edge has no m_axi"),
    ("reduce.cpp", "bundle = gmem_list", "bundle = gmem_in", "share a bundle"),
    ("reduce.cpp", "#pragma HLS INTERFACE mode = s_axilite port = scale bundle = control\n", "",
     "scale has no s_axilite"),
    ("select.cpp", "#pragma HLS INTERFACE mode = ap_ctrl_chain port = return\n", "", "control is not"),
    ("penstock_hls.h", "scale          0x070", "scale          0x074", "scale is at 0x070"),
    ("reduce.cpp", "finish_words(job, sums, codes)", "finish_words(job, sums, sums)", "codes is at"),
    ("reduce.cpp", "  PENSTOCK_HLS_REGION(region);", "  words.write(0);\n  PENSTOCK_HLS_REGION(region);",
     "more than streams"),
    ("reduce_stages.h", "using Edges = hls::stream<Edge, kEdgeDepth>;",
     "using Edges = hls::stream<Edge>;", "without a depth"),
]


class CheckTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        for name in os.listdir(FOLDER):
            if name.endswith((".h", ".cpp")):
                shutil.copy(os.path.join(FOLDER, name), self.folder)

    def tearDown(self):
        shutil.rmtree(self.folder)

    def findings(self):
        return check.check_folder(self.folder)[0]

    def test_kernels_pass(self):
        findings, files, loops = check.check_folder(self.folder)
        self.assertEqual(findings, [])
        self.assertGreater(files, 10)
        self.assertGreater(loops, 80)

    def test_changes_are_found(self):
        for name, old, new, expected in CHANGES:
            with self.subTest(name=name, new=new):
                path = os.path.join(self.folder, name)
                with open(path, encoding="utf-8") as file:
                    text = file.read()
                self.assertIn(old, text)
                with open(path, "w", encoding="utf-8") as file:
                    file.write(text.replace(old, new, 1))
                findings = self.findings()
                self.assertTrue(any(expected in finding for finding in findings), findings)
                with open(path, "w", encoding="utf-8") as file:
                    file.write(text)

    def test_an_argument_of_another_width_moves_those_that_follow(self):
        self.replace("reduce.cpp", "std::uint64_t count, std::uint64_t scale,",
                     "std::uint32_t count, std::uint64_t scale,")
        self.assertTrue(any("scale is at 0x06c" in finding for finding in self.findings()))

    def test_a_kernel_that_is_missing_is_found(self):
        os.remove(os.path.join(self.folder, "select.cpp"))
        self.assertTrue(any("1 of 2 kernels" in finding for finding in self.findings()))

    def test_lines_are_those_of_the_file(self):
        self.replace("select.cpp", "Tasks tasks(", "goto end;\n  Tasks tasks(")
        with open(os.path.join(self.folder, "select.cpp"), encoding="utf-8") as file:
            line = file.read().split("\n").index("  goto end;") + 1
        self.assertTrue(any(finding.startswith(f"select.cpp:{line}: 'goto'")
                            for finding in self.findings()))

    def replace(self, name, old, new):
        path = os.path.join(self.folder, name)
        with open(path, encoding="utf-8") as file:
            text = file.read()
        self.assertIn(old, text)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text.replace(old, new, 1))


if __name__ == "__main__":
    unittest.main()
