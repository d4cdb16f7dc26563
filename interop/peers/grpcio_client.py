"""grpcio as a client of weir.Interop."""

import pathlib
from concurrent import futures

import grpc
from google.rpc import error_details_pb2
from grpc_status import rpc_status

import cases
from cases import Failed, same

words = cases.arguments()
SCHEME, TARGET = words.base.split("://")
LIMITS = [("grpc.max_receive_message_length", 8_000_000)]
if SCHEME == "https":
    secure = grpc.ssl_channel_credentials(pathlib.Path(words.ca).read_bytes())
    channel = grpc.secure_channel(TARGET, secure, LIMITS)
else:
    channel = grpc.insecure_channel(TARGET, LIMITS)


def method(name):
    return f"/weir.Interop/{name}"


def echo(message):
    same(channel.unary_unary(method("Echo"))(message, timeout=20), message)


def failure(code, call):
    try:
        call()
    except grpc.RpcError as error:
        if error.code() == code:
            return error
        raise Failed(f"instead of {code.name}: {error.code().name} {error.details()}") from None
    raise Failed(f"success instead of {code.name}")


def down():
    got = sum(1 for _ in channel.unary_stream(method("Down"))(b"2000", timeout=20))
    if got != 2000:
        raise Failed(f"{got} messages of 2000")


def up():
    same(channel.stream_unary(method("Up"))((b"u" * 1000 for _ in range(2000)), timeout=20), b"2000000")


def bidi():
    sent = [str(n).encode() for n in range(200)]
    got = list(channel.stream_stream(method("Bidi"))(iter(sent), timeout=20))
    if got != sent:
        raise Failed(f"{len(got)} messages that differ from the {len(sent)} expected")


def deadline():
    # The clocks of client, balancer and server race, so once is not enough.
    for _ in range(5):
        failure(grpc.StatusCode.DEADLINE_EXCEEDED, lambda: channel.unary_unary(method("Sleep"))(b"5000", timeout=0.2))
    echo(b"after")


def cancel():
    call = channel.unary_stream(method("Down"))(b"1000000", timeout=20)
    next(call)
    call.cancel()
    failure(grpc.StatusCode.CANCELLED, lambda: list(call))
    echo(b"after")


def failing():
    error = failure(grpc.StatusCode.FAILED_PRECONDITION, lambda: channel.unary_unary(method("Fail"))(b"x", timeout=20))
    status = rpc_status.from_call(error)
    info = error_details_pb2.ErrorInfo()
    if status is None or status.message != "100% nö" or not status.details[0].Unpack(info) or info.reason != "INTEROP":
        raise Failed(f"status {status}")


def many(count, at):
    call = channel.unary_unary(method("Sleep"))
    with futures.ThreadPoolExecutor(at) as pool:
        results = [pool.submit(call, b"50", timeout=20) for _ in range(count)]
    failed = [one.exception() for one in results if one.exception()]
    if failed:
        raise Failed(f"{len(failed)} of {count} failed: {failed[0].code().name} {failed[0].details()}")


def goaway():
    cases.report("grpc-goaway", "started")
    many(200, 10)


cases.run(words, {
    "grpc-unary": lambda: echo(b"hello"),
    "grpc-4mb": lambda: echo(b"m" * 4_000_000),
    "grpc-server-stream": down, "grpc-client-stream": up, "grpc-bidi": bidi, "grpc-deadline": deadline,
    "grpc-cancel": cancel, "grpc-error": failing,
    "grpc-parallel-100": lambda: many(100, 100), "grpc-goaway": goaway,
})
