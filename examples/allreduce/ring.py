"""A ring all-reduce with nothing but Python's standard library.

Every worker starts with a vector of its own and ends with the sum of all of them. It knows only what every distributed
program is told: RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT. Rank 0 listens there, hears from everybody which port it
listens on, and tells all of them; then each talks to its right-hand neighbour only. A worker that never comes would keep
all others waiting in the first line of `rendezvous`, which is why they are started together or not at all.
"""

import array
import os
import socket
import struct
import sys
import threading
import time

RANK = int(os.environ["RANK"])
SIZE = int(os.environ["WORLD_SIZE"])
MASTER = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
PATIENCE = 60.0
LENGTH = 1 << 16


def receive(link, count):
    """Exactly so many bytes."""
    parts = []
    while count:
        part = link.recv(min(count, 1 << 20))
        if not part:
            raise ConnectionError("the other side is gone")
        parts.append(part)
        count -= len(part)
    return b"".join(parts)


def meet():
    """The socket of rank 0, for everybody else; it may take a moment to be there."""
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            return socket.create_connection(MASTER, timeout=PATIENCE)
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.01)


def rendezvous(port):
    """The port of every rank."""
    if RANK != 0:
        with meet() as link:
            link.sendall(struct.pack("!II", RANK, port))
            return struct.unpack(f"!{SIZE}I", receive(link, 4 * SIZE))
    ports, links = [0] * SIZE, []
    ports[0] = port
    with socket.create_server(MASTER, backlog=SIZE) as door:
        door.settimeout(PATIENCE)
        while len(links) < SIZE - 1:
            link, _ = door.accept()
            rank, theirs = struct.unpack("!II", receive(link, 8))
            ports[rank] = theirs
            links.append(link)
    for link in links:
        link.sendall(struct.pack(f"!{SIZE}I", *ports))
        link.close()
    return tuple(ports)


def exchange(right, left, chunk):
    """Sends a chunk to the right and gets one from the left, both at once: a ring of senders must not wait for itself."""
    sender = threading.Thread(target=right.sendall, args=(chunk.tobytes(),))
    sender.start()
    got = array.array("q")
    got.frombytes(receive(left, LENGTH // SIZE * 8))
    sender.join()
    return got


def all_reduce(vector, right, left):
    """Adds up the vectors of all ranks in 2 * (SIZE - 1) steps, in each of which a part of 1 / SIZE goes around."""
    width = LENGTH // SIZE
    chunks = [vector[at * width:(at + 1) * width] for at in range(SIZE)]
    for step in range(SIZE - 1):
        got = exchange(right, left, chunks[(RANK - step) % SIZE])
        mine = chunks[(RANK - step - 1) % SIZE]
        for at, value in enumerate(got):
            mine[at] += value
    for step in range(SIZE - 1):
        chunks[(RANK - step) % SIZE] = exchange(right, left, chunks[(RANK + 1 - step) % SIZE])
    whole = array.array("q")
    for chunk in chunks:
        whole.extend(chunk)
    return whole


def main():
    door = socket.create_server(("127.0.0.1", 0), backlog=1)
    door.settimeout(PATIENCE)
    ports = rendezvous(door.getsockname()[1])
    right = socket.create_connection(("127.0.0.1", ports[(RANK + 1) % SIZE]), timeout=PATIENCE)
    left, _ = door.accept()
    right.settimeout(PATIENCE)
    left.settimeout(PATIENCE)
    began = time.monotonic()
    vector = array.array("q", ((RANK + 1) * at for at in range(LENGTH)))
    total = all_reduce(vector, right, left)
    factor = SIZE * (SIZE + 1) // 2
    right_sum = all(value == factor * at for at, value in enumerate(total))
    took = (time.monotonic() - began) * 1000
    node, verdict = os.environ.get("MUSTER_NODE", "?"), "right" if right_sum else "WRONG"
    print(f"rank {RANK} of {SIZE} on {node}: the sum of {LENGTH} numbers is {verdict}, {took:.0f} ms", flush=True)
    time.sleep(float(os.environ.get("TRAIN_SECONDS", "0")))
    sys.exit(0 if right_sum else 1)


if __name__ == "__main__":
    main()
