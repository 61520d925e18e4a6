"""Images: the bandwidth of their reads, the direction of their cache lines, and the value of a read outside.

Each block reads its own pixels, by rows or by columns of a few pixels. Only the probe for values outside reads beyond the image.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilelang.autoschedule.profile.bench import Bench
from tilelang.autoschedule.profile.findings import Findings, NotApplicable

PIXEL_BYTES = 16  # four floats
ROW_PIXELS = 1024
SIZES = (1 << 14, 1 << 17, 1 << 20, 1 << 23)  # bytes of an image
RUNS = (1, 2, 4, 8, 16)  # consecutive pixels
SAMPLER = "__constant sampler_t exact = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_CLAMP | CLK_FILTER_NEAREST;\n"
PIXELS = (
    SAMPLER
    + """
KERNEL(probe, %(threads)d)(GLOBAL const int *rounds, GLOBAL float4 *out, read_only image2d_t image) {
  float4 all = (float4)(0.0f);
  for (int r = 0; r < rounds[0]; ++r)
    for (int i = BLOCK * %(threads)d + THREAD; i < %(pixels)d; i += %(step)d) {
      int n = i / %(run)d, at = n %% %(strips)d * %(apart)d + i %% %(run)d, across = n / %(strips)d;
      all += read_imagef(image, exact, (int2)(%(x)s, %(y)s));
    }
  out[BLOCK * %(threads)d + THREAD] = all;
}"""
)
OUTSIDE = (
    SAMPLER
    + """
KERNEL(probe, 1)(GLOBAL const int *rounds, GLOBAL float *out, read_only image2d_t image) {
  float all = 0.0f;
  for (int r = 0; r < rounds[0]; ++r) {
    float4 left = read_imagef(image, exact, (int2)(-1 - r, 1)), below = read_imagef(image, exact, (int2)(1, %d + r));
    all = left.x + below.x + left.w + below.w;
  }
  out[0] = all;
}"""
)


def images(bench: Bench, found: Findings) -> None:
    """Whole rows of images of growing size; then runs along rows and along columns, with equal distances between them."""
    if not supported(bench):
        raise NotApplicable("no images: the texts that ask for them are OpenCL's, and the device must have some")
    points = []
    for size in SIZES:
        rows = max(1, size // PIXEL_BYTES // ROW_PIXELS)
        points.append((float(size), _read(bench, found, "image", rows, ROW_PIXELS, False)))
    found.curve("image_bandwidth", "footprint_bytes", "gb_per_s", points, "pixels of four floats by all blocks, row by row")
    rows = SIZES[-1] // PIXEL_BYTES // ROW_PIXELS
    lines = {
        turned: [(float(PIXEL_BYTES * n), _read(bench, found, "runs", rows, n, turned)) for n in RUNS] for turned in (False, True)
    }
    for turned, along in ((False, "rows"), (True, "columns")):
        how = f"runs of pixels of four floats along {along}, {RUNS[-1]} pixels apart"
        found.curve(f"image_bandwidth_along_{along}", "run_bytes", "gb_per_s", lines[turned], how)
    how = "gain of long runs of pixels along rows relative to runs along columns; above 1, cache lines are along rows"
    found.rate("image_rows_ratio", leaning(lines[False], lines[True]), how)
    given = outside(bench)
    found.rate(
        "image_outside_value", given, "a pixel left of an image of ones, and one below it, by a sampler that clamps to a border"
    )


def leaning(rows: Sequence[tuple[float, float]], columns: Sequence[tuple[float, float]]) -> float:
    """How much more long runs gain along rows than along columns: short runs across cache lines waste nothing, because their
    neighbours are read while the lines are still in a cache.

    >>> leaning([(16, 10.0), (64, 40.0)], [(16, 40.0), (64, 40.0)])
    4.0
    """
    return rows[-1][1] / rows[0][1] * columns[0][1] / columns[-1][1]


def supported(bench: Bench) -> bool:
    """Whether the device has images that source texts can read."""
    return bench.device.driver == "opencl" and bool(getattr(bench.device.handle, "image_support", False))


def _image(bench: Bench, rows: int) -> Any:
    """An image of ones."""
    import numpy as np  # late: NumPy takes long to import

    return bench.image(np.ones((rows, ROW_PIXELS, 4), np.float32))


def _read(bench: Bench, found: Findings, series: str, rows: int, run: int, turned: bool) -> float:
    """GB/s of all blocks. run: consecutive pixels; turned: along columns, in strips of RUNS[-1] pixels."""
    threads, blocks = bench.threads, bench.cores * (8 if bench.lockstep else 1)
    length, others = (rows, ROW_PIXELS) if turned else (ROW_PIXELS, rows)
    apart = ROW_PIXELS if run == ROW_PIXELS else RUNS[-1]
    strips = max(1, length // apart)
    made = {"threads": threads, "pixels": strips * run * others, "step": threads * blocks, "run": run, "strips": strips}
    made |= {"apart": apart}
    place = {"x": "across", "y": "at"} if turned else {"x": "at", "y": "across"}
    text = PIXELS % (made | place)
    taken = bench.of_text(text, blocks, threads, [PIXEL_BYTES * threads * blocks, _image(bench, rows)])
    x = rows * ROW_PIXELS * PIXEL_BYTES if series == "image" else run
    return PIXEL_BYTES * made["pixels"] * 1e-9 / found.time(f"{series} {'down' if turned else 'along'}", x, taken).seconds


def outside(bench: Bench) -> float:
    """The average component of a pixel outside the image: 0 if the border is transparent black, 1 if the edge is repeated."""
    return bench.value_of_text(OUTSIDE % 4, _image(bench, 4)) / 4
