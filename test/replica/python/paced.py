# Copyright The pulsar-autoscaler Authors
# SPDX-License-Identifier: Apache-2.0

"""The example function with a cost per message that is known. As the Java ones it tells a collector on localhost when each message was
published and done.

Environment: PACED_CONFIG, a JSON object with collector ("host:port"), token, serviceMicros, failEvery, and
PACED_METRICS_PORT, where this instance will serve its metrics. Not the user configuration: a function sees that with its
first message.
"""

import json
import os
import socket
import threading
import time

from work import WorkFunction


class PacedFunction(WorkFunction):
    """Made once the input is subscribed. An exception here would go unnoticed: the instance would use the class itself."""

    def __init__(self):
        config = json.loads(os.environ["PACED_CONFIG"])
        self.service = int(config["serviceMicros"]) / 1e6
        self.fail_every = int(config["failEvery"])
        self.calls = 0
        self.socket = None
        self.connected = threading.Event()
        threading.Thread(target=self.connect, args=(config,), daemon=True).start()

    def process(self, input, context):
        self.connected.wait()
        received = time.monotonic()
        output = super().process(input, context)
        self.calls += 1
        if self.fail_every > 0 and self.calls % self.fail_every == 0:
            raise RuntimeError("told to fail every %d calls" % self.fail_every)
        message = context.message  # the default SerDe may have made a number of it
        sequence = int.from_bytes(message.data()[:8], "big")
        took = (time.monotonic() - received) * 1e6
        self.send("%d %d %d %d" % (message.publish_timestamp(), time.time() * 1000, took, sequence))
        return output

    def service_time(self, context):
        return self.service

    def send(self, line):
        self.socket.sendall((line + "\n").encode())

    def connect(self, config):
        """Connects once the metrics are served, which is the last thing that an instance starts."""
        port = int(os.environ["PACED_METRICS_PORT"])
        while not listens(port):
            time.sleep(0.02)
        host, port = config["collector"].split(":")
        self.socket = socket.create_connection((host, int(port)), timeout=5)
        self.socket.settimeout(None)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.send(config["token"])
        self.connected.set()


def listens(port):
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True
