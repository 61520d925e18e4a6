"""Multiply-accumulate and dot products of float32 vectors by one thread, in OpenCL and on CPUs, without special hardware.

A plain expression, so that the compiler may contract it; `fma()` and `mad()` are calls per lane on some CPU devices.
"""

from tilelang.core.dtype import float32
from tilelang.core.expr import Axis
from tilelang.instructions.instruction import Instruction, instruction, updates
from tilelang.instructions.operand import operand


def _multiply_accumulate(lanes: int) -> Instruction:
    n = Axis("n", lanes)
    A = operand("A", float32, "register")
    B, C = (operand(name, float32, "register", n) for name in "BC")
    return instruction(
        f"opencl_mad{lanes}",
        means=updates(C[n], A[()] * B[n]),
        operands=(A, B, C),
        level="thread",
        template=dict.fromkeys(("opencl", "cpu"), "{C} += {A} * {B};"),
        source="The OpenCL C Specification 3.0, section 6.4, Operators",
    )


opencl_mad4, opencl_mad8, opencl_mad16 = (_multiply_accumulate(lanes) for lanes in (4, 8, 16))


_DOT = """
static inline float opencl_dot{n}(float{n} a, float{n} b) {{
    const float{n} products = a * b;
    return {sum};
}}
"""


def _dot(lanes: int) -> Instruction:
    k = Axis("k", lanes)
    A, B = (operand(name, float32, "register", k) for name in "AB")
    C = operand("C", float32, "register")
    return instruction(
        f"opencl_dot{lanes}",
        means=updates(C[()], A[k] * B[k]),
        operands=(A, B, C),
        level="thread",
        template={"opencl": "{C} += dot({A}, {B});", "cpu": f"{{C}} += opencl_dot{lanes}({{A}}, {{B}});"},
        definitions={"cpu": _DOT.format(n=lanes, sum=" + ".join(f"products[{i}]" for i in range(lanes)))},
        error_ulps=lanes,  # the order of dot's additions is the implementation's
        source="The OpenCL C Specification 3.0, section 6.15.5, Geometric Functions",
    )


opencl_dot2, opencl_dot4 = (_dot(lanes) for lanes in (2, 4))
