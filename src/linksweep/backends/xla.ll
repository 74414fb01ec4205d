; Functions that handlers of XLA's foreign functions share. xla.py defines `part` and `handler` and replaces the constants.
;
;     i64 threads(ptr frame, i64 most)              number of threads of XLA's pool, at most `most`; 1 if there is no pool
;     i1 share(ptr frame, ptr job, i64 pieces)      run a job in `pieces` threads and free it; whether all of it is done
;     void expect(ptr data, i64 bytes)              advise large pages for a result of some megabytes
;     i64 leading(ptr dims, ptr full, i64 b)        leading axes of a buffer: 0 wrong, 1 all of length 1, 2 full, 3 mixed
;     i64 locate(ptr dims, ptr full, i64 b, i64 index, i64 size)    offset of the rows of an outer index, if some axis is 1
;     i64 product(ptr dims, i64 count)              product of lengths
declare ptr @malloc(i64)
declare void @free(ptr)
declare ptr @memcpy(ptr, ptr, i64)
declare i32 @madvise(ptr, i64, i32)

define internal void @expect(ptr %data, i64 %bytes) {
  %large = icmp sge i64 %bytes, $LARGE
  br i1 %large, label %ask, label %done
ask:
  %begin = ptrtoint ptr %data to i64
  %end = add i64 %begin, %bytes
  %after = add i64 %begin, 4095
  %first = and i64 %after, -4096
  %way = sub i64 %end, %first
  %length = and i64 %way, -4096
  %page = inttoptr i64 %first to ptr
  %told = call i32 @madvise(ptr %page, i64 %length, i32 $HUGE_PAGES)
  br label %done
done:
  ret void
}
declare i32 @sched_yield()
declare i32 @usleep(i32)

define internal void @leave(ptr %job) {
  %before = atomicrmw sub ptr %job, i64 1 acq_rel
  %last = icmp eq i64 %before, 1
  br i1 %last, label %drop, label %done
drop:
  call void @free(ptr %job)
  br label %done
done:
  ret void
}

define void @task(ptr %job) {
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
}

define internal void @destroy(ptr %api, ptr %error) {
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
}

define internal i64 @threads(ptr %frame, i64 %most) {
  %several = icmp sgt i64 %most, 1
  %api_at = getelementptr i8, ptr %frame, i64 16
  %api = load ptr, ptr %api_at
  %context_at = getelementptr i8, ptr %frame, i64 24
  %context = load ptr, ptr %context_at
  %size = load i64, ptr %api
  %has = icmp uge i64 %size, $WHOLE_API
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
}

define internal i1 @share(ptr %frame, ptr %job, i64 %pieces) {
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
  %short = icmp slt i64 %looks, $LOOKS
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
}

define internal i64 @leading(ptr %dims, ptr %full, i64 %b) {
entry:
  br label %head
head:
  %i = phi i64 [ 0, %entry ], [ %next, %good ]
  %ones = phi i1 [ true, %entry ], [ %ones2, %good ]
  %whole = phi i1 [ true, %entry ], [ %whole2, %good ]
  %more = icmp slt i64 %i, %b
  br i1 %more, label %body, label %end
body:
  %p = getelementptr i64, ptr %dims, i64 %i
  %d = load i64, ptr %p
  %q = getelementptr i64, ptr %full, i64 %i
  %f = load i64, ptr %q
  %one = icmp eq i64 %d, 1
  %same = icmp eq i64 %d, %f
  %ok = or i1 %one, %same
  br i1 %ok, label %good, label %bad
good:
  %ones2 = and i1 %ones, %one
  %whole2 = and i1 %whole, %same
  %next = add i64 %i, 1
  br label %head
bad:
  ret i64 0
end:
  %kind = select i1 %ones, i64 1, i64 3
  %found = select i1 %whole, i64 2, i64 %kind
  ret i64 %found
}

define internal i64 @locate(ptr %dims, ptr %full, i64 %b, i64 %index, i64 %size) {
entry:
  %last = sub i64 %b, 1
  %lastp = getelementptr i64, ptr %dims, i64 %last
  %lastd = load i64, ptr %lastp
  %first = mul i64 %size, %lastd
  %start = sub i64 %b, 2
  br label %head
head:
  %i = phi i64 [ %start, %entry ], [ %next, %body ]
  %o = phi i64 [ %index, %entry ], [ %o2, %body ]
  %stride = phi i64 [ %first, %entry ], [ %stride2, %body ]
  %offset = phi i64 [ 0, %entry ], [ %offset2, %body ]
  %more = icmp sge i64 %i, 0
  br i1 %more, label %body, label %end
body:
  %p = getelementptr i64, ptr %dims, i64 %i
  %d = load i64, ptr %p
  %q = getelementptr i64, ptr %full, i64 %i
  %f = load i64, ptr %q
  %own = urem i64 %o, %f
  %o2 = udiv i64 %o, %f
  %way = mul i64 %own, %stride
  %one = icmp eq i64 %d, 1
  %moved = select i1 %one, i64 0, i64 %way
  %offset2 = add i64 %offset, %moved
  %stride2 = mul i64 %stride, %d
  %next = sub i64 %i, 1
  br label %head
end:
  ret i64 %offset
}

define internal i64 @product(ptr %dims, i64 %count) {
entry:
  br label %head
head:
  %i = phi i64 [ 0, %entry ], [ %next, %body ]
  %total = phi i64 [ 1, %entry ], [ %total2, %body ]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %body, label %end
body:
  %p = getelementptr i64, ptr %dims, i64 %i
  %d = load i64, ptr %p
  %total2 = mul i64 %total, %d
  %next = add i64 %i, 1
  br label %head
end:
  ret i64 %total
}
