#!/usr/bin/env python3
"""offload.py DEVICE on|off: TCP segmentation by the device, as ethtool -K DEVICE tso, which need not be installed."""

import array
import fcntl
import socket
import struct
import sys

SIOCETHTOOL = 0x8946
ETHTOOL_STSO = 0x1F

value = array.array("B", struct.pack("II", ETHTOOL_STSO, sys.argv[2] == "on"))
request = struct.pack("16sP", sys.argv[1].encode(), value.buffer_info()[0])
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
    fcntl.ioctl(sock.fileno(), SIOCETHTOOL, request)
