#!/usr/bin/env python3
"""WebSocket clients: messages of many sizes that must come back as they were, a ping, and an
orderly close. --http 1.1 uses the websockets package; --http 2 asks by extended CONNECT (RFC 8441)
with the h2 package and speaks frames with wsproto. Prints the number of messages that came back
and the code of the close."""

import argparse
import os
import socket

words = argparse.ArgumentParser()
words.add_argument("--address", required=True)
words.add_argument("--http", choices=["1.1", "2"], required=True)
words = words.parse_args()
host, port = words.address.rsplit(":", 1)

MESSAGES = [os.urandom(size) for size in (0, 1, 125, 126, 65535, 65536, 300_000)]
MESSAGES += ["", "text", "ä" * 1000]


def over_http1():
    from websockets.sync.client import connect

    back = 0
    with connect(f"ws://{words.address}/chat", max_size=None) as client:
        client.ping().wait(10)
        for message in MESSAGES:
            client.send(message)
            assert client.recv(timeout=10) == message
            back += 1
        client.close()
        return back, client.protocol.close_code


def over_http2():
    import h2.config
    import h2.connection
    import h2.events
    import h2.settings
    import wsproto.connection
    import wsproto.events as events

    sock = socket.create_connection((host, int(port)), timeout=20)
    config = h2.config.H2Configuration(client_side=True, header_encoding="utf-8")
    conn = h2.connection.H2Connection(config)
    conn.initiate_connection()
    sock.sendall(conn.data_to_send())
    ws = wsproto.connection.Connection(wsproto.connection.ConnectionType.CLIENT)
    state = {"status": None, "ended": False, "enabled": False}

    def read():
        """Takes what comes; yields what it means to the WebSocket."""
        data = sock.recv(65536)
        assert data, "closed"
        for event in conn.receive_data(data):
            if isinstance(event, h2.events.RemoteSettingsChanged):
                code = h2.settings.SettingCodes.ENABLE_CONNECT_PROTOCOL
                changed = event.changed_settings.get(code)
                state["enabled"] |= bool(changed and changed.new_value)
            elif isinstance(event, h2.events.ResponseReceived):
                state["status"] = dict(event.headers)[":status"]
                state["fields"] = event.headers
            elif isinstance(event, h2.events.DataReceived):
                conn.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
                if event.data:
                    ws.receive_data(event.data)
            elif isinstance(event, h2.events.StreamEnded):
                state["ended"] = True
            elif isinstance(event, (h2.events.StreamReset, h2.events.ConnectionTerminated)):
                raise SystemExit(f"{event}")
        sock.sendall(conn.data_to_send())
        return list(ws.events())

    def write(data):
        while data:
            room = min(conn.local_flow_control_window(1), conn.max_outbound_frame_size, len(data))
            if room <= 0:
                pending.extend(read())
                continue
            conn.send_data(1, data[:room])
            data = data[room:]
            sock.sendall(conn.data_to_send())

    pending = []

    def next_event():
        while not pending:
            pending.extend(read())
        return pending.pop(0)

    while not state["enabled"]:
        read()
    fields = [
        (":method", "CONNECT"), (":protocol", "websocket"), (":scheme", "http"), (":path", "/chat"),
        (":authority", words.address), ("sec-websocket-version", "13"),
    ]
    conn.send_headers(1, fields)
    sock.sendall(conn.data_to_send())
    while state["status"] is None:
        read()
    assert state["status"] == "200", state
    names = [name for name, _ in state["fields"]]
    assert not {"connection", "upgrade", "sec-websocket-accept"} & set(names), names

    write(ws.send(events.Ping(b"ping")))
    assert next_event() == events.Pong(bytearray(b"ping"))
    back = 0
    for message in MESSAGES:
        kind = events.TextMessage if isinstance(message, str) else events.BytesMessage
        write(ws.send(kind(message)))
        received = message[:0]
        while True:
            event = next_event()
            received += event.data
            if event.message_finished:
                break
        assert received == message, (len(received), len(message))
        back += 1
    write(ws.send(events.CloseConnection(1000)))
    code = next_event().code
    conn.end_stream(1)
    sock.sendall(conn.data_to_send())
    while not state["ended"]:
        read()
    return back, int(code)


print(*(over_http1() if words.http == "1.1" else over_http2()))
