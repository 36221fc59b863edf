"""The Open Inference Protocol, spoken by the clients people have."""

import subprocess
from pathlib import Path

import numpy as np
import psutil
import pytest
import tritonclient.grpc as grpcclient
import tritonclient.http as httpclient
from tritonclient.utils import InferenceServerException

from taxiway.catalog import store
from taxiway.core.revision import Revision

pytestmark = pytest.mark.processes


@pytest.fixture
def rows(live):
    golden = store.load(live.platform.places.catalog, Revision("risk", 1)).golden()[0]
    tensor = golden.inputs["X"]
    return np.array(tensor.data, np.float32).reshape(tensor.shape), golden.outputs["probabilities"].data


@pytest.fixture
def bearer(token):
    return {"authorization": f"Bearer {token}"}


@pytest.mark.parametrize("binary", [True, False])
@pytest.mark.parametrize("compression", [None, "gzip"])
def test_tritons_http_client_works_unchanged(live, rows, bearer, binary, compression):
    X, expected = rows
    client = httpclient.InferenceServerClient(live.platform.address)
    tensor = httpclient.InferInput("X", list(X.shape), "FP32")
    tensor.set_data_from_numpy(X, binary_data=binary)
    wanted = [httpclient.InferRequestedOutput("probabilities", binary_data=binary)]
    result = client.infer("risk", [tensor], outputs=wanted, headers=bearer, request_compression_algorithm=compression)
    assert result.as_numpy("probabilities").ravel() == pytest.approx(expected, abs=1e-5)
    assert client.is_server_live()
    assert client.is_server_ready()
    assert client.is_model_ready("risk", headers=bearer)
    assert client.get_model_metadata("risk", headers=bearer)["inputs"][0]["shape"] == [-1, X.shape[1]]
    assert client.get_server_metadata(headers=bearer)["name"]
    client.close()


def test_tritons_grpc_client_works_unchanged(live, rows, bearer):
    X, expected = rows
    client = grpcclient.InferenceServerClient(live.platform.address)
    tensor = grpcclient.InferInput("X", list(X.shape), "FP32")
    tensor.set_data_from_numpy(X)
    result = client.infer("risk", [tensor], headers=bearer)
    assert result.as_numpy("probabilities").ravel() == pytest.approx(expected, abs=1e-5)
    assert result.get_response().model_version == "1"
    assert client.is_server_live()
    assert client.is_server_ready()
    assert client.is_model_ready("risk", headers=bearer)
    assert client.get_model_metadata("risk", headers=bearer).name == "risk"
    assert client.get_server_metadata(headers=bearer).name
    client.close()


def test_grpc_and_rest_are_split_alike(live, rows, bearer):
    live.taxiway("traffic", "risk", "2=100")
    X, _ = rows
    client = grpcclient.InferenceServerClient(live.platform.address)
    tensor = grpcclient.InferInput("X", list(X.shape), "FP32")
    tensor.set_data_from_numpy(X)
    assert client.infer("risk", [tensor], headers=bearer).get_response().model_version == "2"
    client.close()


def test_tritons_clients_get_errors_they_understand(live, bearer):
    http, grpc = (m.InferenceServerClient(live.platform.address) for m in (httpclient, grpcclient))
    for module, client in ((httpclient, http), (grpcclient, grpc)):
        tensor = module.InferInput("X", [1, 3], "FP32")
        tensor.set_data_from_numpy(np.zeros((1, 3), np.float32))
        with pytest.raises(InferenceServerException, match=r"\[-1,30\]|\[1,3\]|expected|shape"):
            client.infer("risk", [tensor], headers=dict(bearer))
        with pytest.raises(InferenceServerException, match=r"(?i)jwt|token"):
            client.infer("risk", [tensor])
        with pytest.raises(InferenceServerException, match=r"nobody|unknown|not found|(?i:unimplemented)"):
            client.infer("nobody", [tensor], headers=dict(bearer))
    http.close()
    grpc.close()


def test_the_curl_line_works_when_pasted(live):
    line = live.taxiway("request", "risk").stdout
    done = subprocess.run(["/bin/sh", "-c", line], capture_output=True, text=True)
    assert '"outputs"' in done.stdout


def test_only_the_gateway_could_listen_beyond_loopback(live):
    marker = str(live.state)
    for process in psutil.process_iter():
        try:
            if process.environ().get("TAXIWAY_PLATFORM") != marker:
                continue
            listening = [c.laddr.ip for c in process.net_connections("inet") if c.status == psutil.CONN_LISTEN]
        except psutil.Error:
            continue
        assert set(listening) <= {"127.0.0.1"}, process.cmdline()


def test_the_gateway_uses_no_shared_memory_that_it_could_leave_behind(live):
    assert "/dev/shm/" not in Path(f"/proc/{live.pid('gateway')}/maps").read_text()
