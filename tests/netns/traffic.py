#!/usr/bin/env python3
"""Plain sockets for netns_test.sh: what the network between two namespaces does to them.

usage: traffic.py sink tcp|udp PORT READY      writes the file READY once it listens; prints packets, bytes and seconds
       traffic.py send tcp|udp HOST PORT BYTES PIECE

A TCP sink ends with its first connection, a UDP sink once there is a file READY.end and nothing more to read. HOST may
have a scope (fe80::1%eth0).
"""

import pathlib
import socket
import sys
import time

LONGEST_WAIT = 30


def report(packets, count, seconds):
    print(packets, count, "%.3f" % seconds)


def sink_tcp(port, ready):
    listener = socket.create_server(("::", port), family=socket.AF_INET6, dualstack_ipv6=True)
    listener.settimeout(LONGEST_WAIT)
    ready.touch()
    connection, _ = listener.accept()
    connection.settimeout(LONGEST_WAIT)
    count, start = 0, time.monotonic()
    while piece := connection.recv(1 << 20):
        count += len(piece)
    report(1, count, time.monotonic() - start)


def sink_udp(port, ready):
    sock = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
    sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 << 20)
    sock.bind(("::", port))
    sock.settimeout(0.02)
    end = pathlib.Path(str(ready) + ".end")
    ready.touch()
    packets = count = 0
    start = time.monotonic()
    while True:
        sent = end.exists()
        try:
            count += len(sock.recv(65536))
            packets += 1
        except socket.timeout:
            if sent or time.monotonic() - start > LONGEST_WAIT:
                break
    report(packets, count, time.monotonic() - start)


def send(kind, host, port, count, piece):
    family, _, _, _, address = socket.getaddrinfo(host, port)[0]
    sock = socket.socket(family, socket.SOCK_STREAM if kind == "tcp" else socket.SOCK_DGRAM)
    sock.settimeout(LONGEST_WAIT)
    sock.connect(address)
    data = bytes(piece)
    for at in range(0, count, piece):
        sock.sendall(data[: min(piece, count - at)])
        if kind == "udp":
            time.sleep(0.00002)  # The receiver keeps up, so that only the network loses packets.
    sock.close()


def main():
    role, kind = sys.argv[1:3]
    if role == "sink":
        {"tcp": sink_tcp, "udp": sink_udp}[kind](int(sys.argv[3]), pathlib.Path(sys.argv[4]))
    else:
        host, port, count, piece = sys.argv[3:7]
        send(kind, host, int(port), int(count), int(piece))


if __name__ == "__main__":
    main()
