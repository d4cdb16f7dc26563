#!/usr/bin/env python3
"""Steady traffic that records each answer, and the judgement of what it recorded. scripts/kubernetes-outage uses both.

  traffic.py send --target NAME=ADDRESS:PORT... --host HOST... --rate N --record FILE
      Until SIGTERM, sends N requests a second for each host to each target. The target `service` gets a new connection
      for each request; the others keep one for each host, so that all its answers come from one Pod of Weir.

  traffic.py judge --record FILE --target NAME... --mark NAME=TIME... --expect HOST=OUTCOME,OUTCOME... [--converged NAME]
                   [--json FILE]
      An outcome is what comes before the first dash in the name of the Pod that answered with 200, or the status. On
      each kept connection, the outcomes of a host must be those expected, in this order; one answer out of line is an
      error. The service may give what a Pod of Weir gives at about the same time. Every other answer has failed, and so
      has a request without an answer. Exit code 1 if something is wrong.

The record has a line for each request: the time at which it ended, target, host, status or error, Pod, milliseconds.
"""

import argparse
import asyncio
import bisect
import collections
import itertools
import json
import signal
import sys
import time

ANSWER_WITHIN_S = 30
# The target that is the address of the Gateway, behind which are all Pods of Weir.
SERVICE = "service"
# How far apart two samples of the same Pod of Weir may be: the pace of a host, with room for a busy machine.
NEAR_S = 2.0


class Client:
    """Sends the requests for one host to one target."""

    def __init__(self, target, address, host, record):
        self.target, self.host, self.record = target, host, record
        self.address, self.port = address.rsplit(":", 1)
        self.streams = None

    async def run(self, first, interval):
        for number in itertools.count():
            await asyncio.sleep(max(0, first + number * interval - time.monotonic()))
            began, pod = time.monotonic(), "-"
            try:
                status, pod = await asyncio.wait_for(self.ask(), ANSWER_WITHIN_S)
            except (OSError, EOFError, ValueError, asyncio.TimeoutError) as error:
                status = type(error).__name__
                self.close()
            if self.target == SERVICE:
                self.close()
            took = (time.monotonic() - began) * 1000
            self.record.write(f"{time.time():.3f} {self.target} {self.host} {status} {pod} {took:.1f}\n")

    async def ask(self):
        if self.streams is None:
            self.streams = await asyncio.open_connection(self.address, int(self.port))
        reader, writer = self.streams
        writer.write(f"GET / HTTP/1.1\r\nHost: {self.host}\r\n\r\n".encode())
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        lines = head.split("\r\n")
        fields = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}
        await reader.readexactly(int(fields["content-length"]))
        if fields.get("connection", "").lower() == "close":
            self.close()
        return int(lines[0].split(" ")[1]), fields.get("backend", "-")

    def close(self):
        if self.streams is not None:
            self.streams[1].close()
            self.streams = None


async def send(options):
    targets = [target.split("=", 1) for target in options.target]
    interval = 1 / options.rate
    with open(options.record, "w", buffering=1, encoding="ascii") as record:
        pairs = [(target, address, host) for target, address in targets for host in options.host]
        began = time.monotonic()
        tasks = [
            asyncio.create_task(Client(*pair, record).run(began + interval * place / len(pairs), interval))
            for place, pair in enumerate(pairs)
        ]
        stopped = asyncio.Event()
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopped.set)
        end = asyncio.create_task(stopped.wait())
        done, _ = await asyncio.wait([end, *tasks], return_when=asyncio.FIRST_COMPLETED)
        # Only an error ends a client.
        for task in done - {end}:
            task.result()


Answer = collections.namedtuple("Answer", "time target host status pod took")


def outcome(answer):
    return answer.pod.split("-", 1)[0] if answer.status == "200" else answer.status


def runs(answers):
    """The outcomes in their order, each with the time of its first answer."""
    found = []
    for answer in answers:
        if not found or found[-1][0] != outcome(answer):
            found.append((outcome(answer), answer.time))
    return found


def strays(answers, others):
    """The answers of the service that no Pod of Weir gave at about the same time."""
    times = collections.defaultdict(list)
    for answer in others:
        times[outcome(answer)].append(answer.time)
    for answer in answers:
        known = times[outcome(answer)]
        place = bisect.bisect_left(known, answer.time - NEAR_S)
        if place == len(known) or known[place] > answer.time + NEAR_S:
            yield answer


def judge(options):
    marks = sorted((float(value), name) for name, value in (mark.split("=") for mark in options.mark))
    expected = {host: outcomes.split(",") for host, outcomes in (one.split("=") for one in options.expect)}
    with open(options.record, encoding="ascii") as record:
        lines = (line.split() for line in record)
        answers = [Answer(float(at), target, host, status, pod, float(took)) for at, target, host, status, pod, took in lines]
    if not answers:
        sys.exit("WRONG: there was no answer")
    by_pair = collections.defaultdict(list)
    for answer in sorted(answers):
        by_pair[answer.target, answer.host].append(answer)
    problems = []

    def mark_of(at):
        before = [mark for mark in marks if mark[0] <= at]
        return before[-1] if before else (answers[0].time, "the start")

    converged = collections.defaultdict(dict)
    for target, host in sorted(set(by_pair) - set(itertools.product(options.target, expected))):
        problems.append(f"{host} of {target} was not expected")
    for target, host in itertools.product(sorted(options.target), sorted(expected)):
        of_pair = by_pair[target, host]
        if not of_pair:
            problems.append(f"{host} of {target} has no answer")
            continue
        if target == SERVICE:
            kept = [answer for one in options.target if one != SERVICE for answer in by_pair[one, host]]
            for answer in strays(of_pair, sorted(kept)):
                problems.append(f"{host} of the service: {answer.status} of {answer.pod} {answer.time - mark_of(answer.time)[0]:.1f} s "
                                f"after {mark_of(answer.time)[1]}")
            continue
        found = runs(of_pair)
        if [one for one, _ in found] != expected[host]:
            seen = ", ".join(f"{one} {at - mark_of(at)[0]:.2f} s after {mark_of(at)[1]}" for one, at in found)
            problems.append(f"{host} of {target}: expected {', '.join(expected[host])}; found {seen}")
        for _, at in found[1:]:
            since, name = mark_of(at)
            converged[name][f"{host} {target}"] = round(at - since, 2)
    failed = [answer for answer in answers if outcome(answer) not in expected.get(answer.host, [])]
    for answer in failed[:20]:
        problems.append(f"failed: {answer.host} of {answer.target}: {answer.status} of {answer.pod}, "
                        f"{answer.time - mark_of(answer.time)[0]:.2f} s after {mark_of(answer.time)[1]}, {answer.took:.0f} ms")
    report(options, answers, failed, converged, marks, mark_of)
    for problem in problems[:60]:
        print(f"WRONG: {problem}")
    sys.exit(1 if problems else 0)


def report(options, answers, failed, converged, marks, mark_of):
    seconds = max(answers[-1].time - answers[0].time, 1)
    print(f"{len(answers)} requests in {seconds:.0f} s ({len(answers) / seconds:.0f}/s), {len(failed)} failed")
    phases = collections.defaultdict(list)
    for answer in answers:
        phases[mark_of(answer.time)[1]].append(answer.took)
    for _, name in [(0, "the start"), *marks]:
        if took := sorted(phases[name]):
            print(f"  after {name}: {len(took)} requests, p50 {took[len(took) // 2]:.0f} ms, "
                  f"p99 {took[len(took) * 99 // 100]:.0f} ms, slowest {took[-1]:.0f} ms")
    for name in options.converged:
        if waits := converged[name]:
            print(f"  changes took effect {min(waits.values()):.1f} to {max(waits.values()):.1f} s after {name}")
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"requests": len(answers), "failed": len(failed), "converged_s": converged}, file, indent=2)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    sending = commands.add_parser("send")
    sending.add_argument("--target", action="append", required=True)
    sending.add_argument("--host", action="append", required=True)
    sending.add_argument("--rate", type=float, required=True)
    sending.add_argument("--record", required=True)
    judging = commands.add_parser("judge")
    judging.add_argument("--record", required=True)
    judging.add_argument("--target", action="append", required=True)
    judging.add_argument("--mark", action="append", default=[])
    judging.add_argument("--expect", action="append", required=True)
    judging.add_argument("--converged", action="append", default=[])
    judging.add_argument("--json")
    options = parser.parse_args()
    if options.command == "send":
        asyncio.run(send(options))
    else:
        judge(options)


main()
