"""Names that have moved to another module: the old ones work for one release, with a DeprecationWarning."""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import Any

# Old package and new package below `tilelang`, and the modules that went from one to the other: `old:new` where the name changed, too.
_MOVED = {
    ("", "core"): "node dtype expr operators simplify numeric words:identifiers lazy tensor:layout dlpack",
    ("", "computations"): (
        "computation definitions:define elaborate functions combiners access:bounds_check computation_text:text inlining "
        "arguments"
    ),
    ("", "semantics"): (
        "reference evaluator bound:error_bound combining:reduction_error derivative exactness special:special_values"
    ),
    ("", "instructions"): "instruction meaning:semantics operand template fragment matching",
    ("instructions", "instructions.shipped"): (
        "arm_products asynchronous_copy direct_copy dot_product matrix_moves opencl_vector ptx shuffle tensor_copy "
        "vector_move warp_matrix warpgroup_matrix wave_matrix x86_dot_products x86_tiles"
    ),
    ("", "schedules"): "steps schedule spec check task explain remarks resize order:unit_numbering",
    ("", "profiles"): "machine:profile profile_files:files records:toml_schema",
    ("", "runtime"): (
        "kernel_function call:launch_arguments planning:schedule_selection simulated:simulated_check "
        "nearest:nearest_profile targets resources"
    ),
    ("lowering", "lowering.simulator"): (
        "batch clocks:vector_clocks concurrent_roles copy_queue definedness findings instruction_groups lifetimes "
        "memory_model refills role_threads scalar_semantics shadow_memory simulate threads"
    ),
    ("lowering.build", "lowering.build"): "base:refusals nest:lower_steps walks:loops leaf:innermost_body",
    ("lowering.build", "lowering.build.instruction"): (
        "instruct:emit instruct_checks:checks instruct_match:match instruct_moves:moves instruct_pointwise:pointwise "
        "matches:leaf_description operands runs:register_runs boxes:tensor_boxes fragments fragment_loads fragment_moves "
        "fragment_results lane_exchanges:warp_shuffles neighbours:consecutive_threads"
    ),
    ("lowering.build", "lowering.build.distribution"): (
        "owners exchange:shuffle_plan redistribute:layout_conversion spreads:parallel_mapping share:register_slices"
    ),
    ("lowering.build", "lowering.build.movement"): (
        "place:materialize residences:storage moves:shared_loads cover:footprint regions:access_regions "
        "copies:asynchronous_copies prefetch:cache_prefetch stops:staging pieces:epilogue_chunks stages"
    ),
    ("lowering.build", "lowering.build.pipelining"): (
        "rings:multistage_buffers rounds:iteration_count register_rings:register_buffers roles:warp_specialization "
        "role_loads:producer_loads"
    ),
    ("lowering.build", "lowering.build.reductions"): (
        "state:accumulators meet:cross_thread combine shared_state:shared_accumulators results"
    ),
    ("lowering.passes", "lowering.passes"): (
        "align:peel_to_alignment alike:mark_uniform arena:allocate_shared behind:delay_stores conflicts:dependence_test "
        "crossing:values_across_barriers fences:proxy_fences flight:pipeline_products fuse:fuse_loops "
        "groups:commit_groups late_waits:sink_waits moves:vectorize_moves outwards:unswitch_loops "
        "pending:outstanding_accesses promote:scalar_replacement turn:transpose_in_registers ranges:loop_ranges "
        "collapse:collapse_loops"
    ),
    ("lowering.targets", "lowering.targets.c"): (
        "c_dialect:dialect c_expressions:expressions c_family:emitter c_float8:float8 c_functions:functions "
        "c_headers:headers c_instructions:instructions c_lanes:lanes c_library:library c_literals:literals c_loops:loops "
        "c_names:names c_places:places c_registers:registers c_roles:roles c_stores:stores cpp"
    ),
    ("lowering.targets", "lowering.targets.cpu_functions"): (
        "cpu_float32:float32 cpu_float32_pieces:float32_pieces cpu_float32_waves:float32_waves cpu_float64:float64 "
        "cpu_float64_exact:float64_exact cpu_float64_wide:float64_wide cpu_quotients:quotients"
    ),
    ("autoschedule", "autoschedule.common"): (
        "cost loops:loop_summary nest:task_accesses limits units:matrix_units roofline:lower_bound "
        "construct stages:row_fusion tails:continuations notes:search_notes fill:complete holes lanes_threads:threads prune"
    ),
    ("autoschedule.tune", "autoschedule.common"): "prune",
    ("autoschedule", "autoschedule.cpu"): (
        "cores:device cost_cores:model cost_moves:move_cost bodies rtile:tile growth capacity:tile_size_selection "
        "traffic:cache_traffic waiting:memory_stalls words:dot_product_words"
    ),
    ("autoschedule", "autoschedule.gpu"): (
        "lanes:construct lanes_banks:bank_conflicts lanes_growth:growth lanes_roles:warp_specialized "
        "lanes_stages:row_fusion lanes_staging:staging lanes_streams:streams lanes_tile:tile "
        "lanes_traffic:traffic lanes_units:matrix_tiles cost_lanes:model"
    ),
    ("autoschedule", "autoschedule.tune"): (
        "best measure measure_programs:programs measure_worker:worker diverse database calibrate"
    ),
}

MODULES: Mapping[str, str] = {
    f"tilelang.{before}.{name}".replace("..", "."): f"tilelang.{after}.{new or name}"
    for (before, after), names in _MOVED.items()
    for name, _, new in (item.partition(":") for item in names.split())
}

# Compiler passes, as `TILELANG_DEBUG=pass:NAME` names them.
PASSES: Mapping[str, str] = {
    "groups": "commit_groups",
    "flight": "pipeline_products",
    "moves": "vectorize_moves",
    "fuse": "fuse_loops",
    "behind": "delay_stores",
    "arena": "allocate_shared",
    "fences": "proxy_fences",
    "late_waits": "sink_waits",
    "outwards": "unswitch_loops",
    "align": "peel_to_alignment",
    "turn": "transpose_in_registers",
    "alike": "mark_uniform",
    "promote": "scalar_replacement",
}


class MovedModules(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Imports a module by its old name: the same module object, after a DeprecationWarning that tells the new name.

    >>> with warnings.catch_warnings(record=True) as said:
    ...     warnings.simplefilter("always")
    ...     from tilelang.machine import Profile
    >>> print(said[0].message)
    tilelang.machine has moved: import tilelang.profiles.profile
    >>> from tilelang.profiles import profile
    >>> Profile is profile.Profile
    True
    """

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        return importlib.machinery.ModuleSpec(fullname, self) if fullname in MODULES else None

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        old = module.__name__
        warnings.warn(f"{old} has moved: import {MODULES[old]}", DeprecationWarning, stacklevel=2)
        sys.modules[old] = importlib.import_module(MODULES[old])  # the import returns whatever is in sys.modules afterwards


def moved(module: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """The `__getattr__` of a module some of whose names have moved. homes: the module in which each of them is now.

    >>> from tilelang.profiles import profile as machine
    >>> with warnings.catch_warnings(record=True) as said:
    ...     warnings.simplefilter("always")
    ...     names = machine.shipped_profiles()
    >>> print(said[0].message)
    tilelang.profiles.profile.shipped_profiles is deprecated: use tilelang.profiles.files.shipped_profiles
    """

    def attribute(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module '{module}' has no attribute '{name}'")
        message = f"{module}.{name} is deprecated: use {homes[name]}.{name}"
        warnings.warn(message, DeprecationWarning, stacklevel=2)
        return getattr(importlib.import_module(homes[name]), name)

    return attribute
