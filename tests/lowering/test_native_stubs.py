"""pycuda and pyhip-interface as they are, on libraries that record what reaches them: order, types, sizes, and results."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from typing import Any

import pytest

from tests.lowering import native_stubs

DRIVE = """
import numpy as np
from tilelang.errors import DeviceError
from tilelang.lowering.compilers import clang, nvrtc
from tilelang.lowering.compilers.compiled import Compiled
from tilelang.lowering.drivers import interface
for compiler in (clang, nvrtc):
    compiler.compile_source = lambda source, architecture, *_: Compiled(architecture, "none", b"\\x7fELF code", ())
driver = interface.load(sys.argv[1])
device = driver.choose()
connection = driver.connect(device)
function = connection.build("text").function("copy", (3, 2), 64, 100_000 if sys.argv[1] == "cuda" else 1000)
x, y = np.arange(6, dtype=np.float32), np.zeros(6, np.float32)
copies(24)
began = len(recorded())
given = [connection.host_array(x, "input", None), connection.host_array(y, "output", None)]
function([g.buffer for g in given])
given[1].land()
called = recorded()[began:]
event = function.timed([connection.upload(x), connection.allocate(24)])
seconds = driver.seconds(event)
connection.finish()
try:
    connection.allocate(1 << 40)
    code = None
except DeviceError as error:
    code = error.code
facts = [device.name, device.architecture, device.compute_units, device.max_threads, device.shared_bytes, device.driver_version]
print(json.dumps({"called": called, "built": recorded()[:began], "all": recorded(), "y": y.tolist(), "seconds": seconds, "code": code,
                  "device": facts}))
"""


@pytest.fixture(scope="module")
def hip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    spec = importlib.util.find_spec("pyhip")
    if spec is None or spec.origin is None:
        pytest.skip("pyhip-interface is not installed")
    text = "".join(path.read_text() for path in Path(spec.origin).parent.glob("*.py"))
    symbols = re.findall(r"_libhip(?:rtc)?\.(hip\w+)", text)
    return native_stubs.build("libamdhip64", "libamdhip64.so", tmp_path_factory.mktemp("hip"), symbols)


@pytest.fixture(scope="module")
def cuda(tmp_path_factory: pytest.TempPathFactory) -> Path:
    spec = importlib.util.find_spec("pycuda")
    if spec is None or spec.origin is None:
        pytest.skip("pycuda is not installed")
    (extension,) = Path(spec.origin).parent.glob("_driver*.so")
    symbols = {s.decode() for s in re.findall(rb"\0(cu[A-Z]\w+)(?=\0)", extension.read_bytes())}
    return native_stubs.build("libcuda", "libcuda.so.1", tmp_path_factory.mktemp("cuda"), symbols)


def test_hip_calls(hip: Path) -> None:
    found = native_stubs.run(DRIVE, hip, "hip")
    assert found["device"] == ["AMD Stub", "gfx90a", 104, 1024, 65536, "6"]
    assert found["built"][-2:] == ["hipModuleLoadData ELF", "hipModuleGetFunction 1 copy"]
    assert found["called"] == [
        "hipMalloc 256", "hipMemcpy 24 1", "hipMalloc 256", "hipModuleLaunchKernel copy 3 2 1 64 1 1 0 0 16", "hipMemcpy 24 2",
    ]  # fmt: skip
    check_the_rest(found, "hip")


def test_cuda_calls(cuda: Path) -> None:
    found = native_stubs.run(DRIVE, cuda, "cuda")
    assert found["device"] == ["NVIDIA Stub", "sm_90a", 132, 1024, 232448, "13.0"]
    assert found["built"][-4:] == [
        "cuModuleLoadDataEx ELF", "cuModuleGetFunction copy", "cuFuncGetAttribute 1", "cuFuncSetAttribute copy 8 100000",
    ]  # fmt: skip
    assert found["called"] == [
        "cuMemAlloc 256", "cuMemcpyHtoD 24", "cuMemAlloc 256", "cuLaunchKernel copy 3 2 1 64 1 1 100000 0 16", "cuMemcpyDtoH 24",
    ]  # fmt: skip
    check_the_rest(found, "cu")


def check_the_rest(found: Any, prefix: str) -> None:
    """The result, the events around a timed launch, and memory that there is not."""
    assert found["y"] == [0, 1, 2, 3, 4, 5] and found["seconds"] == pytest.approx(1e-3) and found["code"] == "out-of-memory"
    later = [c.split()[0] for c in found["all"] if "Event" in c or "Launch" in c]
    launch = "hipModuleLaunchKernel" if prefix == "hip" else "cuLaunchKernel"
    names = ["EventCreate", "EventCreate", "EventRecord", launch, "EventRecord", "EventSynchronize"]
    assert later[1:] == [n if n == launch else prefix + n for n in names]


def test_no_hip_device(hip: Path) -> None:
    code = """
library.set_device_count(0)
from tilelang.lowering.drivers import hip
print(json.dumps(len(hip.devices())))
"""
    assert native_stubs.run(code, hip) == 0


def test_streams_of_hip_are_handles(hip: Path) -> None:
    code = """
import numpy as np
from tests.lowering.device_array_stubs import TorchStream, TorchTensor, torch_stub
from tilelang.lowering.drivers import device_arrays, hip
sys.modules["torch"] = torch_stub(TorchStream(77))
connection = hip.connect(hip.choose())
tensor = TorchTensor(np.ones(6, np.float32), (device_arrays.ROCM, 0))
assert hip.is_device_array(tensor) and not hip.is_device_array(np.ones(3))
queue = connection.queue_of([tensor])
taken = connection.take("X", tensor, queue)
connection.hand_back([tensor], queue)
connection.host_array(np.ones(6, np.float32), "input", queue)
print(json.dumps([queue, tensor.streams, taken.shape, recorded()[-2:]]))
"""
    assert native_stubs.run(code, hip) == [77, [77], [6], ["hipMemcpyAsync 24 1 77", "hipStreamSynchronize 77"]]


def test_any_thread_may_use_pycuda(cuda: Path) -> None:
    """What pycuda frees where its context is not current it warns of; `native_stubs.run` looks for that."""
    code = """
import threading
import numpy as np
from tilelang.lowering.compilers import nvrtc
from tilelang.lowering.compilers.compiled import Compiled
from tilelang.lowering.drivers import cuda
nvrtc.compile_source = lambda source, architecture, *_: Compiled(architecture, "none", b"\\x7fELF code", ())
def work():
    connection = cuda.connect(cuda.choose())
    function = connection.build("text").function("copy", (1,), 32, 0)
    copies(8)
    y = np.zeros(2, np.float32)
    given = [connection.host_array(np.ones(2, np.float32), "input", None), connection.host_array(y, "output", None)]
    for _ in range(3):
        cuda.seconds(function.timed([g.buffer for g in given]))
    given[1].land()
    results.append(y.tolist())
results = []
threads = [threading.Thread(target=work) for _ in range(4)]
work()
for t in threads:
    t.start()
for t in threads:
    t.join()
print(json.dumps(results))
"""
    assert native_stubs.run(code, cuda) == [[1.0, 1.0]] * 5


def test_tensor_maps_are_encoded_by_cuda_bindings(tmp_path: Path) -> None:
    try:
        found = importlib.util.find_spec("cuda.bindings.driver")
    except ModuleNotFoundError:
        found = None
    if found is None:
        pytest.skip("cuda-bindings is not installed")
    library = native_stubs.build("libcuda", "libcuda.so.1", tmp_path, [])
    code = """
import tilelang as tl
from tilelang.lowering.drivers.tensor_maps import TensorMap, encode
made = encode(TensorMap(tl.bfloat16, (100, 256), (512, 2), (64, 32), 64), 4096)
print(json.dumps([list(made), recorded()[-1]]))
"""
    made, called = native_stubs.run(code, library)
    assert made == [7] * 128 and called == "cuTensorMapEncodeTiled 9 2 4096 256 100 512 32 64 1 1 0 2 2 0"
