"""Makes one OpenCL source of the kernels: `embed.py FILE... OUT` resolves their includes of
"penstock/drivers/kernels/" and writes a C++ raw string literal for #include.

A file with an include guard is taken once, one named -inl.h each time.
"""
import pathlib
import re
import sys

INCLUDE = re.compile(r'\s*#include\s+"penstock/drivers/kernels/([^"]+)"\s*$')
# A raw string literal may not be longer than 65,535 bytes everywhere; neighbours are joined.
PIECE = 16000


def expand(path: pathlib.Path, seen: set[str]) -> str:
    lines = []
    for line in path.read_text(encoding="utf-8").splitlines():
        match = INCLUDE.match(line)
        if match is None:
            lines.append(line)
            continue
        name = match[1]
        if name in seen or name == "dialect_host.h":
            continue
        if not name.endswith("-inl.h"):
            seen.add(name)
        lines.append(expand(path.parent / name, seen))
    return "\n".join(lines)


def main(arguments: list[str]) -> None:
    *sources, out = arguments
    seen: set[str] = set()
    text = ""
    for source in map(pathlib.Path, sources):
        if source.name in seen:
            continue
        seen.add(source.name)
        text += expand(source, seen) + "\n"
    pieces = [text[i:i + PIECE] for i in range(0, len(text), PIECE)]
    pathlib.Path(out).write_text("\n".join(f'R"kernels({piece})kernels"' for piece in pieces) + "\n",
                                 encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
