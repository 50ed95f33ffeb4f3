"""The file of kernels holds machine code for every architecture, and PTX of the newest:
`fatbin_test.py FILE NUMBER...`.

The container is one that cuobjdump reads: a header of 16 bytes, then entries, each with a kind (1 is
PTX, 2 is machine code), the size of its header, the size of what follows, and the architecture.
"""
import shutil
import struct
import subprocess
import sys

MAGIC = 0xBA55ED50
PTX, MACHINE_CODE = 1, 2


def entries(data: bytes) -> list[tuple[int, int]]:
    magic, _, header, size = struct.unpack_from("<IHHQ", data, 0)
    if magic != MAGIC or header + size > len(data):
        raise SystemExit(f"no fatbin: magic {magic:#x}, {header + size} of {len(data)} bytes")
    found = []
    at = header
    while at < header + size:
        kind, _, entry_header, entry_size = struct.unpack_from("<HHIQ", data, at)
        (architecture,) = struct.unpack_from("<I", data, at + 28)
        found.append((kind, architecture))
        at += entry_header + entry_size
    return found


def main(arguments: list[str]) -> None:
    path, *numbers = arguments
    with open(path, "rb") as file:
        found = entries(file.read())
    wanted = [(MACHINE_CODE, int(number)) for number in numbers] + [(PTX, int(numbers[-1]))]
    if sorted(found) != sorted(wanted):
        raise SystemExit(f"{path} has {sorted(found)}, not {sorted(wanted)}")
    cuobjdump = shutil.which("cuobjdump")
    if cuobjdump is not None:
        listed = subprocess.run([cuobjdump, "--list-elf", path], check=True, capture_output=True,
                                text=True).stdout
        for number in numbers:
            if f"sm_{number}" not in listed:
                raise SystemExit(f"cuobjdump finds no sm_{number}: {listed}")
    print(f"machine code for {', '.join('sm_' + n for n in numbers)}, PTX of {numbers[-1]}")


if __name__ == "__main__":
    main(sys.argv[1:])
