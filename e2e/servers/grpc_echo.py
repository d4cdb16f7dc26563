#!/usr/bin/env python3
"""A gRPC server on grpcio, without generated code: messages are bytes. /test.Echo/Unary sends the
message back, /test.Echo/Gather counts bytes of a stream, /test.Echo/Scatter sends the message as
many times as its first byte says, /test.Echo/Chat sends each message back as it comes, /test.Echo/
Fail ends with the status that the message names (`5 no such thing`), after as many messages as its
third word says. Every call sends the client's `x-tag` back as initial metadata and as a trailer."""

import argparse
from concurrent import futures

import grpc

words = argparse.ArgumentParser()
words.add_argument("--address", required=True)
words.add_argument("--certificate", nargs=2, default=None, help="chain and key; else clear text")
words = words.parse_args()


def tagged(context):
    tag = dict(context.invocation_metadata()).get("x-tag", "")
    context.send_initial_metadata((("x-tag", tag),))
    context.set_trailing_metadata((("x-tag", tag), ("x-bytes-bin", b"\x00\xff")))


def unary(message, context):
    tagged(context)
    return message


def gather(messages, context):
    tagged(context)
    return str(sum(len(message) for message in messages)).encode()


def scatter(message, context):
    tagged(context)
    for _ in range(message[0]):
        yield message


def chat(messages, context):
    tagged(context)
    yield from messages


def fail(message, context):
    tagged(context)
    code, count, details = message.decode().split(" ", 2)
    for _ in range(int(count)):
        yield b"before"
    status = next(status for status in grpc.StatusCode if status.value[0] == int(code))
    context.abort(status, details)


METHODS = {
    "/test.Echo/Unary": grpc.unary_unary_rpc_method_handler(unary),
    "/test.Echo/Gather": grpc.stream_unary_rpc_method_handler(gather),
    "/test.Echo/Scatter": grpc.unary_stream_rpc_method_handler(scatter),
    "/test.Echo/Chat": grpc.stream_stream_rpc_method_handler(chat),
    "/test.Echo/Fail": grpc.unary_stream_rpc_method_handler(fail),
}


class Handlers(grpc.GenericRpcHandler):
    def service(self, details):
        return METHODS.get(details.method)


server = grpc.server(futures.ThreadPoolExecutor(max_workers=16))
server.add_generic_rpc_handlers((Handlers(),))
if words.certificate:
    chain, key = (open(path, "rb").read() for path in words.certificate)
    server.add_secure_port(words.address, grpc.ssl_server_credentials([(key, chain)]))
else:
    server.add_insecure_port(words.address)
server.start()
server.wait_for_termination()
