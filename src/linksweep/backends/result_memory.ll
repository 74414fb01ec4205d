; Memory of large results (result_memory.py): blocks that come back are handed out again, so that their pages need not be
; faulted in once more. NumPy calls these functions with the GIL held, which is the lock of @slots.
;
; @slots: blocks that wait, in a ring in the order in which they came; null: none. @next: where the next one goes, so the
; oldest are from there on. @held: bytes of all of them, at most @limit.
%slot = type { ptr, i64 }
@slots = internal global [$SLOTS x %slot] zeroinitializer
@next = internal global i64 0
@held = global i64 0
@limit = global i64 0
declare ptr @malloc(i64)
declare ptr @calloc(i64, i64)
declare ptr @realloc(ptr, i64)
declare void @free(ptr)
declare ptr @aligned_alloc(i64, i64)
declare i32 @madvise(ptr, i64, i32)

; Bytes that an array of this size is given: whole pages, or whole huge pages. NumPy tells `give` the array's size only.
define internal i64 @rounded(i64 %size) {
  %huge = icmp uge i64 %size, $HUGE_ABOVE
  %less = select i1 %huge, i64 $HUGE_LESS, i64 $PAGE_LESS
  %mask = xor i64 %less, -1
  %more = add i64 %size, %less
  %whole = and i64 %more, %mask
  ret i64 %whole
}

define ptr @take(ptr %context, i64 %size) {
entry:
  %small = icmp ult i64 %size, $POOLED
  br i1 %small, label %plain, label %search
plain:
  %ordinary = call ptr @malloc(i64 %size)
  ret ptr %ordinary
search:
  %bytes = call i64 @rounded(i64 %size)
  br label %look
look:
  %k = phi i64 [ 0, %search ], [ %k_next, %other ]
  %over = icmp eq i64 %k, $SLOTS
  br i1 %over, label %fresh, label %slot
slot:
  %k_next = add i64 %k, 1
  %block_at = getelementptr %slot, ptr @slots, i64 %k, i32 0
  %block = load ptr, ptr %block_at
  %bytes_at = getelementptr %slot, ptr @slots, i64 %k, i32 1
  %has = load i64, ptr %bytes_at
  %there = icmp ne ptr %block, null
  %fits = icmp eq i64 %has, %bytes
  %found = and i1 %there, %fits
  br i1 %found, label %hit, label %other
other:
  br label %look
hit:
  store ptr null, ptr %block_at
  %held = load i64, ptr @held
  %left = sub i64 %held, %bytes
  store i64 %left, ptr @held
  ret ptr %block
fresh:
  %huge = icmp uge i64 %size, $HUGE_ABOVE
  br i1 %huge, label %aligned, label %pages
pages:
  %some = call ptr @malloc(i64 %bytes)
  ret ptr %some
aligned:
  %large = call ptr @aligned_alloc(i64 $HUGE, i64 %bytes)
  %none = icmp eq ptr %large, null
  br i1 %none, label %end, label %advise
advise:
  %ignored = call i32 @madvise(ptr %large, i64 %bytes, i32 $MADV_HUGEPAGE)
  br label %end
end:
  ret ptr %large
}

define void @give(ptr %context, ptr %block, i64 %size) {
entry:
  %bytes = call i64 @rounded(i64 %size)
  %limit = load i64, ptr @limit
  %small = icmp ult i64 %size, $POOLED
  %too_large = icmp ugt i64 %bytes, %limit
  %no = or i1 %small, %too_large
  br i1 %no, label %drop, label %evict
drop:
  call void @free(ptr %block)
  ret void
evict:  ; the oldest blocks, until there is a place in the ring and room below the limit
  %at = load i64, ptr @next
  br label %oldest
oldest:
  %j = phi i64 [ %at, %evict ], [ %j_next, %gone ]
  %old_at = getelementptr %slot, ptr @slots, i64 %j, i32 0
  %old = load ptr, ptr %old_at
  %old_bytes_at = getelementptr %slot, ptr @slots, i64 %j, i32 1
  %old_bytes = load i64, ptr %old_bytes_at
  %empty = icmp eq ptr %old, null
  %held = load i64, ptr @held
  %with = add i64 %held, %bytes
  %full = icmp ugt i64 %with, %limit
  %ring = icmp eq i64 %j, %at
  %must = or i1 %full, %ring
  br i1 %must, label %free_one, label %keep
free_one:
  br i1 %empty, label %gone, label %release
release:
  call void @free(ptr %old)
  store ptr null, ptr %old_at
  %less = sub i64 %held, %old_bytes
  store i64 %less, ptr @held
  br label %gone
gone:
  %j_more = add i64 %j, 1
  %j_next = urem i64 %j_more, $SLOTS
  br label %oldest
keep:
  %place = getelementptr %slot, ptr @slots, i64 %at, i32 0
  store ptr %block, ptr %place
  %place_bytes = getelementptr %slot, ptr @slots, i64 %at, i32 1
  store i64 %bytes, ptr %place_bytes
  store i64 %with, ptr @held
  %at_more = add i64 %at, 1
  %at_next = urem i64 %at_more, $SLOTS
  store i64 %at_next, ptr @next
  ret void
}

define ptr @take_zeros(ptr %context, i64 %count, i64 %item) {
  %size = mul i64 %count, %item
  %bytes = call i64 @rounded(i64 %size)
  %zeros = call ptr @calloc(i64 1, i64 %bytes)
  ret ptr %zeros
}

define ptr @change(ptr %context, ptr %block, i64 %size) {
  %bytes = call i64 @rounded(i64 %size)
  %changed = call ptr @realloc(ptr %block, i64 %bytes)
  ret ptr %changed
}
