#!/usr/bin/env python3
"""TCP streams for wire_test.sh whose bytes the sink knows.

usage: wire_traffic.py sink PORT STREAMS READY     writes the file READY once it listens; prints how many were right
       wire_traffic.py send HOST PORT STREAMS BYTES    of each stream; all at the same time
"""

import pathlib
import random
import socket
import struct
import sys
import threading

LONGEST_WAIT = 120


def content(number, count):
    return random.Random(number).randbytes(count)


def started(target, *arguments):
    thread = threading.Thread(target=target, args=arguments)
    thread.start()
    return thread


def check(connection, right):
    connection.settimeout(LONGEST_WAIT)
    received = bytearray()
    while piece := connection.recv(1 << 20):
        received += piece
    number, count = struct.unpack("!II", received[:8])
    if received[8:] == content(number, count):
        right.append(number)


def sink(port, streams, ready):
    listener = socket.create_server(("::", port), family=socket.AF_INET6, dualstack_ipv6=True, backlog=streams)
    listener.settimeout(LONGEST_WAIT)
    ready.touch()
    right = []
    threads = [started(check, listener.accept()[0], right) for _ in range(streams)]
    for thread in threads:
        thread.join()
    print(len(set(right)))


def send_one(host, port, number, count):
    with socket.create_connection((host, port), LONGEST_WAIT) as connection:
        connection.sendall(struct.pack("!II", number, count) + content(number, count))


def main():
    if sys.argv[1] == "sink":
        sink(int(sys.argv[2]), int(sys.argv[3]), pathlib.Path(sys.argv[4]))
    else:
        host, port, streams, count = sys.argv[2:6]
        for number in range(int(streams)):
            started(send_one, host, int(port), number, int(count))


if __name__ == "__main__":
    main()
