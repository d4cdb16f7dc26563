#!/usr/bin/env python3
"""gRPC calls on grpcio to `servers/grpc_echo.py`: every kind of call, statuses and metadata, then
--calls in all, most of them unary ones at once. Prints `calls N failed 0`, or ends at the first
thing that is not as it should be."""

import argparse
import os
import threading

import grpc

words = argparse.ArgumentParser()
words.add_argument("--address", required=True)
words.add_argument("--ca", default=None, help="speak TLS, with a.example.com; else clear text")
words.add_argument("--calls", type=int, default=1000)
words = words.parse_args()

if words.ca:
    credentials = grpc.ssl_channel_credentials(open(words.ca, "rb").read())
    options = [("grpc.ssl_target_name_override", "a.example.com")]
    channel = grpc.secure_channel(words.address, credentials, options)
else:
    channel = grpc.insecure_channel(words.address)
PATIENCE_S = 20

unary = channel.unary_unary("/test.Echo/Unary")
gather = channel.stream_unary("/test.Echo/Gather")
scatter = channel.unary_stream("/test.Echo/Scatter")
chat = channel.stream_stream("/test.Echo/Chat")
fail = channel.unary_stream("/test.Echo/Fail")
unknown = channel.unary_unary("/test.Echo/Unknown")


def kinds(tag):
    """One call of each kind; yields how many there were."""
    metadata = (("x-tag", tag),)
    options = {"metadata": metadata, "timeout": PATIENCE_S}
    message = os.urandom(2000)
    answer, call = unary.with_call(message, **options)
    assert answer == message
    assert dict(call.initial_metadata())["x-tag"] == tag
    trailers = dict(call.trailing_metadata())
    assert (trailers["x-tag"], trailers["x-bytes-bin"]) == (tag, b"\x00\xff"), trailers
    assert gather(iter([message] * 50), **options) == b"100000"
    large = os.urandom(1_000_000)
    assert unary(large, **options) == large
    assert list(scatter(b"\x14" + message, **options)) == [b"\x14" + message] * 20
    assert list(scatter(b"\x00", **options)) == []

    # Each message waits for the answer to the one before: nothing may be held back.
    answers, turn = [], threading.Semaphore(1)

    def talk():
        for number in range(20):
            assert turn.acquire(timeout=PATIENCE_S)
            yield b"%d" % number

    for answer in chat(talk(), **options):
        answers.append(int(answer))
        turn.release()
    assert answers == list(range(20)), answers

    for code, count in ((5, 0), (5, 3), (16, 0), (13, 1)):
        details = f"no such thing: {tag} ä%"
        call = fail(f"{code} {count} {details}".encode(), **options)
        seen = []
        try:
            for message in call:
                seen.append(message)
            raise SystemExit("no failure")
        except grpc.RpcError as error:
            assert error.code().value[0] == code, error
            assert error.details() == details, error
            assert dict(error.trailing_metadata())["x-tag"] == tag, error
        assert seen == [b"before"] * count, seen
    try:
        unknown(b"", **options)
        raise SystemExit("no failure")
    except grpc.RpcError as error:
        assert error.code() == grpc.StatusCode.UNIMPLEMENTED, error
    return 11


calls = sum(kinds(f"tag-{number}") for number in range(10))
failed = 0
room = threading.Semaphore(200)
done = []


def ended(call):
    done.append(call.code())
    room.release()


left = max(0, words.calls - calls)
for number in range(left):
    room.acquire()
    call = unary.future(b"%d" % number, timeout=PATIENCE_S)
    call.add_done_callback(ended)
for _ in range(200):
    room.acquire()
failed = sum(code is not grpc.StatusCode.OK for code in done)
print("calls", calls + left, "failed", failed, *{str(code) for code in done})
channel.close()
