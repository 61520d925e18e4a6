"""The dialects that kernels are emitted in, by name."""

from tilelang.lowering.targets import cuda, hip, opencl

DIALECTS = {dialect.name: dialect for dialect in (opencl.DIALECT, cuda.DIALECT, hip.DIALECT)}
