#!/usr/bin/env python3
"""Writes the seeds of the fuzz targets: valid bytes of every kind, and every fault that the format knows.

usage: make_corpus.py [DIR]     DIR defaults to the corpus next to this script; files with other names stay

The layouts are those of net_socket/wire.h and, for the chunk stream, of the steps in chunk_stream_fuzz.cc.
"""

import pathlib
import struct
import sys

CHUNK, CREDIT, UNSENT, BYE, ERROR, ESTABLISHED, LEFT = 1, 64, 65, 66, 67, 69, 70
WAITS, CLOCK, UNKNOWN = 76, 77, 200


def hello(magic=b"TCPX", version=1, lane=0, lanes=1, traffic_class=-1, features=0, express=65536, kind=0, attempt=0):
    """64 bytes, the first on every lane."""
    ticket, connection = bytes(range(16)), bytes(range(240, 256))
    head = magic + struct.pack("<HHHHi", version, lane, lanes, kind, traffic_class)
    return head + ticket + connection + struct.pack("<QII", features, express, attempt)


def address(family=4, port=4410, host=bytes([10, 1, 2, 3]), scope=0):
    """24 bytes, in network order."""
    return struct.pack(">HHI", family, port, scope) + host.ljust(16, b"\0")


V6 = address(family=6, host=bytes.fromhex("fd000000000000000000000000000001"))
LINK_LOCAL = address(family=6, host=bytes.fromhex("fe800000000000000000000000000001"), scope=2)


def handle(magic=b"XPCT", version=1, where=address(), other_nics=0, other=bytes(24)):
    """The 80 bytes that a handle uses."""
    first = magic + struct.pack("<HH", version, 1) + where + bytes(range(160, 176))
    return first + struct.pack("<H6x", other_nics) + other


def answer(magic=b"TCPr", version=1, status=0, receives=1, count=None, features=0, addresses=(), taken=0):
    """A fixed part of 32 bytes, then the interfaces: an address, a speed, and four bytes for later."""
    count = len(addresses) if count is None else count
    fixed = magic + struct.pack("<HHIIQQ", version, status, receives, count, features, taken)
    return fixed + b"".join(at + struct.pack("<I4x", 10000) for at in addresses)


def header(kind, length=0, sequence=0, offset=0, message_bytes=0, padding=0, tag=0):
    """The 64 bytes before a payload or a body."""
    return struct.pack("<BxHIQQQi28x", kind, padding, length, sequence, offset, message_bytes, tag)


def record(kind, body=b"", padding=0):
    """A whole record."""
    return header(kind, len(body), padding=padding) + body + b"p" * padding


def hellos():
    """Seeds of hello_fuzz."""
    return {
        "one_lane": hello(),
        "last_of_64_lanes": hello(lane=63, lanes=64, traffic_class=184, features=2**64 - 1),
        "resume": hello(kind=2, lane=3, lanes=4, features=5, express=2**32 - 1, attempt=7),
        "lane_out_of_range": hello(lane=64, lanes=64),
        "no_lanes": hello(lanes=0),
        "other_version": hello(version=77),
        "traffic_class_out_of_range": hello(traffic_class=0x7FFFFFFF),
        "all_ones": b"TCPX" + b"\xff" * 60,
        "half": hello()[:31],
        "only_the_magic": b"TCPX",
        "http": b"GET / HTTP/1.1\r\nHost: 10.1.2.3:4410\r\nUser-Agent: curl/7.88\r\n\r\n",
        "tls": bytes.fromhex("16030100f0010000ec0303") + bytes(range(53)),
        "empty": b"",
    }


def handles():
    """Seeds of handle_fuzz."""
    return {
        "v4": handle(),
        "v6": handle(where=V6),
        "link_local": handle(where=LINK_LOCAL),
        "both_families": handle(other_nics=1, other=V6),
        "v6_first": handle(where=V6, other_nics=8, other=address()),
        "same_family_twice": handle(other_nics=1, other=address()),
        "too_many_others": handle(other_nics=9, other=V6),
        "no_port": handle(where=address(port=0)),
        "unknown_family": handle(where=address(family=5)),
        "other_version": handle(version=2),
        "of_another_plugin": bytes(range(48)),
        "zeros": bytes(48),
        "half": handle()[:20],
    }


def answers():
    """Seeds of answer_fuzz."""
    seeds = {"status_%d" % status: answer(status=status) for status in list(range(13)) + [999]}
    seeds.update({
        "resumed": answer(features=5, taken=2**64 - 1),
        "one_address": answer(addresses=[address()]),
        "eight_addresses": answer(receives=8, addresses=[address(), V6, LINK_LOCAL, V6] * 2),
        "malformed_address": answer(addresses=[address(family=9), address()]),
        "an_address_is_missing": answer(count=2, addresses=[address()]),
        "nine_addresses": answer(count=9, addresses=[address()] * 9),
        "enormous_count": answer(count=2**32 - 1),
        "no_receives": answer(receives=0),
        "too_many_receives": answer(receives=2**32 - 1),
        "wrong_magic": answer(magic=b"TCPX"),
        "other_version": answer(version=2, status=1),
        "half": answer()[:15],
    })
    return seeds


def waits(who=b"node7 pid 4711 (rank 3)", cause=2, chain=(b"node8 pid 1",)):
    """What an end waits for (message/health_records.h)."""
    def text(value):
        return bytes([len(value)]) + value

    root = struct.pack("<BQIq", cause, 77, 5, -3) + text(b"node8 pid 1") + text(b"its receive is not posted")
    links = bytes([len(chain)]) + b"".join(text(link) for link in chain)
    return bytes([1, 1]) + text(who) + struct.pack("<IQIB", 4, 2**40, 12345, 33) + root + links


def records():
    """Seeds of records_fuzz: two bytes of split points, then the stream."""
    streams = {
        "every_kind": record(CREDIT, bytes(16), 9) + record(UNSENT) + record(UNKNOWN, b"x" * 70) + record(BYE),
        "error": record(UNSENT, bytes(8)) + record(ERROR, b"out of luck", 5),
        "waits": record(WAITS, bytes(16) + waits()) + record(WAITS, bytes(16)) + record(WAITS, bytes(15)),
        "clock": b"".join(
            record(CLOCK, bytes(16) + b"\1" + struct.pack("<qqq", *times) + who + b"\0") for times, who in (
                ((5, 0, 0), b""), ((5, 7, 9), b"node7/4711/ab"), ((5, 2**62, 2**63 - 1), b"x"), ((5, 9, 7), b"x"),
                ((0, 1, 2), b"x"))),
        "left": record(LEFT, bytes(16)) + record(LEFT, bytes(15)),
        "error_without_text": record(ERROR),
        "error_with_control_characters": record(ERROR, b"a\nNCCL WARN forged\x1b[2J\xff"),
        "error_of_64_kib": header(ERROR, 65536) + b"e" * 2000,
        "long_error": record(ERROR, b"e" * 1500),
        "error_with_padding": record(ERROR, b"text", 200),
        "record_too_long": header(BYE, 65537),
        "enormous_record": header(UNKNOWN, 2**32 - 1, padding=65535),
        "a_chunk": header(CHUNK, 4, message_bytes=4) + b"abcd",
        "unknown_kind": b"\x20" * 64,
        "kind_0": bytes(64),
        "half_a_header": record(BYE)[:40],
        "half_a_body": record(CREDIT, bytes(64))[:100],
        "after_the_error": record(ERROR, b"first") + record(ERROR, b"second"),
        "established_where_it_means_nothing": record(ESTABLISHED) + record(ESTABLISHED, b"x", 3) + record(BYE),
    }
    seeds = {}
    for name, stream in streams.items():
        seeds[name] = bytes([len(name), 63]) + stream
    seeds["every_kind_byte_by_byte"] = bytes([0, 0]) + streams["every_kind"]
    return seeds


def handshakes():
    """Seeds of handshake_fuzz: a byte that says who reads, with a secret or not, and how much at once; then bytes."""
    nonce, mac = bytes(range(32)), bytes(range(100, 132))
    secret = 2
    sealed = secret | 64 | 1024
    challenge = answer(status=8, features=secret) + nonce
    accepts = {
        "hello": hello(),
        "hello_with_secret": hello(features=secret),
        "hello_and_a_wrong_proof": hello(features=secret) + nonce + mac,
        "half_a_proof": hello(features=secret) + nonce,
        "hello_of_another_version": hello(version=9, features=secret),
        "hello_encrypted": hello(features=sealed),
        "hello_encrypted_and_a_wrong_proof": hello(features=sealed) + nonce + mac,
        "hello_encrypted_and_no_key": hello(features=sealed) + bytes(32) + mac,
        "hello_encrypted_without_a_cipher": hello(features=secret | 64),
        "http": b"GET / HTTP/1.1\r\n\r\n",
    }
    dials = {
        "answer": answer(addresses=[address(), V6]),
        "answer_without_interfaces": answer(),
        "challenge": challenge,
        "challenge_and_answer_with_a_wrong_mac": challenge + answer(addresses=[address()], features=secret) + mac,
        "challenge_and_eight_interfaces": challenge + answer(addresses=[address()] * 8) + mac,
        "challenge_encrypted": answer(status=8, features=sealed) + nonce,
        "challenge_encrypted_and_a_wrong_mac": answer(status=8, features=sealed) + nonce + answer() + mac,
        "challenge_encrypted_and_no_key": answer(status=8, features=sealed) + bytes(32) + answer() + mac,
        "challenge_encrypted_of_two_ciphers": answer(status=8, features=sealed | 512) + nonce,
        "challenge_twice": challenge + challenge,
        "challenge_and_a_refusal": challenge + answer(status=11),
        "refusal": answer(status=9),
        "refusal_with_interfaces": answer(status=9, addresses=[address()]),
        "half_a_nonce": challenge[:50],
    }
    seeds = {}
    for dial, streams in ((0, accepts), (2, dials)):
        for name, stream in streams.items():
            seeds["%s_%s" % ("to_dialler" if dial else "to_acceptor", name)] = bytes([dial | 1 | 63 << 2]) + stream
            seeds["%s_%s_no_secret" % ("to_dialler" if dial else "to_acceptor", name)] = bytes([dial | 6 << 2]) + stream
    return seeds


STAGED, FOR_FLAG_LINES, FLAG_LINES = 1, 8, 256


class Steps:
    """Writes steps of chunk_stream_fuzz."""

    def __init__(self, staging=0, lanes=1):
        """`staging`: a sum of STAGED, FLAG_LINES and FOR_FLAG_LINES."""
        self.bytes = bytes([(staging & (STAGED | FOR_FLAG_LINES)) | (lanes - 1) << 1])
        self.post_variant = 1 if staging & FLAG_LINES else 0

    def add(self, what, lane=0, variant=0, body=b""):
        self.bytes += bytes([what | lane << 3 | variant << 5]) + body
        return self

    def post(self, *capacities):
        for capacity in capacities:
            self.add(0, variant=self.post_variant, body=struct.pack("<H", capacity))
        return self

    def read(self, most, lane=0):
        return self.add(1, lane, body=bytes([most]))

    def read_all(self, lane=0):
        return self.add(2, lane)

    def nothing(self, lane=0):
        return self.add(3, lane)

    def end(self, lane=0):
        return self.add(4, lane)

    def frame(self, kind=CHUNK, length=0, offset=0, message=None, ago=0, padding=0, lane=0, body=True):
        """`ago` counts back from the next receive to post; `message` defaults to a whole one."""
        message = length if message is None else message
        packed = struct.pack("<BBbHHH", kind, padding, -ago, length, offset, message)
        return self.add(5, lane, 0 if body else 1, packed)

    def raw(self, data, lane=0):
        for at in range(0, len(data), 255):
            part = data[at : at + 255]
            self.add(6, lane, body=bytes([len(part)]) + part)
        return self

    def test(self):
        return self.add(7)


def good_streams(staging):
    """Streams without a fault, for each kind of staging."""
    def steps(lanes=1):
        return Steps(staging, lanes)

    kinds = steps().post(5, 0, 100, 300)
    kinds.frame(length=5, ago=4).frame(ago=3, padding=200).frame(length=100, ago=2, padding=37)
    kinds.frame(CREDIT, 16, padding=9).frame(UNSENT).frame(UNKNOWN, 21)
    kinds.frame(length=128, message=300, ago=1).frame(length=172, offset=128, message=300, ago=1).frame(BYE)
    byte_by_byte = steps().post(20).frame(length=7, ago=1, padding=3).frame(UNSENT, 5)
    for _ in range(130):
        byte_by_byte.read(1)
    parked = steps().frame(length=64).frame(length=10, ago=-1).read_all().post(64).nothing().test().post(10).read_all()
    reused = steps()
    for i in range(12):
        reused.post(i * 3).frame(length=i, ago=1).read(70).read_all().test()
    # A sequence never decreases on a lane: the second message of a lane comes after the first.
    striped = steps(3).post(1000, 2000)
    for i in range(5):
        striped.frame(length=200, offset=200 * i, message=1000, ago=2, lane=i % 3)
    for i in range(5):
        striped.frame(length=400, offset=400 * i, message=2000, ago=1, lane=i % 3)
    for lane in (2, 0, 1, 0, 2):
        striped.read(250, lane)
    for lane in range(3):
        striped.read_all(lane).end(lane)
    return {
        "every_kind": kinds.read_all().test().end(),
        "byte_by_byte": byte_by_byte.test(),
        "parked": parked.test().end(),
        "slots_come_round": reused.end(),
        "striped": striped.test(),
        "large": steps().post(65535, 100).frame(length=65535, ago=2).frame(length=100, ago=1).read_all().test(),
        "nothing_comes": steps().nothing().post(10).frame(length=10, ago=1).read(30).nothing().read(40).nothing(),
        "smaller_than_posted": steps().post(1000, 1000).frame(length=1, ago=2).frame(ago=1).read_all().test(),
        "two_lanes_one_slot": steps(2).post(8, 8, 8, 8).frame(length=8, ago=4).read_all().test().post(9)
                           .frame(length=9, ago=1, lane=1).read_all(1).test(),
    }


def bad_streams(staging):
    """What a peer may get wrong, for each kind of staging."""
    def steps(lanes=1):
        return Steps(staging, lanes).post(100, 100)

    def chunk(**fields):
        return header(CHUNK, **fields)

    seeds = {
        "too_large": steps().frame(length=101, ago=2),
        "repeat": steps().frame(length=100, ago=2).frame(length=100, ago=2),
        "overlap": steps().frame(length=60, message=100, ago=2).frame(length=40, offset=40, message=100, ago=2),
        "overlap_past_the_sum":
            steps().frame(length=60, message=100, ago=2).frame(length=60, offset=40, message=100, ago=2),
        "two_sizes": steps().frame(length=60, message=100, ago=1).frame(length=10, offset=60, message=90, ago=1),
        "stale": steps().post(1, 1).frame(length=9, ago=4).read_all().test().post(1).frame(length=9, ago=5),
        "far_ahead": steps().raw(chunk(length=1, sequence=2**64 - 1, message_bytes=1)),
        "shares_low_bits": steps().raw(chunk(length=1, sequence=2**23, message_bytes=1)).post(5, 5),
        "garbage": steps().raw(b"\x02" * 200),
        "kind_0": steps().raw(bytes(64)),
        "empty_chunk": steps().frame(length=0, offset=50, message=100, ago=2),
        "offset_that_wraps": steps().raw(chunk(length=100, offset=2**64 - 50, message_bytes=200)),
        "past_the_end": steps().frame(length=100, offset=1, message=100, ago=2),
        "message_too_large": steps().raw(chunk(length=1, message_bytes=2**40 + 1)),
        "chunk_too_large": steps().raw(chunk(length=2**30 + 1, message_bytes=2**40)),
        "largest_chunk": steps().raw(chunk(length=2**30, message_bytes=2**40)),
        "enormous_length": steps().raw(chunk(length=2**32 - 1, message_bytes=2**64 - 1, padding=65535)),
        "record_too_long": steps().raw(header(BYE, 65537)),
        "error_record": steps().frame(ERROR, 30, padding=5),
        "error_with_control_characters": steps().raw(record(ERROR, b"a\nNCCL WARN forged\x1b[2J\xff")),
        "error_without_text": steps().frame(ERROR),
        "error_of_many_parts": steps().frame(ERROR, 2000).read(255).read(255),
        "ends_in_a_header": steps().frame(length=100, ago=2).read(40).end(),
        "ends_in_a_payload": steps().frame(length=100, ago=2).read(100).end(),
        "ends_in_padding": steps().frame(length=10, ago=2, padding=90).read(100).end(),
        "ends_in_a_record": steps().frame(CREDIT, 64, body=False).read_all().end(),
    }
    lanes = steps(2).frame(length=60, message=100, ago=2).frame(length=40, message=100, ago=2, lane=1)
    seeds["overlap_between_lanes"] = lanes.read_all(1).test().read_all(0)
    lanes = steps(2).frame(length=100, ago=2).frame(length=50, offset=100, message=300, ago=2, lane=1)
    seeds["two_sizes_between_lanes"] = lanes.read(80).read_all(1).read_all(0).test()
    lanes = steps(2).frame(length=50, message=100, ago=2).frame(length=50, message=100, ago=1, lane=1)
    seeds["one_lane_fails"] = lanes.raw(b"\0" * 64).read_all(0).read_all(1).frame(
        length=50, offset=50, message=100, ago=1, lane=1).read_all(1).test()
    return {name: seed.read_all() for name, seed in seeds.items()}


def chunk_streams():
    """Seeds of chunk_stream_fuzz."""
    seeds = {}
    ways = {
        "header_only": 0,
        "staged": STAGED,
        "flag_lines": STAGED | FLAG_LINES,
        "flag_lines_on_a_bulk_lane": STAGED | FLAG_LINES | FOR_FLAG_LINES,
    }
    for suffix, staging in ways.items():
        for name, steps in {**good_streams(staging), **bad_streams(staging)}.items():
            seeds["%s_%s" % (name, suffix)] = steps.bytes
    return seeds


def openers():
    """Seeds of opener_fuzz: step, order of the records, place, what is changed, and bytes of somebody's own."""
    lengths = {"zero": 0, "one": 1, "longest": 65536, "too_long": 65537, "enormous": 2**32 - 1}
    seeds = {"untouched": struct.pack("<BBHB", 255, 0, 0, 0), "byte_by_byte": struct.pack("<BBHB", 0, 0, 0, 0)}
    for name, order in {"begins_late": 1, "other_order": 32, "last_first": 4}.items():
        seeds[name] = struct.pack("<BBHB", 99, order, 0, 0)
    for name, length in lengths.items():
        seeds["length_" + name] = struct.pack("<BBHBI", 30, 0, 0, 2, length) + b"x" * 200
        seeds["put_in_" + name] = struct.pack("<BBHBI", 30, 0, 23, 1, length) + b"x" * 20
    for at in (0, 3, 4, 22, 23, 24, 100, 826):
        seeds["changed_%d" % at] = struct.pack("<BBHB", 7, 0, at, 3) + b"\x80"
        seeds["cut_%d" % at] = struct.pack("<BBHB", 7, 0, at, 4)
    return seeds


RMA_HELLO, RMA_PUT, RMA_GET, RMA_GOTTEN, RMA_BYE = range(1, 6)
RMA_FOLLOWS, RMA_SIGNAL, RMA_STRONG = 1, 2, 4


def rma(kind, flags=0, context=0, region=0, signal_region=1, offset=0, size=None, signal_offset=0, add=1, token=0,
        body=b""):
    """A record of a batch (rma/record.h), with its payload where that does not follow."""
    size = len(body) if size is None else size
    fields = struct.pack("<BBHIIIQQQQQ", kind, flags, 0, context, region, signal_region, offset, size, signal_offset,
                         add, token)
    return fields + body + bytes(-len(body) % 8)


def rma_message(content, late=False):
    return struct.pack("<H", len(content) | (0x8000 if late else 0)) + content


def rma_batches():
    """Seeds of rma_batch_fuzz: whether the hello is there, then messages: length, whether its end comes late, bytes."""
    hello = rma(RMA_HELLO, size=2, token=1)
    put, signal = rma(RMA_PUT, body=b"payload"), rma(RMA_PUT, RMA_SIGNAL | RMA_STRONG, size=0)
    announced = rma(RMA_PUT, RMA_FOLLOWS | RMA_SIGNAL, size=100, signal_offset=8)
    far = 2**64 - 4
    streams = {
        "puts_and_signals": [put + signal, rma(RMA_PUT, RMA_SIGNAL, offset=4090, body=b"ending")],
        "a_strong_signal_waits": [announced + signal, (b"p" * 100, True), put],
        "many_follow": [announced * 5 + signal] + [(b"%d" % i * 100, i % 2 == 0) for i in range(5)],
        "get": [rma(RMA_GET, size=64, token=3)],
        "gotten": [rma(RMA_GOTTEN, token=7, body=b"x" * 32)],
        "gotten_that_follows": [rma(RMA_GOTTEN, RMA_FOLLOWS, token=7, size=32), b"y" * 32],
        "gotten_twice": [rma(RMA_GOTTEN, token=7, body=b"x" * 32) * 2],
        "gotten_of_another_size": [rma(RMA_GOTTEN, token=7, body=b"x" * 40)],
        "bye": [rma(RMA_BYE), put],
        "put_beyond": [rma(RMA_PUT, offset=4092, body=b"beyond")],
        "put_that_wraps": [rma(RMA_PUT, offset=far, body=b"wrapping")],
        "put_elsewhere": [rma(RMA_PUT, region=9, body=b"nowhere")],
        "enormous_put": [rma(RMA_PUT, RMA_FOLLOWS, size=2**64 - 1)],
        "enormous_put_in_the_batch": [rma(RMA_PUT, size=2**64 - 7)],
        "signal_beyond": [rma(RMA_PUT, RMA_SIGNAL, size=0, signal_offset=64)],
        "signal_that_wraps": [rma(RMA_PUT, RMA_SIGNAL, size=0, signal_offset=far)],
        "odd_signal": [rma(RMA_PUT, RMA_SIGNAL, size=0, signal_offset=4)],
        "signal_elsewhere": [rma(RMA_PUT, RMA_SIGNAL, size=0, signal_region=2**32 - 1)],
        "payload_too_small": [announced, b"short"],
        "payload_too_large": [announced, b"l" * 500],
        "nothing_follows": [announced],
        "follows_where_it_can_not": [rma(RMA_GET, RMA_FOLLOWS, size=8), rma(RMA_PUT, RMA_FOLLOWS, size=0)],
        "half_a_record": [put[:30]],
        "half_a_payload": [put[:-4]],
        "kind_0": [bytes(56)],
        "unknown_flags": [rma(RMA_PUT, 0x80, size=0)],
        "second_hello": [hello],
        "empty": [b""],
    }
    seeds = {}
    for name, messages in streams.items():
        parts = [rma_message(*one) if isinstance(one, tuple) else rma_message(one) for one in messages]
        seeds[name] = b"\1" + b"".join(parts)
    seeds["without_a_hello"] = b"\0" + rma_message(put)
    seeds["own_hello"] = b"\0" + rma_message(hello + put + signal)
    seeds["garbage"] = b"\0" + rma_message(b"\xff" * 200)
    return seeds


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent / "corpus")
    kinds = {
        "hello": hellos,
        "handle": handles,
        "handshake": handshakes,
        "answer": answers,
        "records": records,
        "opener": openers,
        "chunk_stream": chunk_streams,
        "rma_batch": rma_batches,
    }
    for kind, seeds in kinds.items():
        (root / kind).mkdir(parents=True, exist_ok=True)
        for name, data in seeds().items():
            (root / kind / name).write_bytes(data)


if __name__ == "__main__":
    main()
