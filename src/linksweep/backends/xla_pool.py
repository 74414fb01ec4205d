"""Work of a handler in several threads: those of XLA's own pool, so that JAX's user decides how many there are.

    i64 threads(ptr frame, i64 most)              how many there are, no more than `most`; 1 where XLA has no pool
    i1 share(ptr frame, ptr job, i64 pieces)      does a job in so many; whether all of it is done. The job is gone

A job is memory from malloc that begins with four numbers: who holds it (1), a counter that blocks are taken from, how
many threads of the pool are at it (0), and how many samples there are. What follows is for `i1 part(ptr job)`, which
the module has to define, by `part_ir`: it takes block after block until none is left, and is false where it had no
memory to begin.

The calling thread works too, and waits only for threads that have begun. A task that the pool begins later finds no
block left and looks at nothing but the job: whoever leaves it last frees it.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

POOLED = 20e3  # ns of work for each thread, at least. They look for work a while before they sleep: 2,048 samples
# of UR5's forward dynamics, 47 us alone, take two 29 us; after a pause both take 140
HEAD = 32  # bytes of a job before what is its own
_WHOLE_API = 152  # bytes of XLA's table of functions that has the pool's two
_LOOKS = 200  # at threads that are about to finish, before sleeping

POOL_IR = f"""
declare i32 @sched_yield()
declare i32 @usleep(i32)

define internal void @leave(ptr %job) {{
  %before = atomicrmw sub ptr %job, i64 1 acq_rel
  %last = icmp eq i64 %before, 1
  br i1 %last, label %drop, label %done
drop:
  call void @free(ptr %job)
  br label %done
done:
  ret void
}}

define void @task(ptr %job) {{
  %counter = getelementptr i64, ptr %job, i64 1
  %active = getelementptr i64, ptr %job, i64 2
  %n_at = getelementptr i64, ptr %job, i64 3
  %began = atomicrmw add ptr %active, i64 1 seq_cst
  fence seq_cst  ; either the caller sees this thread at work, or this thread sees that nothing is left
  %taken = load atomic i64, ptr %counter seq_cst, align 8
  %n = load i64, ptr %n_at
  %some = icmp slt i64 %taken, %n
  br i1 %some, label %work, label %end
work:
  %could = call i1 @part(ptr %job)
  br label %end
end:
  %ended = atomicrmw sub ptr %active, i64 1 seq_cst
  call void @leave(ptr %job)
  ret void
}}

define internal void @destroy(ptr %api, ptr %error) {{
  %args = alloca [3 x i64]
  %at1 = getelementptr i64, ptr %args, i64 1
  %at2 = getelementptr i64, ptr %args, i64 2
  store i64 24, ptr %args
  store ptr null, ptr %at1
  store ptr %error, ptr %at2
  %where = getelementptr i8, ptr %api, i64 64
  %function = load ptr, ptr %where
  call void %function(ptr %args)
  ret void
}}

define internal i64 @threads(ptr %frame, i64 %most) {{
  %several = icmp sgt i64 %most, 1
  %api_at = getelementptr i8, ptr %frame, i64 16
  %api = load ptr, ptr %api_at
  %context_at = getelementptr i8, ptr %frame, i64 24
  %context = load ptr, ptr %context_at
  %size = load i64, ptr %api
  %has = icmp uge i64 %size, {_WHOLE_API}
  %worth = and i1 %several, %has
  br i1 %worth, label %ask, label %alone
ask:
  %args = alloca [4 x i64]
  %found = alloca i64
  %at1 = getelementptr i64, ptr %args, i64 1
  %at2 = getelementptr i64, ptr %args, i64 2
  %at3 = getelementptr i64, ptr %args, i64 3
  store i64 32, ptr %args
  store ptr null, ptr %at1
  store ptr %context, ptr %at2
  store ptr %found, ptr %at3
  store i64 1, ptr %found
  %where = getelementptr i8, ptr %api, i64 144
  %function = load ptr, ptr %where
  %error = call ptr %function(ptr %args)
  %good = icmp eq ptr %error, null
  br i1 %good, label %told, label %none
told:
  %count = load i64, ptr %found
  %few = icmp slt i64 %count, %most
  %pieces = select i1 %few, i64 %count, i64 %most
  ret i64 %pieces
none:
  call void @destroy(ptr %api, ptr %error)
  br label %alone
alone:
  ret i64 1
}}

define internal i1 @share(ptr %frame, ptr %job, i64 %pieces) {{
entry:
  %args = alloca [5 x i64]
  %api_at = getelementptr i8, ptr %frame, i64 16
  %api = load ptr, ptr %api_at
  %context_at = getelementptr i8, ptr %frame, i64 24
  %context = load ptr, ptr %context_at
  %at1 = getelementptr i64, ptr %args, i64 1
  %at2 = getelementptr i64, ptr %args, i64 2
  %at3 = getelementptr i64, ptr %args, i64 3
  %at4 = getelementptr i64, ptr %args, i64 4
  store i64 40, ptr %args
  store ptr null, ptr %at1
  store ptr %context, ptr %at2
  store ptr @task, ptr %at3
  store ptr %job, ptr %at4
  br label %next
next:
  %i = phi i64 [ 1, %entry ], [ %i.next, %scheduled ]
  %more = icmp slt i64 %i, %pieces
  br i1 %more, label %schedule, label %own
schedule:
  %held = atomicrmw add ptr %job, i64 1 acq_rel
  %where = getelementptr i8, ptr %api, i64 136
  %function = load ptr, ptr %where
  %error = call ptr %function(ptr %args)
  %good = icmp eq ptr %error, null
  br i1 %good, label %scheduled, label %failed
scheduled:
  %i.next = add i64 %i, 1
  br label %next
failed:
  call void @destroy(ptr %api, ptr %error)
  call void @leave(ptr %job)
  br label %own
own:
  %could = call i1 @part(ptr %job)
  br i1 %could, label %rest, label %stop
stop:
  %counter = getelementptr i64, ptr %job, i64 1
  %n_at = getelementptr i64, ptr %job, i64 3
  %n = load i64, ptr %n_at
  %taken = atomicrmw add ptr %counter, i64 %n seq_cst  ; nothing is left to be taken
  %by_others = icmp sge i64 %taken, %n
  br label %rest
rest:
  %done = phi i1 [ true, %own ], [ %by_others, %stop ]
  fence seq_cst
  %active = getelementptr i64, ptr %job, i64 2
  br label %look
look:
  %looks = phi i64 [ 0, %rest ], [ %looks.next, %waited ]
  %others = load atomic i64, ptr %active seq_cst, align 8
  %alone = icmp eq i64 %others, 0
  br i1 %alone, label %finished, label %wait
wait:
  %looks.next = add i64 %looks, 1
  %short = icmp slt i64 %looks, {_LOOKS}
  br i1 %short, label %yield, label %sleep
yield:
  %yielded = call i32 @sched_yield()
  br label %waited
sleep:
  %slept = call i32 @usleep(i32 50)
  br label %waited
waited:
  br label %look
finished:
  call void @leave(ptr %job)
  ret i1 %done
}}
"""


def part_ir(workspace: int, work: Sequence[str]) -> list[str]:
    """`part`, around `work`, which has %job, %counter, and in %work so many bytes that are the thread's own."""
    return [
        "define internal i1 @part(ptr %job) {",
        f"  %memory = call ptr @malloc(i64 {workspace + 64})",
        "  %none = icmp eq ptr %memory, null",
        "  br i1 %none, label %poor, label %go",
        "poor:",
        "  ret i1 false",
        "go:",
        "  %address = ptrtoint ptr %memory to i64",
        "  %below = sub i64 0, %address",
        "  %pad = and i64 %below, 63",
        "  %work = getelementptr i8, ptr %memory, i64 %pad",
        "  %counter = getelementptr i64, ptr %job, i64 1",
        *work,
        "  call void @free(ptr %memory)",
        "  ret i1 true",
        "}",
    ]


def pool_symbols() -> dict[str, int]:
    """Addresses that this needs, of this process."""
    libc = ctypes.CDLL(None)
    return {name: ctypes.cast(getattr(libc, name), ctypes.c_void_p).value or 0 for name in ("sched_yield", "usleep")}
