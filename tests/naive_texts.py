"""Schedules that a second reading once judged wrong, though they do what their steps say."""

CORRECT = {
    "a kernel before that needs what a stage of the last kernel reads": "input Q: float32[i: 3, k: 3] input K: float32[j: 9, k: 3]"
    " S[i, j] = sum[k] Q[i, k] * K[j, k] W[i, j] = S[i, j] * 2.0 P[i] = max[j] W[i, j] T[i] = sum[j] exp(W[i, j] - P[i])"
    " output O[i] = T[i] | tile i=2 -> block; compute W in shared; load Q in shared; tile i=1 -> thread",
    "a load above a stage that is an output, over the axes of the kernel's reduction": "input X: float32[i: 2, j: 5]"
    " output N[i] = max[j] X[i, j] output Y[i] = max[j] where(X[i, j] < N[i], X[i, j], 0.0)"
    " | tile i=1 -> block; tile j=2 -> thread; load X in shared; compute N in register",
    "a stage of a kernel before, which the last kernel makes itself": "input X: float32[a: 2, b: 3, c: 4]"
    " T[a, b] = sum[c] X[a, b, c] output P[a, b] = T[a, b] + 1.0 output U[a] = T[a, 0] * 2.0"
    " | compute U in global { tile a=1 -> block; compute T in shared }; tile a=1 b=2 -> block;"
    " load X in shared; tile b=1 -> thread",
    "a sum read at [l, k] and at [k, l] is a kernel of its own": "input A: float32[p: 6, l: 5] input B: float32[k: 5, p: 6]"
    " C[l, k] = sum[p] A[p, l] * B[k, p] output D[l, k] = min(C[l, k], C[k, l] + 1.0) | tile l=4 -> block",
    "a sum without axes is read element for element": "input M: bool[i: 8] output G[] = not (any[i] M[i])"
    " | accumulate in register",
    "a stage that is an output, which another output reads": "input X: float32[i: 6, n: 8] output D[i, n] = X[i, n] * 2.0"
    " output Y[i, n] = D[i, 7 - n] | tile i=4 -> block; split n=4; compute D in shared; tile i=1 -> thread",
    "a stage of which only the second member is read": "input X: float32[m: 6, l: 4] combiner both(a: int64, p: float32;"
    " b: int64, q: float32) { a + b, min(p, q) identity 0, inf } A[l], B[l] = reduce both[m] (1, X[m, l])"
    " output Y[l] = B[l] + 1.0 | tile l=2 -> block; compute A in shared; tile l=1 -> thread",
    "a stage that a later stage reads which has a kernel of its own": "input X: float32[m: 6, n: 8] C[m] = sum[n] X[m, n]"
    " output E[m, n] = X[m, 0] + C[m] output G[n, m] = E[m, n] | compute E in global; tile m=1 -> thread 3;"
    " compute C in register; compute E in register",
    "a region of rows that only some blocks have": "input X: float32[i: 5, k: 7] input W: float32[k: 7, j: 6]"
    " S[i, j] = sum[k] X[i, k] * W[k, j] output Y[i, j] = max(S[i, j], 0.0) | tile i=4 -> block;"
    " compute S in shared { split k=2; load W in shared; tile i=1 j=2 -> thread }; tile i=1 j=2 -> thread",
    "a stage that is made a part of its sum at a time": "input X: float32[i: 5, k: 7] S[i] = sum[k] X[i, k]"
    " output Y[i] = S[i] * 2.0 | tile i=4 -> block; compute S in shared { split k=2; accumulate in shared }; tile i=1 -> thread",
    "a load that runs ahead of another": "input X: float32[i: 8, k: 12] output Y[i] = sum[k] X[i, k] | tile i=8 -> block;"
    " accumulate in register; split k=4; load X in shared { tile i=1 k=4 -> thread };"
    " load X in shared ahead 1 { tile i=2 k=2 -> thread }; tile i=1 -> thread",
    "two loads, the second running ahead, outside of any walk": "input X: float32[i: 8, k: 12] output Y[i] = sum[k] X[i, k]"
    " | tile i=8 -> block; accumulate in register; load X in shared { tile i=1 k=4 -> thread };"
    " load X in shared ahead 1 { tile i=2 k=2 -> thread }; tile i=1 -> thread",
    "a load of what another kernel made before it is computed again": "input X: float32[k: 4, i: 6] S[k] = sum[i] X[k, i]"
    " output Y[k] = S[k] * pad(S[k - 1], 0.0) output F[k, i] = S[k] + X[k, i] | tile k=4 -> block; load S in shared;"
    " compute S in register",
    "a stage that is read at remainders": "axis i: 8 input X: float32[n: 16] S[n] = X[n] * 2.0 output Y[n] = sum[i] S[(i + 5) % 16]"
    " | tile n=8 -> block; compute S in shared; tile n=1 -> thread",
    "registers for reads of several forms": "input X: float32[n: 48] output Y[n] = X[n * 4] + X[n + 16] axis n: 8"
    " | tile n=8 -> block; load X in register; tile n=2 -> thread",
    "walks over pieces longer than what they are in": "input X: int32[i: 8, k: 5] E[i, k] = X[i, k] * 2"
    " output Y[k, i] = E[k + 3, k] | tile k=1 i=5 -> thread; load X in shared; split k=8; split k=2; split k=1 i=2;"
    " compute E in shared",
    "a load in the walk of a sum, which a value of the whole sum reads": "input X: float32[m: 17, k: 8] input B: float32[m: 17]"
    " output Y[m] = (sum[k] X[m, k]) * B[m] | tile m=16 -> block; split k=4; load B in shared; tile m=3 -> thread",
    "a kernel before that of an output that it reads": "input V: float32[n: 4] input B: float32[p: 5] input X: float32[n: 4, p: 5]"
    " T[] = sum[n] V[n] output G[n] = V[n] + 1.0 output D[p] = T[] * B[p] output Z[n] = sum[p] D[p] * X[n, p]"
    " | compute Z in global { tile n=1 -> block }",
    "a stop of an output that is a stage, too": "input X: uint32[n: 8, l: 8] output A[l, n] = X[l, n] * 2"
    " output B[l, n] = pad(A[n - 1, n], 7) + X[n, l] output C[n, l] = B[3, n] | tile l=2 -> block; via shared;"
    " compute B in shared; tile n=4 l=1 -> thread",
    "a sum that joins no kernel, for the output pads it, too": "axis n: 5 axis k: 4 axis q: 3 axis j: 4 input X: float32[n: 6, q: 3]"
    " input B: float32[k: 4, j: 4] G[n, k] = sum[q] X[n, q] output Z[k, n] = pad(G[n, n + 1], 0.0) + G[n, k]"
    " output Y[k, n] = max[j] B[k, j] | tile k=1 n=5 -> block",
    "a stage at remainders that begins within its tensor": "axis n: 3 axis j: 8 input X: float32[a: 12, n: 3]"
    " S[j] = sum[n] pad(X[j + n - 1, n], 0.0) output Y[j] = S[j % 8] + S[j] | tile j=4 -> block;"
    " compute S in shared { tile j=8 n=4 -> thread; vectorize j=4 }; split j=1; tile j=4 -> thread",
    "an index that goes down along a fused axis": "input X: int32[p: 7] input Z: int32[q: 24] output Y[q, p] = Z[q] + X[6 - p]"
    " | fuse pq=(p, q); tile pq=3 -> block; tile pq=4 -> thread order (pq); load X in register",
    "a fused reduction that is empty": "input X: int32[i: 4, j: 0, k: 4] output Y[i] = max[j, k] X[i, j, k]"
    " | fuse jk=(j, k); tile i=3 jk=2 -> block order (jk, i); accumulate in shared; split jk=2; tile i=2 -> thread",
    "parts of a reduction that is computed where nothing reads it": "axis j: 4 axis n: 6 axis p: 17 input B: float32[d: 21, e: 7]"
    " S[j] = (sum[n] B[n, j]) + 1.0 output Y[j] = exp(max[p] min(S[j], B[p, 0])) | tile p=8 -> block; compute Y in register;"
    " compute S in register",
    "registers of threads that take tiles of two axes in rounds": "input X: float32[i: 1, j: 2] output Y[i, j] = pad(X[i, j - 1], 0.0)"
    " | tile i=2 j=8 -> block; load X in register; tile i=5 j=1 -> thread 5 order (j, i)",
    "a stage in a sum's walk, which a value beside the sum finds where a kernel made it": "axis i: 4 input X: int32[k: 6, i: 4]"
    " C[k] = max[i] X[k, i] output Y[k] = sum[i] (X[k, i] + C[k]) output Z[k] = abs(C[k]) output E[k, i] = X[k, i] * C[k]"
    " | compute E in global; tile k=4 -> block; accumulate in register; split i=2; compute C in register",
    "an output with steps of its own, which the last kernel makes again": "input X: int32[j: 5, k: 13] output Y[] = max[j, k] X[j, k]"
    " | accumulate in register; compute Y in global { tile k=1 j=8 -> thread; load X in register }",
    "a kernel of which one of two states is an output": "combiner both(a: int32, p: int32; b: int32, q: int32) { a + b, min(p, q)"
    " identity 0, 100 } axis p: 4 axis k: 4 axis j: 2 axis n: 6 axis m: 3 input B: int32[b: 8] input M: int32[m: 3]"
    " output D[p, k], E[p, k] = reduce both[j, n] (B[3 - p], cast(j, int32)) only E output F[k, p] = prod[m] M[m]"
    " output Z[k, p] = F[k, p] + D[p, k] | fuse jn=(j, n); tile p=2 k=4 -> block; load F in shared; accumulate in register; split jn=4",
    "reads of which one moves with the blocks and one does not": "input A: float32[a: 11, b: 8] axis n: 8 axis m: 2"
    " output F[n, m] = A[n, 0] + A[m * 2, 0] | tile n=4 -> block; split m=4; load A in shared; tile n=1 -> thread",
    "sums over several axes, of which others need some whole": "input X: float32[n: 6, q: 8] input Z: float32[l: 5, q: 8] axis i: 3"
    " output F[q] = cast(sum[n] X[n, q], float16) output Y[q] = min[i] (X[i, q] * F[q]) output G[q] = 0.0 - (max[l] Z[l, q])"
    " | tile i=2 -> block; accumulate in register",
    "what a warp without tiles puts in shared memory": "input A: float32[p: 5, l: 5] input B: float32[p: 5, n: 16]"
    " output C[l, n] = sum[p] A[p, l] * B[p, n] | units block = 4 warp; split n=12; tile l=4 n=5 -> warp 3; accumulate in register;"
    " split l=4 p=5 n=3; load B in shared; split l=4 p=5 n=3",
    "a block behind the end of a sum, whose part is the identity": "input A: float32[m: 2, k: 7] output Y[k] = sum[m] A[m, k]"
    " | split m=7; tile m=5 -> block; accumulate in register; tile k=1 -> thread",
    "a sum that another one needs whole, beside which the other has no need of a kernel": "axis p: 3 axis m: 12"
    " input B: uint16[m: 12, p: 3] D[] = sum[p, m] B[m, p] output C[] = D[] + 1 output E[] = min(argmax[m] D[], 2)"
    " | accumulate in register; split m=4",
    "registers for what is read at remainders through a definition": "input A: float32[m: 24] axis p: 32 Z[m] = abs(A[m])"
    " output C[p] = Z[p % 24] + pad(Z[p + 1], 0.0) | tile p=32 -> block; load A in register; tile p=1 -> thread",
    "registers for what is read at quotients through a definition": "input A: float32[m: 34] axis p: 32 Z[m] = abs(A[m])"
    " output C[p] = Z[p // 2] + Z[p + 1] | tile p=32 -> block; load A in register; tile p=4 -> thread",
    "registers for what another output reads at remainders through an output": "axis i: 16 axis p: 8 input T: int32[a: 8] in 0 .. 6"
    " input A: int32[b: 128, c: 8] output Y[i, p] = A[i * 8 + p, T[p] + 1] output Z[p, i] = Y[p, (p + 0) % 8] * Y[i, p]"
    " | tile i=4 p=2 -> block; split p=2 i=4; tile i=2 p=4 -> thread; load T in register",
    "a stop of a stage at remainders": "axis q: 17 axis j: 6 input A: int32[q: 17, j: 6] output G[q, j] = A[q, j] + 1"
    " output Z[q, j] = G[q, q % 6] + 2 | tile q=2 j=8 -> block; compute G in shared layout (j, q); split j=8;"
    " compute G in shared { tile j=8 q=32 -> thread; via shared; vectorize j=2 }; tile q=32 j=8 -> thread",
    "a stage for a cut that is longer than the piece it is in": "axis p: 17 input A: int32[d: 6] E[p] = A[p % 5]"
    " Y[p] = E[p] + where(p != 4, E[p], 2) output C[p] = Y[p] + 1 | tile p=32 -> block; split p=5; load A in shared; split p=16;"
    " compute Y in shared { tile p=4 -> thread }; tile p=5 -> thread",
    "registers for reads that move apart through a definition": "input A: float32[m: 90] axis p: 32 Z[m] = abs(A[m])"
    " output C[p] = Z[p * 2] + Z[p + 1] | tile p=32 -> block; load A in register; tile p=4 -> thread",
    "two sums over different axes, where all of the first is needed": "axis q: 5 axis n: 2 axis j: 7 input A: float32[a: 2]"
    " input B: float32[j: 7, q: 5] output F[q] = sum[n, j] A[n] output Z[q] = expm1(sum[j] min(F[q], B[j, q]))"
    " | tile q=2 j=4 -> block",
    "parts of a reduction that a definition written into the output reads": "input A: bfloat16[i: 1, l: 2]"
    " input B: bfloat16[p: 2, i: 1] C[l, p] = (sum[i] A[i, l] * B[p, i]) + 1.0 output D[l, p] = exp2(C[l, p])"
    " | tile l=4 i=8 -> block; vectorize l=16",
    "a stage that is computed again below a load for it": "axis n: 4 axis k: 1 axis l: 33 input A: int32[a: 4]"
    " Z[k, l] = A[k // 3] + l C[l] = where(l < 4, pad(Z[l, l], 1), 2) output E[n, k, l] = Z[k, l] * C[32 - k]"
    " | tile k=2 l=8 -> block 5; compute C in register; tile l=16 -> thread; load A in register; compute C in register",
    "registers for what is read where another tensor says": "axis m: 4 axis n: 17 input T: uint32[a: 17] in 0 .. 15"
    " input B: float32[b: 3, c: 15] output C[m, n] = pad(B[m - 1, T[n]], 0.0) | units block = 4 thread; tile n=1 m=8 -> block;"
    " load B in register; split n=1; tile n=16 -> thread",
    "a stage that could be one more state, where blocks have parts of the other": "input X: float32[i: 16, k: 8]"
    " input Z: float32[i: 16, k: 8] S[i] = sum[k] X[i, k] T[i] = sum[k] Z[i, k] output Y[i] = S[i] * T[i]"
    " | tile i=16 k=4 -> block; compute T in shared",
    "what is read beside a reduction, through a definition": "input A: float32[n: 8, m: 20] input B: float32[m: 20, i: 16] axis n: 8"
    " axis m: 20 F[n, m] = where(m != n, 0.5, exp2(A[n, m])) output E[m] = (min[i] B[m, i]) * F[m % 8, m]"
    " | tile m=1 -> block; load A in shared; tile i=1 -> thread",
    "a condition on what a kernel made of the same input": "input B: float32[b: 6] axis n: 16 axis q: 5"
    " output F[q] = (min[n] B[n % 3]) + where((pad(B[q + 1], -inf) > 0.5) or (q <= 4), 1.0, 2.0) output G[n] = sum[q] F[q] + n | ",
    "tiles of a result and of a reduction, where a warp is left over in a round": "input A: int32[a: 32] axis q: 8 axis l: 4"
    " output G[q] = max[l] A[q * 4 + l] | units block = 2 warp; tile q=32 -> block; split l=8 unroll; tile q=2 l=3 -> warp;"
    " load A in register",
    "threads in rounds of an order in which the first axis is not the slowest": "input A: int32[m: 16, k: 5]"
    " input B: int32[i: 16, k: 5] output C[m, i] = sum[k] A[m, k] * B[i, k] | tile m=8 i=8 -> block; split k=5;"
    " load A in shared; tile i=2 m=2 -> thread 7 order (m, i); load B in shared",
    "a state of the output that a stage needs whole": "axis m: 4 axis k: 3 input B: float32[b: 3, m: 4] E[m] = min[k] B[k, m]"
    " G[m, k] = E[k] + 1.0 output C[m] = E[m] + pad(G[m, m], 0.0) | tile m=4 -> block; compute G in register",
    "a reduction read by element, and by another reduction": "input I: int32[i: 4] input X: int32[j: 5] D[] = min(argmin[i] I[i], 2)"
    " output Y[] = D[] + (max[j] X[j] - D[]) | tile j=2 -> thread",
    "a reduction that one output reads by element, and another's reduction": "input I: int32[i: 4] input X: int32[j: 5]"
    " input W: int32[j: 5] D[] = min(argmin[i] I[i], 2) output Y[] = D[] + (sum[j] W[j])"
    " output Z[] = max[j] X[j] - D[] | tile j=2 -> thread",
    "an index of bytes that is computed in 32 bits": "input I: uint8[i: 6] input X: int32[a: 5]"
    " output Y[i] = X[min(cast(1 - I[i], int64), 4)] | tile i=2 -> thread",
}


CORRECT_ON_DEVICES = {  # the same, after the profile for which they are lowered
    "more blocks than a cluster has, for its tiles": "hopper | input B: float32[b: 10, a: 161] axis n: 33 axis q: 7"
    " output Y[n, q] = pad(B[q + 2, n * 5 - 1], -2.0) | units cluster = 4 block; tile q=3 -> cluster; tile q=2 n=8 -> block 6;"
    " split n=2; load B in shared ahead 2 { tile a=2 b=32 -> thread }; tile q=8 n=2 -> thread",
    "blocks that take the numbers of an order in rounds": "cdna3 | input X: int16[a: 5, b: 3, j: 5] axis t: 15"
    " output Y[t, j] = X[t // 3, t % 3, j] | units block = 1 thread; tile t=5 j=6 -> block 5 order (t, j / 2 ^ t % 4, j % 2);"
    " via shared; tile t=1 j=7 -> thread",
    "a stage cut wider than its piece, which holds more than is read": "zen5 | input X: int32[i: 1, j: 2]"
    " S[i, j] = where(j > i, X[i, j], 5) output Y[i, j] = S[i, j] + 1 | tile j=1 -> thread; split j=5; load X in shared ahead 1;"
    " compute S in shared",
    "a reduction read at the kernel's axes through one that is read at others": "zen5 | input B: float32[n: 9, m: 8] axis n: 9"
    " axis m: 8 E[n] = prod[m] B[n, m] C[m, n] = E[n] * B[n, m] output D[n] = E[n] + pad(C[n - 1, n], 1.0) | tile n=4 -> block",
    "an output that is a sum, which another reads turned": "zen5 | input A: float32[k: 5, j: 3, p: 3]"
    " output C[j, p] = sum[k] A[k, j, p] output D[j, p] = C[p, j] + 1.0 | tile j=2 -> block",
    "two loads of a role": "hopper | input B: float32[b: 16, a: 8] axis n: 16 axis m: 8 output D[n, m] = B[n, m] + 1.0"
    " | units block = 2 warp as producer + 2 warp as consumer; tile n=5 -> block;"
    " load B in shared on producer { tile b=4 -> thread }; load B in shared layout (a, b) on producer; tile n=1 -> consumer",
    "a load in global memory before a kernel of its own": "zen5 | input A: int32[k: 2, l: 2] input B: int32[q: 1, k: 2]"
    " output C[l, q] = sum[k] A[k, l] * B[q, k] | load A in global layout (l, k); compute C in global { tile q=3 -> warp }",
    "registers at quotients of quotients, through a definition": "ampere | input B: float32[b: 33, p: 8] axis l: 33 axis q: 1"
    " axis m: 8 Y[l, p] = abs(B[32 - l, p]) G[q] = sum[p] Y[q * 2, p] output Z[m] = G[m // 8] | tile m=3 -> block 2;"
    " load B in register { tile b=4 -> thread }; compute G in register",
    "a move whose vectors are wider than its tiles, by way of registers": "zen5 | input A: int32[i: 16, n: 8]"
    " input B: int32[k: 16, i: 16] output C[n, k] = sum[i] A[i, n] * B[k, i] | tile n=1 k=4 -> block; accumulate in register;"
    " split i=2; load B in shared { load B in register; tile k=2 i=8 -> thread; vectorize k=4 }; tile n=2 k=2 -> thread",
    "a padded read where another tensor says, for a thread without a point": "cdna3 | input X: int32[n: 8, k: 20]"
    " input T: int32[i: 31] in 0 .. 8 output Y[i] = max[k] pad(X[T[i], k * 3], 0) | tile i=32 -> block;"
    " load T in register { tile i=1 -> thread; vectorize i=4 }; accumulate in register; tile i=1 -> thread",
    "a stage by its first member, of which another output reads the second": "zen5 | axis m: 0 axis k: 4 axis p: 4"
    " input A: int64[k: 4, m: 0] input B: int64[p: 4, m: 0] combiner both(a: int64, p: int64; b: int64, q: int64) { a + b, p * q"
    " identity 0, 1 } output F[k, p], G[k, p] = reduce both[m] (A[k, m], B[p, m]) output E[k, p] = max[m] max(G[p, k], 2)"
    " | tile k=4 p=4 -> block; accumulate in register; compute F in register",
    "a stage that the last round of a sum needs less of": "cdna3 | input X: int8[i: 4, j: 13] P[i, j] = X[i, j]"
    " output Y[i] = sum[j] P[i, j] | tile j=4 -> block; accumulate in shared; split j=3;"
    " compute P in register { tile j=1 -> thread; load X in shared }",
    "threads beyond the tiles, in an order": "ampere | axis n: 13 axis i: 24 input A: int32[a: 14, b: 24] input M: int32[c: 24, d: 16]"
    " output Z[i, n] = A[n, i] + 1 output Y[n, i] = M[23 - i, n + 3] | units block = 1 warp; tile n=8 -> block;"
    " tile n=4 i=5 -> thread order (i, n); load M in register; load A in register",
    "a cluster's blocks that take tiles in rounds, the last of them none": "hopper | axis k: 40 axis q: 6 input B: float32[b: 6]"
    " output F[k, q] = B[q] + 1.0 | units cluster = 2 block; tile k=2 -> cluster; tile k=4 q=2 -> block; tile k=2 q=8 -> warp;"
    " load B in register { split b=1 }",
    "results between a state in shared memory and their stop": "hopper | axis n: 4 axis l: 16 input A: int16[a: 31, b: 4]"
    " output E[l] = min[n] A[l * 2, n] output Z[l] = A[(l + 11) % 31, l % 4] % 7 | tile l=8 -> block;"
    " accumulate in shared { via shared pad 1; tile l=2 -> thread; vectorize l=4 }; tile l=2 n=4 -> thread",
}
