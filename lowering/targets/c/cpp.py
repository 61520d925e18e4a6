"""The common part of the C++ dialects: a vector class, how its values are written, and reserved names.

Compilers of device C++ either have no vector arithmetic or each spell it differently. A class that wraps an array, with
elementwise operators, is optimised well by all of them: lanes live in registers, and aligned vectors are loaded and stored whole.
Functions take vectors by value: a copy from memory is one wide access, whereas a reference would cause one per lane. Everything
is in a namespace, so that neither the class's types (`float4` etc.) nor functions collide with the compiler's own.
"""

from __future__ import annotations

from string import Template

from tilelang.lowering.targets.c import float8 as float8_module
from tilelang.lowering.targets.c.dialect import Vectors

_TYPES = "u?char|u?short|u?int|u?long|float|double"

VECTORS = Vectors(
    splat="{type}({item})",
    pack="{type}({items})",
    lane="{vector}[{first}]",
    part="part<{first}, {count}>({vector})",
    set_part="set_part<{first}>({vector}, {value});",
    choice="choose({mask}, {then}, {otherwise})",
    word="word<{number}>({vector})",
    unaligned="typedef vec<{scalar}, {lanes}, {bytes}> {name};\n",
    native=False,
    joins=False,
)

INLINE = "__device__ __forceinline__"

_SCALARS = """\
typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long ulong;
static_assert(char(-1) < 0 && sizeof(long) == 8, "a signed char and a long of 64 bits");
"""

_CLASS = """
template <bool> struct aligned {};
template <> struct aligned<true> { typedef int yes; };
template <class T, int N, int A = sizeof(T) * N>
struct alignas(A) vec {  // N lanes that are aligned to A bytes in memory
$lanes    vec() = default;
    __device__ __forceinline__ explicit vec(T x) {
        for (int i = 0; i < N; ++i) lane[i] = x;
    }
    template <class... Rest>
    __device__ __forceinline__ vec(T a, T b, Rest... rest) : lane{a, b, static_cast<T>(rest)...} {
        static_assert(2 + sizeof...(rest) == N, "as many items as lanes");
    }
    template <int B, int FULL = sizeof(T) * N>  // an underaligned vector converts to a fully aligned one, not the other way round
    __device__ __forceinline__ vec(vec<T, N, B> other, typename aligned<A == FULL>::yes = 0) {
        for (int i = 0; i < N; ++i) lane[i] = other.lane[i];
    }
    template <int B>
    __device__ __forceinline__ vec& operator=(vec<T, N, B> other) {
        for (int i = 0; i < N; ++i) lane[i] = other.lane[i];
        return *this;
    }
    __device__ __forceinline__ T& operator[](int i) { return lane[i]; }
    __device__ __forceinline__ const T& operator[](int i) const { return lane[i]; }
};
"""

# Copied as bytes: NVIDIA's compilers keep such classes in registers.
LANES_AS_BYTES = """\
    T lane[N];
"""
# Copied as a native vector: clang leaves classes that are only copied as bytes in memory.
LANES_OF_CLANG = """\
    typedef T native __attribute__((ext_vector_type(N), aligned(A)));
    union {
        T lane[N];
        native all;
    };
    __device__ __forceinline__ vec(const vec& other) : all(other.all) {}
    __device__ __forceinline__ vec& operator=(const vec& other) {
        all = other.all;
        return *this;
    }
"""

_REINTERPRET = f"""
template <class To, class From>
{INLINE} To reinterpret(From from) {{
    $cast
}}
"""
CAST_OF_BYTES = "return __builtin_bit_cast(To, from);"
CAST_OF_CLANG = "To r;\n    r.all = __builtin_bit_cast(typename To::native, from.all);\n    return r;"

_OPERATORS = f"""
template <int BYTES> struct mask_of_bytes;  // the type of a comparison of lanes of this size: 0 or -1
template <> struct mask_of_bytes<1> {{ typedef char type; }};
template <> struct mask_of_bytes<2> {{ typedef short type; }};
template <> struct mask_of_bytes<4> {{ typedef int type; }};
template <> struct mask_of_bytes<8> {{ typedef long type; }};
template <class T> struct itself {{ typedef T type; }};
template <class T> struct wrapping {{ typedef T type; }};  // the type of arithmetic: signed overflow wraps
template <> struct wrapping<int> {{ typedef uint type; }};
template <> struct wrapping<long> {{ typedef ulong type; }};
template <> struct wrapping<ushort> {{ typedef uint type; }};
#define VECTOR_OPERATOR(op, in) \\
    template <class T, int N, int A, int B> \\
    {INLINE} vec<T, N> operator op(vec<T, N, A> a, vec<T, N, B> b) {{ \\
        typedef typename in<T>::type type; \\
        vec<T, N> r; \\
        for (int i = 0; i < N; ++i) r.lane[i] = static_cast<T>(static_cast<type>(a.lane[i]) op static_cast<type>(b.lane[i])); \\
        return r; \\
    }} \\
    template <class T, int N, int A> \\
    {INLINE} vec<T, N> operator op(vec<T, N, A> a, typename itself<T>::type b) {{ \\
        return a op vec<T, N>(b); \\
    }} \\
    template <class T, int N, int B> \\
    {INLINE} vec<T, N> operator op(typename itself<T>::type a, vec<T, N, B> b) {{ \\
        return vec<T, N>(a) op b; \\
    }}
#define VECTOR_COMPARISON(op) \\
    template <class T, int N, int A, int B> \\
    {INLINE} vec<typename mask_of_bytes<sizeof(T)>::type, N> operator op(vec<T, N, A> a, vec<T, N, B> b) {{ \\
        vec<typename mask_of_bytes<sizeof(T)>::type, N> r; \\
        for (int i = 0; i < N; ++i) r.lane[i] = -(a.lane[i] op b.lane[i]); \\
        return r; \\
    }}
VECTOR_OPERATOR(+, wrapping)
VECTOR_OPERATOR(-, wrapping)
VECTOR_OPERATOR(*, wrapping)
VECTOR_OPERATOR(/, itself)
VECTOR_OPERATOR(%, itself)
VECTOR_OPERATOR(&, itself)
VECTOR_OPERATOR(|, itself)
VECTOR_OPERATOR(^, itself)
VECTOR_OPERATOR(<<, itself)
VECTOR_OPERATOR(>>, itself)
VECTOR_COMPARISON(==)
VECTOR_COMPARISON(!=)
VECTOR_COMPARISON(<)
VECTOR_COMPARISON(<=)
template <class T, int N, int A>
{INLINE} vec<T, N> operator-(vec<T, N, A> a) {{
    vec<T, N> r;
    for (int i = 0; i < N; ++i) r.lane[i] = static_cast<T>(-static_cast<typename wrapping<T>::type>(a.lane[i]));
    return r;
}}
template <class T, int N, int A>
{INLINE} vec<T, N> operator~(vec<T, N, A> a) {{
    vec<T, N> r;
    for (int i = 0; i < N; ++i) r.lane[i] = static_cast<T>(~a.lane[i]);
    return r;
}}
"""

_CHOOSE = f"""
template <class M, class T, int N, int A, int B, int C>
{INLINE} vec<T, N> choose(vec<M, N, A> mask, vec<T, N, B> then, vec<T, N, C> otherwise) {{
    vec<T, N> r;
    for (int i = 0; i < N; ++i) r.lane[i] = mask.lane[i] ? then.lane[i] : otherwise.lane[i];
    return r;
}}
"""

_PART = f"""
template <int FIRST, int COUNT, class T, int N, int A>
{INLINE} vec<T, COUNT> part(vec<T, N, A> v) {{
    vec<T, COUNT> r;
    for (int i = 0; i < COUNT; ++i) r.lane[i] = v.lane[FIRST + i];
    return r;
}}
"""

_WORD = f"""
typedef uint word_of_lanes __attribute__((may_alias));
template <int NUMBER, class T, int N, int A>
{INLINE} word_of_lanes& word(vec<T, N, A>& v) {{  // a register of 32 bits, of narrower lanes
    return reinterpret_cast<word_of_lanes*>(v.lane)[NUMBER];
}}
template <int NUMBER, class T>
{INLINE} word_of_lanes& word(T* lanes) {{
    return reinterpret_cast<word_of_lanes*>(lanes)[NUMBER];
}}
"""

_SET_PART = f"""
template <int FIRST, class T, int N, int A, int COUNT, int B>
{INLINE} void set_part(vec<T, N, A>& v, vec<T, COUNT, B> part) {{
    for (int i = 0; i < COUNT; ++i) v.lane[FIRST + i] = part.lane[i];
}}
"""

_CONVERT = f"""
template <class T, class S, int N, int A>
{INLINE} vec<T, N> convert(vec<S, N, A> v) {{
    vec<T, N> r;
    for (int i = 0; i < N; ++i) r.lane[i] = static_cast<T>(v.lane[i]);
    return r;
}}
"""

_MINIMUM_OF_INTEGERS = f"""
template <class T> {INLINE} T min(T a, T b) {{ return b < a ? b : a; }}
template <class T> {INLINE} T max(T a, T b) {{ return a < b ? b : a; }}
"""

_VECTOR_TO_FLOAT = f"""
template <int N, int A>
{INLINE} vec<float, N> $1_to_float(vec<ushort, N, A> bits) {{
    vec<float, N> r;
    for (int i = 0; i < N; ++i) r.lane[i] = $1_to_float(bits.lane[i]);
    return r;
}}
"""

_VECTOR_FROM_PAIRS = f"""
template <int N, int A>
{INLINE} vec<float, N> $1_to_float(vec<uchar, N, A> bits) {{
    const vec<ushort, N / 2> pairs = reinterpret<vec<ushort, N / 2>>(vec<uchar, N>(bits));
    vec<float, N> r;
    for (int i = 0; i < N / 2; ++i) pair_from_$1(pairs.lane[i], r.lane[2 * i], r.lane[2 * i + 1]);
    return r;
}}
"""

_VECTOR_FROM_FLOAT = f"""
template <int N, int A>
{INLINE} vec<$bits, N> float_to_$1(vec<float, N, A> x) {{
    vec<$pair, N / 2> pairs;
    for (int i = 0; i < N / 2; ++i) pairs.lane[i] = pair_to_$1(x.lane[2 * i], x.lane[2 * i + 1]);
    return reinterpret<vec<$bits, N>>(pairs);
}}
"""


def _narrow(header: str, bits: str, pair: str) -> str:
    """A header of conversions, for the type that holds a float's bits and the type of two of them."""
    return header.replace("$bits", bits).replace("$pair", pair)


def float8(name: str, by_device: str = "") -> tuple[str, str]:
    """The header of conversions for a float of 8 bits. by_device: text that tries the device's own conversions first."""
    types = {"inline": INLINE, "F": "float", "U": "uint", "H": "uchar"}
    functions = {"as_F": "__uint_as_float", "as_U": "__float_as_uint", "wide": "uint", "narrow": "uchar"}
    both = ((f"{name}_to_float", True), (f"float_to_{name}", False))
    text = "".join(
        Template(float8_module.conversion(name, way)).substitute(types, name=function, **functions) for function, way in both
    )
    text += f"""\
{INLINE} void pair_from_{name}(ushort bits, float& low, float& high) {{
    low = {name}_to_float((uchar)bits);
    high = {name}_to_float((uchar)(bits >> 8));
}}
{INLINE} uint pair_to_{name}(float low, float high) {{
    return float_to_{name}(low) | (uint)float_to_{name}(high) << 8;
}}
"""
    return rf"\b(?:{name}_to_float|float_to_{name})\b", f"{by_device}#else{text}#endif\n" if by_device else text


OPEN = (r"__global__", "namespace tilelang {\n")
CLOSING = "}  // namespace tilelang\n"


def headers(lanes: str, cast: str) -> tuple[tuple[str, str], ...]:
    """The headers for vectors, in the required order, each with the pattern that requires it."""
    return (
        (r"\b(?:uchar|ushort|uint|ulong)(?:\d|\b)|vec<|\bword<", _SCALARS),
        (r"\b(?:vec|word)<", _CLASS.replace("$lanes", lanes)),
        (r"\breinterpret<", _REINTERPRET.replace("$cast", cast)),
        (r"\bvec<", _OPERATORS),
        (r"\bchoose\(", _CHOOSE),
        (r"\bpart<", _PART),
        (r"\bset_part<", _SET_PART),
        (r"\bword<", _WORD),
        (r"\bconvert<", _CONVERT),
        (r"\b(?:min|max)\(", _MINIMUM_OF_INTEGERS),
    )


# After a device's functions: functions built from them, and the names of types.
TYPE_HEADERS = (
    (r"\b(b?float16)_to_float\b", _VECTOR_TO_FLOAT),
    (r"\bfloat_to_(b?float16)\b", _narrow(_VECTOR_FROM_FLOAT, "ushort", "uint")),
    (r"\b(float8_e\dm\d)_to_float\b", _VECTOR_FROM_PAIRS),
    (r"\bfloat_to_(float8_e\dm\d)\b", _narrow(_VECTOR_FROM_FLOAT, "uchar", "ushort")),
    (rf"\bconvert_({_TYPES})(\d+)\b", "#define convert_$1$2 convert<$1>\n"),
    (rf"\b({_TYPES})(2|4|8|16)(?:_u\d*)?\b", "typedef vec<$1, $2> $1$2;\n"),
)

# Names that the headers use for functions and helpers of the emitter.
SHARED_FUNCTIONS = {
    "round": "rint", "abs": "fabs", "maximum": "maximum", "minimum": "minimum", "store_streaming": "store_streaming",
    "float16_to_float": "float16_to_float", "float_to_float16": "float_to_float16",
    "bfloat16_to_float": "bfloat16_to_float", "float_to_bfloat16": "float_to_bfloat16",
    "float8_e4m3_to_float": "float8_e4m3_to_float", "float_to_float8_e4m3": "float_to_float8_e4m3",
    "float8_e5m2_to_float": "float8_e5m2_to_float", "float_to_float8_e5m2": "float_to_float8_e5m2",
}  # fmt: skip

RESERVED = frozenset(
    """alignas alignof and and_eq asm bitand bitor bool catch char16_t char32_t class compl const_cast constexpr decltype delete
    dynamic_cast explicit export friend mutable namespace new noexcept not not_eq nullptr operator or or_eq override private
    protected public reinterpret_cast static_assert static_cast template this thread_local throw try typeid typename using virtual
    wchar_t xor xor_eq
    uchar ushort uint ulong size_t vec aligned mask_of_bytes itself wrapping choose part set_part word word_of_lanes convert
    reinterpret min max maximum minimum
    fast_exp store_streaming prefetch_l2 float16_to_float float_to_float16 pair_to_float16 bfloat16_to_float float_to_bfloat16
    pair_to_bfloat16
    float8_e4m3_to_float float_to_float8_e4m3 pair_to_float8_e4m3 float8_e5m2_to_float float_to_float8_e5m2 pair_to_float8_e5m2
    pair_from_float8_e4m3 pair_from_float8_e5m2
    tilelang threadIdx blockIdx blockDim gridDim warpSize dim3
    exp exp2 log log2 log1p expm1 sqrt rsqrt sin cos tanh erf floor ceil rint fabs pow fmod copysign fma ldexp frexp
    abs acos acosh asin asinh atan atan2 atanh cbrt cosh div erfc exp10 fdim fmax fmin hypot ilogb isfinite isinf isnan j0 j1 jn labs
    ldiv lgamma log10 logb lrint lround modf nan nearbyint nextafter norm powi printf remainder remquo round scalbn signbit sinh
    sincos tan tgamma trunc y0 y1 yn malloc free memcpy memset clock assert""".split()
)
