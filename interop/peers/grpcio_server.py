"""grpcio as a server of weir.Interop, with messages of plain bytes. SIGTERM stops it gracefully."""

import argparse
import pathlib
import signal
import threading
import time
from concurrent import futures

import grpc
from google.protobuf import any_pb2
from google.rpc import error_details_pb2, status_pb2
from grpc_status import rpc_status

words = argparse.ArgumentParser()
for word in ("clear", "tls", "chain", "key", "body"):
    words.add_argument(f"--{word}")
words = words.parse_args()


def down(request, context):
    for _ in range(int(request)):
        if not context.is_active():
            return
        yield b"d" * 1000


def sleep(request, _context):
    time.sleep(int(request) / 1000)
    return request


def fail(_request, context):
    detail = any_pb2.Any()
    detail.Pack(error_details_pb2.ErrorInfo(reason="INTEROP", domain="weir"))
    code = grpc.StatusCode.FAILED_PRECONDITION.value[0]
    context.abort_with_status(rpc_status.to_status(
        status_pb2.Status(code=code, message="100% nö", details=[detail])))


HANDLERS = {
    "Echo": grpc.unary_unary_rpc_method_handler(lambda request, context: request),
    "Down": grpc.unary_stream_rpc_method_handler(down),
    "Up": grpc.stream_unary_rpc_method_handler(lambda requests, context: str(sum(map(len, requests))).encode()),
    "Bidi": grpc.stream_stream_rpc_method_handler(lambda requests, context: (yield from requests)),
    "Sleep": grpc.unary_unary_rpc_method_handler(sleep),
    "Fail": grpc.unary_unary_rpc_method_handler(fail),
}

server = grpc.server(futures.ThreadPoolExecutor(110))
server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler("weir.Interop", HANDLERS)])
server.add_insecure_port(words.clear)
pair = (pathlib.Path(words.key).read_bytes(), pathlib.Path(words.chain).read_bytes())
server.add_secure_port(words.tls, grpc.ssl_server_credentials([pair]))
server.start()
stop = threading.Event()
signal.signal(signal.SIGTERM, lambda *_: stop.set())
stop.wait()
server.stop(5).wait()
