"""Small MNIST-like IDX files, so that tests of the real worker need neither network nor time.

Each class has a bright block of its own, plus noise: learnt within some dozen steps.
"""

import pathlib
import random
import struct

SIDE = 28


def images(count, seed=1, side=SIDE):
    source = random.Random(seed)
    data = bytearray()
    for label in labels(count):
        picture = bytearray(source.randbytes(side * side))
        for position, value in enumerate(picture):
            picture[position] = value // 4
        for row in range(8):
            begin = (2 + 12 * (label // 5) + row) * side + 2 + 5 * (label % 5)
            picture[begin:begin + 5] = bytes([230] * 5)
        data += picture
    return bytes(data)


def labels(count):
    return bytes(number % 10 for number in range(count))


def images_file(count, seed=1):
    return struct.pack(">IIII", 2051, count, SIDE, SIDE) + images(count, seed)


def labels_file(count):
    return struct.pack(">II", 2049, count) + labels(count)


def write(folder, train=300, test=50):
    """The four files under their usual names; the folder."""
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "train-images-idx3-ubyte").write_bytes(images_file(train))
    (folder / "train-labels-idx1-ubyte").write_bytes(labels_file(train))
    (folder / "t10k-images-idx3-ubyte").write_bytes(images_file(test, seed=2))
    (folder / "t10k-labels-idx1-ubyte").write_bytes(labels_file(test))
    return folder
