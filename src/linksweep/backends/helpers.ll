; Threads that share a run of machine code without Python: see helpers.py.
;
; %pool: most helpers, how many there are, how many there should be, `share`, a lock that is never free, then the boxes
; of the helpers (null: not there yet). %box: its state, and a lock that its helper sleeps on. The state is $AWAKE, $ASLEEP or
; $BUSY, or the address of a job that waits to be taken.
; %job: the arguments of the kernel, the kernel, bytes of workspace, the caller's core, regions and their length, their
; counters, who comes next, who is still at it. It stands on the caller's stack: nobody looks at it who has not taken it,
; and the caller leaves when all who took it have said that they are done.
; %counter: where the next block of a region begins, in cache lines of its own.
%pool = type { i64, i64, i64, ptr, ptr, [0 x ptr] }
%box = type { ptr, ptr }
%job = type { i64, ptr, ptr, ptr, ptr, i64, ptr, i64, i64, i64, i64, ptr, [4 x i64], i64, i64 }
%counter = type { i64, [15 x i64] }
declare i32 @PyThread_acquire_lock(ptr, i32)
declare i32 @PyThread_acquire_lock_timed(ptr, i64, i32)
declare void @PyThread_release_lock(ptr)
declare ptr @malloc(i64)
declare void @free(ptr)
declare i32 @sched_yield()
declare i32 @clock_gettime(i32, ptr)
$CORES

; Nanoseconds since some moment.
define internal i64 @now() {
  %time = alloca [2 x i64]
  %told = call i32 @clock_gettime(i32 $CLOCK, ptr %time)
  %seconds = load i64, ptr %time
  %rest.at = getelementptr i64, ptr %time, i64 1
  %rest = load i64, ptr %rest.at
  %whole = mul i64 %seconds, 1000000000
  %now = add i64 %whole, %rest
  ret i64 %now
}

; Leave this core to the caller, if there is another: a busy system wakes helpers on the core of who wakes them, where
; they wait for it. What the thread may run on is as before.
define internal void @leave(i64 %core) {
  %mask = alloca [$MASK x i8], align 8
  %got = call i32 @sched_getaffinity(i32 0, i64 $MASK, ptr %mask)
  %failed = icmp slt i32 %got, 0
  %byte = udiv i64 %core, 8
  %beyond = icmp uge i64 %byte, $MASK
  %cannot = or i1 %failed, %beyond
  br i1 %cannot, label %end, label %go
go:
  %place = getelementptr i8, ptr %mask, i64 %byte
  %bit = urem i64 %core, 8
  %bit.byte = trunc i64 %bit to i8
  %own = shl i8 1, %bit.byte
  %others = xor i8 %own, -1
  %before = load i8, ptr %place
  %without = and i8 %before, %others
  store i8 %without, ptr %place
  %left = call i32 @sched_setaffinity(i32 0, i64 $MASK, ptr %mask)
  store i8 %before, ptr %place
  %as.before = call i32 @sched_setaffinity(i32 0, i64 $MASK, ptr %mask)
  br label %end
end:
  ret void
}

; Take blocks until none is left, of the own region first: whole stretches of memory for each core, which reads ahead.
define internal void @run(ptr %job, i64 %own, ptr %work) {
entry:
  %n = load i64, ptr %job
  %in.at = getelementptr %job, ptr %job, i64 0, i32 1
  %in = load ptr, ptr %in.at
  %in_strides.at = getelementptr %job, ptr %job, i64 0, i32 2
  %in_strides = load ptr, ptr %in_strides.at
  %out.at = getelementptr %job, ptr %job, i64 0, i32 3
  %out = load ptr, ptr %out.at
  %out_strides.at = getelementptr %job, ptr %job, i64 0, i32 4
  %out_strides = load ptr, ptr %out_strides.at
  %block.at = getelementptr %job, ptr %job, i64 0, i32 5
  %block = load i64, ptr %block.at
  %kernel.at = getelementptr %job, ptr %job, i64 0, i32 6
  %kernel = load ptr, ptr %kernel.at
  %regions.at = getelementptr %job, ptr %job, i64 0, i32 9
  %regions = load i64, ptr %regions.at
  %length.at = getelementptr %job, ptr %job, i64 0, i32 10
  %length = load i64, ptr %length.at
  %counters.at = getelementptr %job, ptr %job, i64 0, i32 11
  %counters = load ptr, ptr %counters.at
  br label %next
next:
  %k = phi i64 [ 0, %entry ], [ %k.next, %seen ]
  %k.next = add i64 %k, 1
  %more = icmp slt i64 %k, %regions
  br i1 %more, label %see, label %end
see:
  %moved = add i64 %own, %k
  %region = urem i64 %moved, %regions
  %after = add i64 %region, 1
  %stop = mul i64 %after, %length
  %inside = icmp slt i64 %stop, %n
  %until = select i1 %inside, i64 %stop, i64 %n
  %counter = getelementptr %counter, ptr %counters, i64 %region
  %from = load atomic i64, ptr %counter monotonic, align 8
  %left = icmp slt i64 %from, %until
  br i1 %left, label %go, label %seen
go:
  call void %kernel(i64 %until, ptr %in, ptr %in_strides, ptr %out, ptr %out_strides, ptr %work, ptr %counter, i64 %block)
  br label %seen
seen:
  br label %next
end:
  ret void
}

; The life of a helper. It begins asleep, and never ends.
define void @serve(ptr %box) {
entry:
  %lock.at = getelementptr %box, ptr %box, i64 0, i32 1
  %lock = load ptr, ptr %lock.at
  br label %sleep
sleep:
  %woken = call i32 @PyThread_acquire_lock(ptr %lock, i32 1)
  %why = load atomic ptr, ptr %box acquire, align 8
  %still = icmp eq ptr %why, inttoptr (i64 $ASLEEP to ptr)
  br i1 %still, label %sleep, label %look
look:  ; who comes too late sleeps again at once
  %until = phi i64 [ 0, %sleep ], [ %until, %rest ], [ 0, %doze ], [ 0, %take ], [ %stay, %done ]
  %state = load atomic ptr, ptr %box acquire, align 8
  %free = icmp eq ptr %state, inttoptr (i64 $AWAKE to ptr)
  br i1 %free, label %nothing, label %take
nothing:
  %now = call i64 @now()
  %long = icmp sge i64 %now, %until
  br i1 %long, label %doze, label %rest
rest:  ; whoever wants this core has it. If that takes long, this thread sleeps: woken, it may get another one
  %yielded = call i32 @sched_yield()
  br label %look
doze:
  %dozing = cmpxchg ptr %box, ptr inttoptr (i64 $AWAKE to ptr), ptr inttoptr (i64 $ASLEEP to ptr) seq_cst seq_cst
  %may = extractvalue { ptr, i1 } %dozing, 1
  br i1 %may, label %sleep, label %look
take:
  %taking = cmpxchg ptr %box, ptr %state, ptr inttoptr (i64 $BUSY to ptr) seq_cst seq_cst
  %taken = extractvalue { ptr, i1 } %taking, 1
  br i1 %taken, label %begin, label %look  ; else its caller was quicker, and may be gone
begin:
  %core = call i32 @sched_getcpu()
  %core.here = sext i32 %core to i64
  %core.at = getelementptr %job, ptr %state, i64 0, i32 8
  %core.there = load i64, ptr %core.at
  %close = icmp eq i64 %core.here, %core.there
  br i1 %close, label %away, label %prepare
away:
  call void @leave(i64 %core.here)
  br label %prepare
prepare:
  %size.at = getelementptr %job, ptr %state, i64 0, i32 7
  %size = load i64, ptr %size.at
  %needs = icmp sgt i64 %size, 0
  br i1 %needs, label %reserve, label %work
reserve:
  %bytes = add i64 %size, 64
  %reserved = call ptr @malloc(i64 %bytes)
  %none = icmp eq ptr %reserved, null
  br i1 %none, label %done, label %work  ; without memory the others do it
work:
  %held = phi ptr [ null, %prepare ], [ %reserved, %reserve ]
  %address = ptrtoint ptr %held to i64
  %below = sub i64 0, %address
  %pad = and i64 %below, 63
  %place = getelementptr i8, ptr %held, i64 %pad
  %next.at = getelementptr %job, ptr %state, i64 0, i32 13
  %own = atomicrmw add ptr %next.at, i64 1 monotonic
  call void @run(ptr %state, i64 %own, ptr %place)
  call void @free(ptr %held)
  br label %done
done:  ; first free, then done: the caller's next job finds this helper free
  %pending = getelementptr %job, ptr %state, i64 0, i32 14
  store atomic ptr inttoptr (i64 $AWAKE to ptr), ptr %box release, align 8
  %before = atomicrmw sub ptr %pending, i64 1 acq_rel
  %ended = call i64 @now()
  %stay = add i64 %ended, $STAY
  br label %look
}

; Give the job to so many helpers, those that are awake first. How many it lacks.
define internal i64 @post(ptr %pool, i64 %helpers, ptr %job) {
entry:
  %most = load i64, ptr %pool
  %pending = getelementptr %job, ptr %job, i64 0, i32 14
  br label %round
round:
  %second = phi i1 [ false, %entry ], [ true, %round.end ]
  %round.wanted = phi i64 [ %helpers, %entry ], [ %wanted, %round.end ]
  br label %next
next:
  %k = phi i64 [ 0, %round ], [ %k.next, %tried ]
  %wanted = phi i64 [ %round.wanted, %round ], [ %wanted.next, %tried ]
  %inside = icmp slt i64 %k, %most
  %some = icmp sgt i64 %wanted, 0
  %go = and i1 %inside, %some
  br i1 %go, label %try, label %round.end
try:
  %box.at = getelementptr %pool, ptr %pool, i64 0, i32 5, i64 %k
  %box = load atomic ptr, ptr %box.at acquire, align 8
  %there = icmp ne ptr %box, null
  br i1 %there, label %see, label %tried
see:
  %state = load atomic ptr, ptr %box acquire, align 8
  %is.awake = icmp eq ptr %state, inttoptr (i64 $AWAKE to ptr)
  %is.asleep = icmp eq ptr %state, inttoptr (i64 $ASLEEP to ptr)
  %wakes = and i1 %is.asleep, %second
  %can = or i1 %is.awake, %wakes
  br i1 %can, label %put, label %tried
put:
  %with = atomicrmw add ptr %pending, i64 1 monotonic
  %putting = cmpxchg ptr %box, ptr %state, ptr %job seq_cst seq_cst
  %has = extractvalue { ptr, i1 } %putting, 1
  br i1 %has, label %posted, label %back
back:
  %without = atomicrmw sub ptr %pending, i64 1 monotonic
  br label %tried
posted:
  %fewer = sub i64 %wanted, 1
  br i1 %is.asleep, label %wake, label %tried
wake:
  %lock.at = getelementptr %box, ptr %box, i64 0, i32 1
  %lock = load ptr, ptr %lock.at
  call void @PyThread_release_lock(ptr %lock)
  br label %tried
tried:
  %wanted.next = phi i64 [ %wanted, %try ], [ %wanted, %see ], [ %wanted, %back ], [ %fewer, %posted ], [ %fewer, %wake ]
  %k.next = add i64 %k, 1
  br label %next
round.end:
  %first = xor i1 %second, true
  %again = and i1 %first, %some
  br i1 %again, label %round, label %end
end:
  ret i64 %wanted
}

; Take the job out of the boxes where nobody has taken it.
define internal void @withdraw(ptr %pool, ptr %job) {
entry:
  %most = load i64, ptr %pool
  %pending = getelementptr %job, ptr %job, i64 0, i32 14
  br label %next
next:
  %k = phi i64 [ 0, %entry ], [ %k.next, %seen ]
  %k.next = add i64 %k, 1
  %inside = icmp slt i64 %k, %most
  br i1 %inside, label %see, label %end
see:
  %box.at = getelementptr %pool, ptr %pool, i64 0, i32 5, i64 %k
  %box = load atomic ptr, ptr %box.at acquire, align 8
  %there = icmp ne ptr %box, null
  br i1 %there, label %look, label %seen
look:
  %state = load atomic ptr, ptr %box acquire, align 8
  %ours = icmp eq ptr %state, %job
  br i1 %ours, label %try, label %seen
try:
  %trying = cmpxchg ptr %box, ptr %job, ptr inttoptr (i64 $AWAKE to ptr) seq_cst seq_cst
  %back = extractvalue { ptr, i1 } %trying, 1
  br i1 %back, label %without, label %seen
without:
  %fewer = atomicrmw sub ptr %pending, i64 1 monotonic
  br label %seen
seen:
  br label %next
end:
  ret void
}

; Run the kernel over n samples here and in so many helpers. Returns when nobody is at it any more.
define void @share(ptr %pool, i64 %helpers, ptr %kernel, i64 %n, ptr %in, ptr %in_strides, ptr %out, ptr %out_strides, ptr %work, i64 %block, i64 %size) {
entry:
  %regions = add i64 %helpers, 1
  %job = alloca %job, align 128
  %counters = alloca %counter, i64 %regions, align 128
  %step = mul i64 %regions, $MULTIPLE
  %step.less = sub i64 %step, 1
  %n.more = add i64 %n, %step.less
  %steps = udiv i64 %n.more, %step
  %length = mul i64 %steps, $MULTIPLE
  br label %region
region:
  %c = phi i64 [ 0, %entry ], [ %c.next, %region ]
  %counter = getelementptr %counter, ptr %counters, i64 %c
  %begin = mul i64 %c, %length
  store i64 %begin, ptr %counter
  %c.next = add i64 %c, 1
  %c.more = icmp slt i64 %c.next, %regions
  br i1 %c.more, label %region, label %fill
fill:
  store i64 %n, ptr %job
  %in.at = getelementptr %job, ptr %job, i64 0, i32 1
  store ptr %in, ptr %in.at
  %in_strides.at = getelementptr %job, ptr %job, i64 0, i32 2
  store ptr %in_strides, ptr %in_strides.at
  %out.at = getelementptr %job, ptr %job, i64 0, i32 3
  store ptr %out, ptr %out.at
  %out_strides.at = getelementptr %job, ptr %job, i64 0, i32 4
  store ptr %out_strides, ptr %out_strides.at
  %block.at = getelementptr %job, ptr %job, i64 0, i32 5
  store i64 %block, ptr %block.at
  %kernel.at = getelementptr %job, ptr %job, i64 0, i32 6
  store ptr %kernel, ptr %kernel.at
  %size.at = getelementptr %job, ptr %job, i64 0, i32 7
  store i64 %size, ptr %size.at
  %core.at = getelementptr %job, ptr %job, i64 0, i32 8
  %core = call i32 @sched_getcpu()
  %core.here = sext i32 %core to i64
  store i64 %core.here, ptr %core.at
  %regions.at = getelementptr %job, ptr %job, i64 0, i32 9
  store i64 %regions, ptr %regions.at
  %length.at = getelementptr %job, ptr %job, i64 0, i32 10
  store i64 %length, ptr %length.at
  %counters.at = getelementptr %job, ptr %job, i64 0, i32 11
  store ptr %counters, ptr %counters.at
  %next.at = getelementptr %job, ptr %job, i64 0, i32 13
  store i64 1, ptr %next.at
  %pending = getelementptr %job, ptr %job, i64 0, i32 14
  store i64 0, ptr %pending
  %missing = call i64 @post(ptr %pool, i64 %helpers, ptr %job)
  %lacks = icmp sgt i64 %missing, 0
  %most = load i64, ptr %pool
  %count.at = getelementptr %pool, ptr %pool, i64 0, i32 1
  %count = load atomic i64, ptr %count.at monotonic, align 8
  %room = icmp slt i64 %count, %most
  %grow = and i1 %lacks, %room
  br i1 %grow, label %ask, label %own
ask:  ; all were busy: another one, before the next job
  %should.at = getelementptr %pool, ptr %pool, i64 0, i32 2
  %one.more = add i64 %count, 1
  store atomic i64 %one.more, ptr %should.at monotonic, align 8
  br label %own
own:
  call void @run(ptr %job, i64 0, ptr %work)
  call void @withdraw(ptr %pool, ptr %job)
  %began = call i64 @now()
  %until = add i64 %began, $PATIENCE
  br label %others
others:
  %at.it = load atomic i64, ptr %pending acquire, align 8
  %nobody = icmp eq i64 %at.it, 0
  br i1 %nobody, label %end, label %patience
patience:
  %now = call i64 @now()
  %soon = icmp slt i64 %now, %until
  br i1 %soon, label %rest, label %nap
rest:
  %yielded = call i32 @sched_yield()
  br label %others
nap:
  %lock.at = getelementptr %pool, ptr %pool, i64 0, i32 4
  %lock = load ptr, ptr %lock.at
  %timed.out = call i32 @PyThread_acquire_lock_timed(ptr %lock, i64 $NAP, i32 0)
  br label %others
end:
  ret void
}
