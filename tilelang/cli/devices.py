"""`tilelang devices`: what is here, what is missing for the others, and how to get it."""

from __future__ import annotations

import dataclasses
import importlib.util
import shutil
import sys

import click

from tilelang.cli.common import NO_DEVICE, RIGHT, emit, is_json, reporting, show, table
from tilelang.errors import DeviceError
from tilelang.machine import shipped_profiles

# A dialect that kernels are to be lowered to, the Python module that drives it, a program that a machine with it has, how to get it.
OTHERS = [
    ("cuda", "pycuda", "nvidia-smi", "an NVIDIA driver and the CUDA toolkit, then pip install 'tilelang-rtile[cuda]'"),
    ("hip", "hip", "rocminfo", "an AMD driver with ROCm, then pip install 'tilelang-rtile[hip]'"),
]


@click.command("devices")
@reporting
def command() -> None:
    """List the devices that kernels can run on here, the best first, and what is missing for other kinds. Exits with 3 without any."""
    from tilelang.lowering.compilers.interface import tools
    from tilelang.runtime import devices

    try:
        found, why = devices(), ""
    except DeviceError as error:
        found, why = (), error.message
    missing = [
        {
            "dialect": d, "lowered": False, "module": importlib.util.find_spec(module) is not None,
            "driver": shutil.which(tool) is not None, "get": how,
        }
        for d, module, tool, how in OTHERS
    ]  # fmt: skip
    if is_json():
        emit(
            {
                "devices": [
                    {"name": d.name, "platform": d.platform, "kind": d.kind, "compute_units": d.compute_units,
                     "max_threads": d.max_threads, "shared_bytes": d.shared_bytes, "global_bytes": d.global_bytes}
                    for d in found
                ],
                "missing": missing,
                "compilers": [dataclasses.asdict(tool) for tool in tools()],
                "profiles": list(shipped_profiles()),
            }
        )  # fmt: skip
        sys.exit(RIGHT if found else NO_DEVICE)
    rows = [
        (d.name, d.platform, d.kind, d.compute_units, d.max_threads, d.shared_bytes >> 10, round(d.global_bytes / 2**30, 1))
        for d in found
    ]
    header = ("device", "platform", "kind", "units", "threads a block", "shared KiB", "memory GiB")
    lines = [table(header, rows)] if rows else [f"no OpenCL device{f': {why}' if why else ''}"]
    if not rows:
        lines.append(
            "  pip install 'pyopencl[pocl]' runs kernels on the processor; a graphics processor needs its vendor's OpenCL driver"
        )
    lines.append("")
    for m in missing:
        here = (
            ", ".join(w for w, there in (("its Python module", m["module"]), ("its driver", m["driver"])) if there)
            or "nothing of it"
        )
        lines.append(f"{m['dialect']}: kernels are not lowered to it yet; here is {here}; it needs {m['get']}")
    lines.append("")
    lines += [f"{t.found or 'not here'}: {t.use}{'' if t.found else f'; {t.get}'}" for t in tools()]
    lines.append(
        f"profiles for devices that are not here: {', '.join(shipped_profiles())}  (source, explain, simulate --profile NAME)"
    )
    show("\n".join(lines))
    sys.exit(RIGHT if found else NO_DEVICE)
