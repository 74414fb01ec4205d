# %% setup
import numpy as np

import linksweep as ls

arm = ls.robots.planar(2)
f = arm.compile("inverse_dynamics")
q, qd, qdd = np.array([0.3, 0.5]), np.array([1.0, 2.0]), np.zeros(2)
# %% CompiledFunction
print(f)
f(q, qd, qdd)
# %% CompiledFunction.computation
type(f.computation.parts[0]).__name__
# %% CompiledFunction.dtype, CompiledFunction.threads, CompiledFunction.backend
f.dtype, f.threads, f.backend
# %% CompiledFunction.signature
f.signature.inputs
# %% CompiledFunction.c_header
print(f.c_header("torques")[:200])
# %% CompiledFunction.c_source
print(len(f.c_source("torques").splitlines()), "lines of C99")
# %% CompiledFunction.source
print(f.source("javascript", "torques").splitlines()[-1])
# %% CompiledFunction.counts
f.counts
# %% CompiledFunction.derivative
f.derivative("qd")(q, qd, qdd)
# %% CompiledFunction.inputs, CompiledFunction.outputs
f.inputs, f.outputs
# %% CompiledFunction.kernel
type(f.kernel("float64")).__name__
# %% CompiledFunction.llvm_ir
f.llvm_ir[:12]
# %% CompiledFunction.name
f.name
# %% CompiledFunction.opencl
import pyopencl as cl
from pyopencl.array import to_device

queue = cl.CommandQueue(cl.create_some_context(interactive=False))
batch = [to_device(queue, np.tile(x[:, None], 1000)) for x in (q, qd, qdd)]
tau = f.opencl(queue)(*batch)  # arrays of the device, batch axis last
tau.shape
# %% CompiledFunction.program
type(f.program).__name__
# %% BaseParameters
base = arm.base_parameters()
print(base)
# %% Counts
counts = arm.operation_count("mass_matrix")
counts.mul, counts.add, counts.total
# %% Details
tau, details = arm.inverse_dynamics(q, qd, qdd, details=True)
sorted(details)
# %% Explanation
found = arm.explain("gravity_forces", q=[0.3, 0.5])
found.result
# %% Factor
factor = arm.factor(q)
assert np.allclose(
    factor.L @ np.diag(factor.D) @ factor.L.T, arm.mass_matrix(q)
)
factor.D
# %% Symbolic
gravity = arm.symbolic("gravity_forces", simplify=True)
gravity.expressions[1]
