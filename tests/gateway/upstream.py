"""A stand-in for an engine: answers the protocol's paths, counts requests, says which revision it is.

`python upstream.py REVISION HTTP_PORT GRPC_PORT` serves until it is terminated. A header steers an answer:
`x-test-delay-ms`, `x-test-status`, `x-test-error` (the `error` member of the body). `GET /count` says how many
inference requests came, `GET /last` what the last one was.
"""

# ruff: noqa: N802  (the names of the calls are the protocol's)

from __future__ import annotations

import asyncio
import json
import signal
import sys

import grpc
from tritonclient.grpc import service_pb2, service_pb2_grpc

REASONS = {200: "OK", 400: "Bad Request", 404: "Not Found", 500: "Internal Server Error", 503: "Unavailable"}


class Engine:
    def __init__(self, revision: str) -> None:
        self.revision = revision
        self.count = 0
        self.last: dict[str, object] = {}

    async def connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while await self.exchange(reader, writer):
                pass
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        method, path, _ = head[0].split(" ", 2)
        headers = {k.lower(): v.strip() for k, v in (line.split(":", 1) for line in head[1:] if line)}
        body = await self.body(reader, headers)
        status, answer = await self.respond(method, path, headers, body)
        kind = headers.get("x-test-content-type", "application/json")
        writer.write(
            f"HTTP/1.1 {status} {REASONS.get(status, 'Other')}\r\ncontent-type: {kind}\r\n"
            f"content-length: {len(answer)}\r\n\r\n".encode()
            + answer
        )
        await writer.drain()
        return True

    async def body(self, reader: asyncio.StreamReader, headers: dict[str, str]) -> bytes:
        if headers.get("transfer-encoding") != "chunked":
            return await reader.readexactly(int(headers.get("content-length", 0)))
        parts = []
        while size := int(await reader.readuntil(b"\r\n"), 16):
            parts.append(await reader.readexactly(size))
            await reader.readexactly(2)
        await reader.readexactly(2)
        return b"".join(parts)

    async def respond(self, method: str, path: str, headers: dict[str, str], body: bytes) -> tuple[int, bytes]:
        if path == "/count":
            return 200, str(self.count).encode()
        if path == "/last":
            return 200, json.dumps(self.last).encode()
        self.count += 1
        if "x-test-light" not in headers:
            self.last = {"method": method, "path": path, "headers": headers, "body": body.decode("latin-1")}
        if delay := headers.get("x-test-delay-ms"):
            await asyncio.sleep(int(delay) / 1000)
        status = int(headers.get("x-test-status", 200))
        if "x-test-error" in headers:
            return status, headers["x-test-error"].encode("latin-1")
        return status, json.dumps({"revision": self.revision, "path": path}).encode()


class Service(service_pb2_grpc.GRPCInferenceServiceServicer):
    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    async def ServerLive(self, request, context):
        return service_pb2.ServerLiveResponse(live=True)

    async def ServerReady(self, request, context):
        return service_pb2.ServerReadyResponse(ready=True)

    async def ServerMetadata(self, request, context):
        return service_pb2.ServerMetadataResponse(name=self.engine.revision)

    async def ModelReady(self, request, context):
        return service_pb2.ModelReadyResponse(ready=True)

    async def ModelMetadata(self, request, context):
        return service_pb2.ModelMetadataResponse(name=request.name, platform=self.engine.revision)

    async def ModelInfer(self, request, context):
        self.engine.count += 1
        metadata = dict(context.invocation_metadata())
        self.engine.last = {"headers": {k: v for k, v in metadata.items() if isinstance(v, str)}}
        if delay := metadata.get("x-test-delay-ms"):
            await asyncio.sleep(int(delay) / 1000)
        return service_pb2.ModelInferResponse(model_name=request.model_name, id=self.engine.revision)

    async def ModelStreamInfer(self, requests, context):
        async for request in requests:
            answer = service_pb2.ModelInferResponse(model_name=request.model_name, id=self.engine.revision)
            yield service_pb2.ModelStreamInferResponse(infer_response=answer)

    async def RepositoryIndex(self, request, context):
        return service_pb2.RepositoryIndexResponse()


async def main(revision: str, http_port: int, grpc_port: int) -> None:
    engine = Engine(revision)
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    server = await asyncio.start_server(engine.connection, "127.0.0.1", http_port, limit=1 << 20, backlog=1024)
    rpc = grpc.aio.server()
    service_pb2_grpc.add_GRPCInferenceServiceServicer_to_server(Service(engine), rpc)
    rpc.add_insecure_port(f"127.0.0.1:{grpc_port}")
    await rpc.start()
    async with server:
        await stop.wait()
    await rpc.stop(None)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
