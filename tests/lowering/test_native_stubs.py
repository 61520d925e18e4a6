"""cuda-bindings and pyhip-interface as they are, on libraries that record what reaches them: order, types, sizes, and results."""

from __future__ import annotations

import ctypes.util
import importlib.util
import re
from pathlib import Path
from typing import Any

import pytest

from tests.lowering import native_stubs
from tilelang.lowering.drivers.cuda import GET

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
    pytest.importorskip("cuda.bindings")
    return native_stubs.build("libcuda", "libcuda.so.1", tmp_path_factory.mktemp("cuda"), [])


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
        "cuModuleLoadData ELF", "cuModuleGetFunction copy", "cuFuncGetAttribute 1", "cuFuncSetAttribute copy 8 100000",
    ]  # fmt: skip
    assert found["called"] == [
        "cuMemAlloc 256", "cuMemcpyHtoD 24", "cuMemAlloc 256", "cuLaunchKernel copy 3 2 1 64 1 1 100000 0", "cuMemcpyDtoH 24",
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


def test_any_thread_may_use_cuda(cuda: Path) -> None:
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


def test_streams_of_cuda_bindings(cuda: Path) -> None:
    code = """
import numpy as np
from cuda.bindings import driver, runtime
from tilelang.lowering.drivers import cuda
connection = cuda.connect(cuda.choose())
queues = [cuda.as_queue(kind(77)) for kind in (int, driver.CUstream, runtime.cudaStream_t)]
connection.host_array(np.ones(6, np.float32), "input", queues[1])
print(json.dumps([queues, recorded()[-2:]]))
"""
    assert native_stubs.run(code, cuda) == [[77, 77, 77], ["cuMemcpyHtoDAsync 24 77", "cuStreamSynchronize 77"]]


def test_tensor_maps_are_encoded_and_launched_by_pointers(cuda: Path) -> None:
    """The library fails where a map lies elsewhere than at a multiple of 64."""
    code = """
import tilelang as tl
from tilelang.lowering.compilers import nvrtc
from tilelang.lowering.compilers.compiled import Compiled
from tilelang.lowering.drivers import cuda
from tilelang.lowering.drivers.tensor_maps import TensorMap
import numpy as np
nvrtc.compile_source = lambda source, architecture, *_: Compiled(architecture, "none", b"\\x7fELF code", ())
connection = cuda.connect(cuda.choose())
made = connection.tensor_map(TensorMap(tl.bfloat16, (100, 256), (512, 2), (64, 32), 64), 4096)
called = [recorded()[-1]]
x, y = np.arange(6, dtype=np.float32), np.zeros(6, np.float32)
given = [connection.host_array(x, "input", None), connection.host_array(y, "output", None)]
copies(24)
function = connection.build("text").function("copy", (1,), 32, 0)
for kinds, arguments in (
    ("amma", [given[0].buffer, made, bytes(range(128)), given[1].buffer]),
    ("mama", [made, given[0].buffer, made, given[1].buffer]),
):
    (ctypes.c_char * 16).in_dll(library, "parameters").value = kinds.encode()
    function(arguments)
    called.append(recorded()[-1])
given[1].land()
print(json.dumps([list(made), called, y.tolist()]))
"""
    made, called, y = native_stubs.run(code, cuda)
    assert made == [7] * 128 and y == [0, 1, 2, 3, 4, 5]
    assert called == [
        "cuTensorMapEncodeTiled 9 2 4096 256 100 512 32 64 1 1 0 2 2 0",
        "cuLaunchKernel copy 1 1 1 32 1 1 0 0 map 7 7 map 0 127",
        "cuLaunchKernel copy 1 1 1 32 1 1 0 0 map 7 7 map 7 7",
    ]


def test_no_cuda_library(tmp_path: Path) -> None:
    """cuda-bindings is installed, NVIDIA's driver is not."""
    pytest.importorskip("cuda.bindings")
    if ctypes.util.find_library("cuda") is not None:
        pytest.skip("the driver is here")
    code = """
from tilelang.errors import DeviceError
from tilelang.lowering.drivers import cuda
try:
    cuda.devices()
except DeviceError as error:
    print(json.dumps([error.code, error.message.splitlines()[0], error.help]))
"""
    code, said, help = native_stubs.run(code, native_stubs.build("libamdhip64", "libamdhip64.so", tmp_path, []))
    assert code == "no-driver" and said.startswith("cuda-bindings finds no CUDA driver: ") and help == GET
