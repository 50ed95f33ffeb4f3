"""make_xclbin.py writes what xclbin.h describes, and says what is wrong with its input."""
import argparse
import contextlib
import io
import pathlib
import struct
import sys
import tempfile
import unittest

ROOT = None


def section(data, kind):
    """The bytes of a section, by the offsets of xclbin.h."""
    (count,) = struct.unpack_from("<I", data, 304 + 144)
    for index in range(count):
        found, offset, size = struct.unpack_from("<I20xQQ", data, 456 + 40 * index)
        if found == kind:
            return data[offset:offset + size]
    return None


class MakeXclbin(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.path = pathlib.Path(self.folder.name)

    def tearDown(self):
        self.folder.cleanup()

    def make(self, link, *more, kernel=None):
        (self.path / "link.cfg").write_text(link, encoding="utf-8")
        said = io.StringIO()
        with contextlib.redirect_stderr(said):
            status = make_xclbin.main(
                ["--kernel", str(kernel or ROOT / "rtl/vitis/kernel.xml"),
                 "--link", str(self.path / "link.cfg"), "--out", str(self.path / "out"), *more])
        return status, said.getvalue()

    def test_what_it_writes(self):
        link = (ROOT / "rtl/vitis/u55c.cfg").read_text(encoding="utf-8")
        self.assertEqual(self.make(link, "--clock-mhz", "7"), (0, ""))
        data = (self.path / "out").read_bytes()
        self.assertEqual(data[:8], b"xclbin2\0")
        self.assertEqual(struct.unpack_from("<Q", data, 304)[0], len(data))
        banks = section(data, 6)
        self.assertEqual(struct.unpack_from("<i", banks)[0], 2)
        self.assertEqual(banks[8 + 24:8 + 40].rstrip(b"\0"), b"HBM[0:31]")
        self.assertEqual(banks[48 + 24:48 + 40].rstrip(b"\0"), b"HOST[0]")
        lines = section(data, 7)
        self.assertEqual(struct.unpack_from("<13i", lines),
                         (4, 0, 0, 1, 1, 0, 0, 2, 0, 0, 3, 0, 1))
        layout = section(data, 8)
        kind, properties, base = struct.unpack_from("<IIQ", layout, 8)
        self.assertEqual((kind, properties & 1, properties >> 8 & 0xff), (1, 1, 2))
        self.assertEqual(base, 0x800000)
        self.assertEqual(layout[24:88].rstrip(b"\0"), b"penstock_card:card")
        self.assertEqual(struct.unpack_from("<hHB", section(data, 11)), (1, 7, 1))
        self.assertIn(b'<arg name="rings"', section(data, 2))

    def test_the_same_input_gives_the_same_file(self):
        link = "[connectivity]\nnk=penstock_card:1:card\n"
        self.make(link)
        first = (self.path / "out").read_bytes()
        self.make(link)
        self.assertEqual(first, (self.path / "out").read_bytes())
        self.make(link + "sp=card.rings:HOST[0]\n")
        self.assertNotEqual(first, (self.path / "out").read_bytes())

    def test_hls_kernels_come_from_their_header(self):
        status, said = self.make("[connectivity]\nnk=penstock_hls_select:2\n", "--hls",
                                 str(ROOT / "hls/penstock_hls.h"))
        self.assertEqual((status, said), (0, ""))
        data = (self.path / "out").read_bytes()
        text = section(data, 2).decode()
        self.assertIn('name="n_tasks" id="10" port="s_axi_control" size="0x4"', text)
        self.assertIn('offset="0x88"', text)
        self.assertIn('name="m_axi_gmem_table" mode="master"', text)
        self.assertIn(b"penstock_hls_select:penstock_hls_select_2", section(data, 8))

    def test_what_it_refuses(self):
        header = self.path / "h.h"
        header.write_text("//   a  0x10\nvoid k(std::uint64_t a, std::uint64_t b);\n",
                          encoding="utf-8")
        none = "[connectivity]\n"
        for link, more, said in [
                (none, [], "it has no instance"),
                (none + "nk=other:1\n", [], "there is no description of a kernel other"),
                (none + "nk=penstock_card:2:one\n", [], "names 1 instances"),
                (none + "nk=penstock_card\n", [], "is no KERNEL:COUNT"),
                (none + "nk=penstock_card:1:c\nsp=c.nothing:HBM[0]\n", [], "no such argument"),
                (none + "nk=penstock_card:1:c\nsp=d.rings:HBM[0]\n", [], "no such instance"),
                (none + "nk=penstock_card:1:c\nsp=c.rings\n", [], "is no INSTANCE.ARGUMENT:BANK"),
                (none + f"nk=penstock_card:1:{'c' * 60}\n", [], "longer than 63 bytes"),
                (none, ["--hls", str(header)], "does not say where its argument b stands"),
                (none, ["--hls", str(self.path / "link.cfg")], "it declares no kernel"),
                (none, ["--hls", str(self.path / "none.h")], "No such file"),
        ]:
            with self.subTest(said=said):
                status, text = self.make(link, *more)
                self.assertEqual(status, 1)
                self.assertIn(said, text)
        status, text = self.make(none, kernel=header)
        self.assertEqual(status, 1)
        self.assertIn("h.h: not well-formed", text)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--root", type=pathlib.Path, required=True)
    options, rest = parser.parse_known_args()
    ROOT = options.root
    sys.path.insert(0, str(ROOT / "sim/xrt"))
    import make_xclbin

    unittest.main(argv=[sys.argv[0], *rest])
