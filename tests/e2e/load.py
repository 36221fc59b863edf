"""Callers under way while something happens to the platform: every request is counted, none retried."""

import collections
import http.client
import json
import threading
import time


class Load:
    """`clients` threads that ask without a pause, each on a connection of its own, until stopped."""

    def __init__(self, address, model, body, token, clients=8):
        self.answers = collections.Counter()  # (status, revision) -> count
        self.failures = []
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._args = (address, f"/v2/models/{model}/infer", json.dumps(body).encode(), token)
        self._threads = [threading.Thread(target=self._run) for _ in range(clients)]

    def __enter__(self):
        for t in self._threads:
            t.start()
        return self

    def __exit__(self, *_):
        self._stop.set()
        for t in self._threads:
            t.join()

    def reached(self, count, revision=None, seconds=60):
        """Wait until `count` requests (of `revision`) were answered."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            with self._lock:
                got = sum(n for (_, r), n in self.answers.items() if revision in (None, r))
            if got >= count:
                return
            time.sleep(0.02)
        raise AssertionError(f"only {got} of {count} requests were answered; failures: {self.failures[:3]}")

    @property
    def total(self):
        return sum(self.answers.values())

    @property
    def failed(self):
        return [*self.failures, *((k, n) for k, n in self.answers.items() if k[0] != 200)]

    def _run(self):
        address, path, body, token = self._args
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        connection = http.client.HTTPConnection(address, timeout=20)
        while not self._stop.is_set():
            try:
                connection.request("POST", path, body, headers)
                response = connection.getresponse()
                data = response.read()
                key = (response.status, json.loads(data).get("model_version"))
                with self._lock:
                    self.answers[key] += 1
            except (OSError, http.client.HTTPException, ValueError) as error:
                with self._lock:
                    self.failures.append(repr(error))
                connection.close()
        connection.close()
