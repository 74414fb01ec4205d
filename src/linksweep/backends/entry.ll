; The fast entry (entry.py): a Python builtin for the calls that need no explanation. $$NAMES stand for numbers that
; entry.py knows: places of fields in Python's and NumPy's objects, flags, types.
;
; %plan: kernels and workspaces of float64 and float32 (null: not there), what is behind, the word "out", shapes and
; their numbers; for each type, the samples that a thread gets at least and takes at a time; how many threads, and the
; helpers that they are (helpers.ll: most, how many there are, how many there should be, `share`). %shape: axes of one sample, their product, whether a batch shares the array, the axes' lengths.
%plan = type { ptr, ptr, i64, i64, ptr, ptr, ptr, i64, i64, [2 x i64], [2 x i64], i64, ptr }
%shape = type { i64, i64, i64, [$MOST_AXES x i64] }
@ndarray = external global i8
@float64 = external global i8
@float32 = external global i8
@tuple = external global i8
@list = external global i8
@none = external global i8
@handler = external global ptr  ; of large results' memory (result_memory.py), @none without; null: not made yet
declare ptr @PyArray_New(ptr, i32, ptr, i32, ptr, ptr, i32, i32, ptr)
declare ptr @PyDataMem_SetHandler(ptr)
declare ptr @PyObject_Vectorcall(ptr, ptr, i64, ptr)
declare ptr @PyEval_SaveThread()
declare void @PyEval_RestoreThread(ptr)
declare ptr @PyMem_RawMalloc(i64)
declare void @PyMem_RawFree(ptr)
declare ptr @PyTuple_New(i64)
declare i32 @PyTuple_SetItem(ptr, i64, ptr)
declare void @Py_DecRef(ptr)
declare void @Py_IncRef(ptr)
declare void @PyErr_Clear()

; Is the object an array of this type, with these flags and of this shape, with one axis more or none?
; Then: its data, its number of rows (0 without that axis) and its stride from row to row in elements.
define internal i1 @look(ptr %object, ptr %descr, i64 %item, i32 %flags, ptr %shape, ptr %data, ptr %rows, ptr %stride) {
entry:
  %type_at = getelementptr i8, ptr %object, i64 8
  %type = load ptr, ptr %type_at
  %is_array = icmp eq ptr %type, @ndarray
  br i1 %is_array, label %array, label %no
array:
  %descr_at = getelementptr i8, ptr %object, i64 $DESCR
  %own_descr = load ptr, ptr %descr_at
  %same = icmp eq ptr %own_descr, %descr
  %flags_at = getelementptr i8, ptr %object, i64 $FLAGS
  %own_flags = load i32, ptr %flags_at
  %some = and i32 %own_flags, %flags
  %all = icmp eq i32 %some, %flags
  %ndim_at = getelementptr i8, ptr %object, i64 $NDIM
  %ndim32 = load i32, ptr %ndim_at
  %ndim = sext i32 %ndim32 to i64
  %axes = load i64, ptr %shape
  %more = sub i64 %ndim, %axes
  %few = icmp ult i64 %more, 2
  %good1 = and i1 %same, %all
  %good2 = and i1 %good1, %few
  br i1 %good2, label %fits, label %no
fits:
  %dims_at = getelementptr i8, ptr %object, i64 $DIMS
  %dims = load ptr, ptr %dims_at
  br label %axis
axis:
  %i = phi i64 [ 0, %fits ], [ %i_next, %axis_fits ]
  %i_done = icmp eq i64 %i, %axes
  br i1 %i_done, label %shaped, label %axis_look
axis_look:
  %at = add i64 %i, %more
  %length_at = getelementptr i64, ptr %dims, i64 %at
  %length = load i64, ptr %length_at
  %wanted_at = getelementptr %shape, ptr %shape, i64 0, i32 3, i64 %i
  %wanted = load i64, ptr %wanted_at
  %right = icmp eq i64 %length, %wanted
  br i1 %right, label %axis_fits, label %no
axis_fits:
  %i_next = add i64 %i, 1
  br label %axis
shaped:
  %size_at = getelementptr %shape, ptr %shape, i64 0, i32 1
  %size = load i64, ptr %size_at
  %shared_at = getelementptr %shape, ptr %shape, i64 0, i32 2
  %shared = load i64, ptr %shared_at
  %data_at = getelementptr i8, ptr %object, i64 $DATA
  %own_data = load ptr, ptr %data_at
  store ptr %own_data, ptr %data
  %batched = icmp eq i64 %more, 1
  br i1 %batched, label %many, label %one
one:
  store i64 0, ptr %rows
  br label %dense
many:
  %count = load i64, ptr %dims
  store i64 %count, ptr %rows
  %any = icmp sgt i64 %count, 0
  %own = icmp eq i64 %shared, 0
  %good3 = and i1 %any, %own
  br i1 %good3, label %dense, label %no
dense:
  %bit = and i32 %own_flags, $CONTIGUOUS
  %contiguous = icmp ne i32 %bit, 0
  store i64 %size, ptr %stride
  br i1 %contiguous, label %yes, label %strided
strided:
  %steps_at = getelementptr i8, ptr %object, i64 $STRIDES
  %steps = load ptr, ptr %steps_at
  br label %inner
inner:
  %j = phi i64 [ %axes, %strided ], [ %j_next, %inner_fits ]
  %want = phi i64 [ %item, %strided ], [ %want_next, %inner_fits ]
  %j_done = icmp eq i64 %j, 0
  br i1 %j_done, label %outer, label %inner_look
inner_look:
  %j_next = sub i64 %j, 1
  %j_at = add i64 %j_next, %more
  %step_at = getelementptr i64, ptr %steps, i64 %j_at
  %step = load i64, ptr %step_at
  %extent_at = getelementptr i64, ptr %dims, i64 %j_at
  %extent = load i64, ptr %extent_at
  %want_next = mul i64 %want, %extent
  %step_right = icmp eq i64 %step, %want
  %alone = icmp eq i64 %extent, 1
  %step_good = or i1 %step_right, %alone
  br i1 %step_good, label %inner_fits, label %no
inner_fits:
  br label %inner
outer:
  br i1 %batched, label %outer_look, label %yes
outer_look:
  %row = load i64, ptr %steps
  %forward = icmp sge i64 %row, 0
  %whole = srem i64 %row, %item
  %divides = icmp eq i64 %whole, 0
  %elements = sdiv i64 %row, %item
  store i64 %elements, ptr %stride
  %good4 = and i1 %forward, %divides
  br i1 %good4, label %yes, label %no
yes:
  ret i1 true
no:
  ret i1 false
}

; Do `rows` rows of `size` elements, `stride` apart, touch the `bytes` bytes from %other on?
define internal i1 @touches(ptr %data, i64 %rows, i64 %stride, i64 %size, i64 %item, ptr %other, i64 %bytes) {
  %many = icmp sgt i64 %rows, 1
  %last = sub i64 %rows, 1
  %way = mul i64 %last, %stride
  %far = select i1 %many, i64 %way, i64 0
  %elements = add i64 %far, %size
  %extent = mul i64 %elements, %item
  %from = ptrtoint ptr %data to i64
  %to = add i64 %from, %extent
  %other_from = ptrtoint ptr %other to i64
  %other_to = add i64 %other_from, %bytes
  %before = icmp ult i64 %from, %other_to
  %after = icmp ult i64 %other_from, %to
  %both = and i1 %before, %after
  ret i1 %both
}

define ptr @entry(ptr %self, ptr %args, i64 %nargs, ptr %names) {
entry:
  %plan_at = getelementptr i8, ptr %self, i64 $INSIDE
  %plan = load ptr, ptr %plan_at
  %behind_at = getelementptr %plan, ptr %plan, i64 0, i32 4
  %behind = load ptr, ptr %behind_at
  %shapes_at = getelementptr %plan, ptr %plan, i64 0, i32 6
  %shapes = load ptr, ptr %shapes_at
  %inputs_at = getelementptr %plan, ptr %plan, i64 0, i32 7
  %inputs = load i64, ptr %inputs_at
  %outputs_at = getelementptr %plan, ptr %plan, i64 0, i32 8
  %outputs = load i64, ptr %outputs_at
  %in = alloca ptr, i64 %inputs
  %in_rows = alloca i64, i64 %inputs
  %in_strides = alloca i64, i64 %inputs
  %out = alloca ptr, i64 %outputs
  %out_strides = alloca i64, i64 %outputs
  %objects = alloca ptr, i64 %outputs
  %dims = alloca [$ALL_AXES x i64]
  %found_rows = alloca i64
  %counter = alloca i64
  store i64 0, ptr %counter
  %count_right = icmp eq i64 %nargs, %inputs
  br i1 %count_right, label %keywords, label %other
keywords:
  %no_names = icmp eq ptr %names, null
  br i1 %no_names, label %kind, label %named
named:
  %words_at = getelementptr i8, ptr %names, i64 $LENGTH
  %words = load i64, ptr %words_at
  %one_word = icmp eq i64 %words, 1
  br i1 %one_word, label %word, label %other
word:
  %word_at = getelementptr i8, ptr %names, i64 $FIRST
  %word_is = load ptr, ptr %word_at
  %out_word_at = getelementptr %plan, ptr %plan, i64 0, i32 5
  %out_word = load ptr, ptr %out_word_at
  %is_out = icmp eq ptr %word_is, %out_word
  br i1 %is_out, label %with_out, label %other
with_out:
  %given_at = getelementptr ptr, ptr %args, i64 %nargs
  %given_is = load ptr, ptr %given_at
  %is_none = icmp eq ptr %given_is, @none
  %given_or_null = select i1 %is_none, ptr null, ptr %given_is
  br label %kind
kind:
  %given = phi ptr [ null, %keywords ], [ %given_or_null, %with_out ]
  %first = load ptr, ptr %args
  %first_type_at = getelementptr i8, ptr %first, i64 8
  %first_type = load ptr, ptr %first_type_at
  %first_is = icmp eq ptr %first_type, @ndarray
  br i1 %first_is, label %number, label %other
number:
  %descr_at = getelementptr i8, ptr %first, i64 $DESCR
  %descr = load ptr, ptr %descr_at
  %double = icmp eq ptr %descr, @float64
  %single = icmp eq ptr %descr, @float32
  %index = select i1 %double, i64 0, i64 1
  %item = select i1 %double, i64 8, i64 4
  %code = select i1 %double, i32 $FLOAT64, i32 $FLOAT32
  %kernel_at = getelementptr ptr, ptr %plan, i64 %index
  %kernel = load ptr, ptr %kernel_at
  %works_at = getelementptr %plan, ptr %plan, i64 0, i32 2
  %work_at = getelementptr i64, ptr %works_at, i64 %index
  %work_size = load i64, ptr %work_at
  %real = or i1 %double, %single
  %there = icmp ne ptr %kernel, null
  %can = and i1 %real, %there
  br i1 %can, label %argument, label %other

; every argument, and the batch: -1 while only single samples were seen
argument:
  %k = phi i64 [ 0, %number ], [ %k_next, %agreed ]
  %n = phi i64 [ -1, %number ], [ %n_next, %agreed ]
  %k_done = icmp eq i64 %k, %inputs
  br i1 %k_done, label %results, label %read
read:
  %object_at = getelementptr ptr, ptr %args, i64 %k
  %object = load ptr, ptr %object_at
  %shape = getelementptr %shape, ptr %shapes, i64 %k
  %data_at = getelementptr ptr, ptr %in, i64 %k
  %rows_at = getelementptr i64, ptr %in_rows, i64 %k
  %stride_at = getelementptr i64, ptr %in_strides, i64 %k
  %plain = call i1 @look(ptr %object, ptr %descr, i64 %item, i32 $ALIGNED, ptr %shape, ptr %data_at, ptr %rows_at, ptr %stride_at)
  br i1 %plain, label %agree, label %other
agree:
  %k_next = add i64 %k, 1
  %rows = load i64, ptr %rows_at
  %rows_or = icmp eq i64 %rows, 0
  %single_row = icmp eq i64 %rows, 1
  %n_free = icmp slt i64 %n, 2
  %n_same = icmp eq i64 %n, %rows
  %take = and i1 %n_free, true
  %grown = select i1 %take, i64 %rows, i64 %n
  %keep = or i1 %rows_or, %n_same
  %n_batch = icmp sgt i64 %n, 0
  %keep_single = and i1 %single_row, %n_batch
  %keeps = or i1 %keep, %keep_single
  %n_next = select i1 %keeps, i64 %n, i64 %grown
  %fine = or i1 %keeps, %take
  br i1 %fine, label %agreed, label %other
agreed:
  br label %argument

results:
  %batched = icmp sgt i64 %n, 0
  %samples = select i1 %batched, i64 %n, i64 1
  %wanted_rows = select i1 %batched, i64 %n, i64 0
  %share_at = getelementptr %plan, ptr %plan, i64 0, i32 9, i64 %index
  %share = load i64, ptr %share_at
  %much = icmp sgt i64 %samples, %share
  br i1 %much, label %divide, label %spread
divide:
  %threads_at = getelementptr %plan, ptr %plan, i64 0, i32 11
  %threads = load i64, ptr %threads_at
  %pieces_most = sdiv i64 %samples, %share
  %pieces_few = icmp slt i64 %pieces_most, %threads
  %pieces = select i1 %pieces_few, i64 %pieces_most, i64 %threads
  %shared = icmp sgt i64 %pieces, 1
  br i1 %shared, label %pooled, label %spread
pooled:  ; what is behind starts helpers
  %pool_at = getelementptr %plan, ptr %plan, i64 0, i32 12
  %pool = load ptr, ptr %pool_at
  %pool_there = icmp ne ptr %pool, null
  br i1 %pool_there, label %helped, label %other
helped:
  %limit = load i64, ptr %pool
  %helpers_at = getelementptr i64, ptr %pool, i64 1
  %helpers_there = load i64, ptr %helpers_at
  %helpers_wanted_at = getelementptr i64, ptr %pool, i64 2
  %helpers_wanted = load atomic i64, ptr %helpers_wanted_at monotonic, align 8
  %helpers_more = sub i64 %pieces, 1
  %helpers_many = icmp sgt i64 %helpers_more, %limit
  %helpers = select i1 %helpers_many, i64 %limit, i64 %helpers_more
  %helpers_lack = icmp slt i64 %helpers_there, %helpers
  %helpers_due = icmp slt i64 %helpers_there, %helpers_wanted
  %helpers_start = or i1 %helpers_lack, %helpers_due
  br i1 %helpers_start, label %other, label %spread
spread:  ; one sample beside a batch is read again and again
  %with = phi i64 [ 0, %results ], [ 0, %divide ], [ %helpers, %helped ], [ %with, %spread_one ]
  %s = phi i64 [ 0, %results ], [ 0, %divide ], [ 0, %helped ], [ %s_next, %spread_one ]
  %s_done = icmp eq i64 %s, %inputs
  br i1 %s_done, label %memory, label %spread_one
spread_one:
  %s_next = add i64 %s, 1
  %s_rows_at = getelementptr i64, ptr %in_rows, i64 %s
  %s_rows = load i64, ptr %s_rows_at
  %s_stride_at = getelementptr i64, ptr %in_strides, i64 %s
  %s_stride = load i64, ptr %s_stride_at
  %s_alone = icmp slt i64 %s_rows, 2
  %s_used = select i1 %s_alone, i64 0, i64 %s_stride
  store i64 %s_used, ptr %s_stride_at
  br label %spread

memory:
  %needs_work = icmp sgt i64 %work_size, 0
  br i1 %needs_work, label %reserve, label %prepared
reserve:
  %work_bytes = add i64 %work_size, 64
  %reserved = call ptr @PyMem_RawMalloc(i64 %work_bytes)
  %none_left = icmp eq ptr %reserved, null
  br i1 %none_left, label %other, label %prepared
prepared:
  %held = phi ptr [ null, %memory ], [ %reserved, %reserve ]
  %address = ptrtoint ptr %held to i64
  %below = sub i64 0, %address
  %pad = and i64 %below, 63
  %work = getelementptr i8, ptr %held, i64 %pad
  %several = icmp sgt i64 %outputs, 1
  %no_given = icmp eq ptr %given, null
  br i1 %no_given, label %fresh, label %taken

; results of our own
fresh:
  %batch_at = getelementptr i64, ptr %dims, i64 0
  store i64 %n, ptr %batch_at
  %skip = select i1 %batched, i64 0, i64 1
  %dims_from = getelementptr i64, ptr %dims, i64 %skip
  %further = select i1 %batched, i64 1, i64 0
  br i1 %several, label %new_tuple, label %new
new_tuple:
  %tuple_made = call ptr @PyTuple_New(i64 %outputs)
  %tuple_failed = icmp eq ptr %tuple_made, null
  br i1 %tuple_failed, label %too_large, label %new
new:
  %into = phi ptr [ null, %fresh ], [ %tuple_made, %new_tuple ]
  br label %make
make:
  %m = phi i64 [ 0, %new ], [ %m_next, %made ]
  %m_done = icmp eq i64 %m, %outputs
  br i1 %m_done, label %go, label %dimensions
dimensions:
  %m_next = add i64 %m, 1
  %m_place = add i64 %inputs, %m
  %m_shape = getelementptr %shape, ptr %shapes, i64 %m_place
  %m_axes = load i64, ptr %m_shape
  %m_size_at = getelementptr %shape, ptr %m_shape, i64 0, i32 1
  %m_size = load i64, ptr %m_size_at
  br label %dimension
dimension:
  %d = phi i64 [ 0, %dimensions ], [ %d_next, %dimension_one ]
  %d_done = icmp eq i64 %d, %m_axes
  br i1 %d_done, label %allocate, label %dimension_one
dimension_one:
  %d_next = add i64 %d, 1
  %d_from = getelementptr %shape, ptr %m_shape, i64 0, i32 3, i64 %d
  %d_length = load i64, ptr %d_from
  %d_to = getelementptr i64, ptr %dims, i64 %d_next
  store i64 %d_length, ptr %d_to
  br label %dimension
allocate:
  %all_axes = add i64 %m_axes, %further
  %all_axes32 = trunc i64 %all_axes to i32
  %m_row = mul i64 %m_size, %item
  %m_most = udiv i64 $POOLED, %samples  ; not a product that may overflow
  %m_large = icmp ugt i64 %m_row, %m_most
  br i1 %m_large, label %find_pool, label %ordinary
find_pool:  ; what is behind makes it
  %m_handler = load ptr, ptr @handler
  %m_unmade = icmp eq ptr %m_handler, null
  br i1 %m_unmade, label %undo, label %choose_pool
choose_pool:
  %m_off = icmp eq ptr %m_handler, @none
  br i1 %m_off, label %ordinary, label %use_pool
use_pool:
  %m_before = call ptr @PyDataMem_SetHandler(ptr %m_handler)
  %m_refused = icmp eq ptr %m_before, null
  br i1 %m_refused, label %no_pool, label %from_pool
no_pool:
  call void @PyErr_Clear()
  br label %ordinary
from_pool:
  %pool_array = call ptr @PyArray_New(ptr @ndarray, i32 %all_axes32, ptr %dims_from, i32 %code, ptr null, ptr null, i32 0, i32 0, ptr null)
  %pool_failed = icmp eq ptr %pool_array, null
  br i1 %pool_failed, label %pool_error, label %pool_back
pool_error:
  call void @PyErr_Clear()
  br label %pool_back
pool_back:
  %m_ours = call ptr @PyDataMem_SetHandler(ptr %m_before)
  call void @Py_DecRef(ptr %m_before)
  call void @Py_DecRef(ptr %m_ours)
  br label %allocated
ordinary:
  %new_array = call ptr @PyArray_New(ptr @ndarray, i32 %all_axes32, ptr %dims_from, i32 %code, ptr null, ptr null, i32 0, i32 0, ptr null)
  br label %allocated
allocated:
  %array = phi ptr [ %pool_array, %pool_back ], [ %new_array, %ordinary ]
  %failed = icmp eq ptr %array, null
  br i1 %failed, label %undo, label %made
made:
  %m_object_at = getelementptr ptr, ptr %objects, i64 %m
  store ptr %array, ptr %m_object_at
  %m_data_at = getelementptr i8, ptr %array, i64 $DATA
  %m_data = load ptr, ptr %m_data_at
  %m_out_at = getelementptr ptr, ptr %out, i64 %m
  store ptr %m_data, ptr %m_out_at
  %m_stride_at = getelementptr i64, ptr %out_strides, i64 %m
  store i64 %m_size, ptr %m_stride_at
  br label %make
undo:  ; no memory: drop what is there already
  %u = phi i64 [ 0, %allocated ], [ 0, %find_pool ], [ %u_next, %undo_one ]
  %u_done = icmp eq i64 %u, %m
  br i1 %u_done, label %undo_tuple, label %undo_one
undo_one:
  %u_next = add i64 %u, 1
  %u_at = getelementptr ptr, ptr %objects, i64 %u
  %u_object = load ptr, ptr %u_at
  call void @Py_DecRef(ptr %u_object)
  br label %undo
undo_tuple:
  br i1 %several, label %drop_tuple, label %too_large
drop_tuple:
  call void @Py_DecRef(ptr %into)
  br label %too_large
too_large:  ; what is behind says it better
  call void @PyErr_Clear()
  br label %decline

; results of the caller: arrays without holes, apart from the arguments and from each other
taken:
  br i1 %several, label %collection, label %alone_given
alone_given:
  store ptr %given, ptr %objects
  br label %check
collection:
  %given_type_at = getelementptr i8, ptr %given, i64 8
  %given_type = load ptr, ptr %given_type_at
  %is_tuple = icmp eq ptr %given_type, @tuple
  %is_list = icmp eq ptr %given_type, @list
  %is_either = or i1 %is_tuple, %is_list
  br i1 %is_either, label %counted, label %decline
counted:
  %given_length_at = getelementptr i8, ptr %given, i64 $LENGTH
  %given_length = load i64, ptr %given_length_at
  %length_right = icmp eq i64 %given_length, %outputs
  br i1 %length_right, label %items, label %decline
items:
  %list_items_at = getelementptr i8, ptr %given, i64 $ITEMS
  %list_items = load ptr, ptr %list_items_at
  %tuple_items = getelementptr i8, ptr %given, i64 $FIRST
  %items_at = select i1 %is_tuple, ptr %tuple_items, ptr %list_items
  %items_bytes = mul i64 %outputs, 8
  call void @llvm.memcpy.p0.p0.i64(ptr %objects, ptr %items_at, i64 %items_bytes, i1 false)
  br label %check
check:
  br label %check_loop
check_loop:
  %c = phi i64 [ 0, %check ], [ %c_next, %apart ]
  %c_done = icmp eq i64 %c, %outputs
  br i1 %c_done, label %hold, label %check_one
check_one:
  %c_next = add i64 %c, 1
  %c_place = add i64 %inputs, %c
  %c_shape = getelementptr %shape, ptr %shapes, i64 %c_place
  %c_object_at = getelementptr ptr, ptr %objects, i64 %c
  %c_object = load ptr, ptr %c_object_at
  %c_out_at = getelementptr ptr, ptr %out, i64 %c
  %c_stride_at = getelementptr i64, ptr %out_strides, i64 %c
  %c_plain = call i1 @look(ptr %c_object, ptr %descr, i64 %item, i32 $RESULT, ptr %c_shape, ptr %c_out_at, ptr %found_rows, ptr %c_stride_at)
  br i1 %c_plain, label %check_rows, label %decline
check_rows:
  %c_rows = load i64, ptr %found_rows
  %c_rows_right = icmp eq i64 %c_rows, %wanted_rows
  %c_data = load ptr, ptr %c_out_at
  %c_size_at = getelementptr %shape, ptr %c_shape, i64 0, i32 1
  %c_size = load i64, ptr %c_size_at
  %c_elements = mul i64 %c_size, %samples
  %c_bytes = mul i64 %c_elements, %item
  br i1 %c_rows_right, label %from_inputs, label %decline
from_inputs:
  %f = phi i64 [ 0, %check_rows ], [ %f_next, %from_input_apart ]
  %f_done = icmp eq i64 %f, %inputs
  br i1 %f_done, label %from_outputs, label %from_input
from_input:
  %f_next = add i64 %f, 1
  %f_data_at = getelementptr ptr, ptr %in, i64 %f
  %f_data = load ptr, ptr %f_data_at
  %f_rows_at = getelementptr i64, ptr %in_rows, i64 %f
  %f_rows = load i64, ptr %f_rows_at
  %f_stride_at = getelementptr i64, ptr %in_strides, i64 %f
  %f_stride = load i64, ptr %f_stride_at
  %f_shape = getelementptr %shape, ptr %shapes, i64 %f, i32 1
  %f_size = load i64, ptr %f_shape
  %f_touches = call i1 @touches(ptr %f_data, i64 %f_rows, i64 %f_stride, i64 %f_size, i64 %item, ptr %c_data, i64 %c_bytes)
  br i1 %f_touches, label %decline, label %from_input_apart
from_input_apart:
  br label %from_inputs
from_outputs:
  %g = phi i64 [ 0, %from_inputs ], [ %g_next, %from_output_apart ]
  %g_done = icmp eq i64 %g, %c
  br i1 %g_done, label %apart, label %from_output
from_output:
  %g_next = add i64 %g, 1
  %g_data_at = getelementptr ptr, ptr %out, i64 %g
  %g_data = load ptr, ptr %g_data_at
  %g_place = add i64 %inputs, %g
  %g_shape = getelementptr %shape, ptr %shapes, i64 %g_place, i32 1
  %g_size = load i64, ptr %g_shape
  %g_touches = call i1 @touches(ptr %g_data, i64 %samples, i64 %g_size, i64 %g_size, i64 %item, ptr %c_data, i64 %c_bytes)
  br i1 %g_touches, label %decline, label %from_output_apart
from_output_apart:
  br label %from_outputs
apart:
  br label %check_loop
decline:
  call void @PyMem_RawFree(ptr %held)
  br label %other

hold:  ; another thread may take them out of a list meanwhile
  %h = phi i64 [ 0, %check_loop ], [ %h_next, %hold_one ]
  %h_done = icmp eq i64 %h, %outputs
  br i1 %h_done, label %go, label %hold_one
hold_one:
  %h_next = add i64 %h, 1
  %h_at = getelementptr ptr, ptr %objects, i64 %h
  %h_object = load ptr, ptr %h_at
  call void @Py_IncRef(ptr %h_object)
  br label %hold

go:
  %made_by_us = phi i1 [ true, %make ], [ false, %hold ]
  %holder = phi ptr [ %into, %make ], [ null, %hold ]
  %many = icmp sgt i64 %samples, $RELEASE_ABOVE
  %some_help = icmp sgt i64 %with, 0
  %large = or i1 %many, %some_help
  br i1 %large, label %released, label %kept
kept:
  call void %kernel(i64 %samples, ptr %in, ptr %in_strides, ptr %out, ptr %out_strides, ptr %work, ptr %counter, i64 %samples)
  br label %finish
released:
  %owned = call ptr @PyEval_SaveThread()
  %with_some = icmp sgt i64 %with, 0
  br i1 %with_some, label %together, label %alone
together:
  %pool_too_at = getelementptr %plan, ptr %plan, i64 0, i32 12
  %pool_too = load ptr, ptr %pool_too_at
  %function_at = getelementptr ptr, ptr %pool_too, i64 3
  %function = load ptr, ptr %function_at
  %block_at = getelementptr %plan, ptr %plan, i64 0, i32 10, i64 %index
  %block = load i64, ptr %block_at
  call void %function(ptr %pool_too, i64 %with, ptr %kernel, i64 %samples, ptr %in, ptr %in_strides, ptr %out, ptr %out_strides, ptr %work, i64 %block, i64 %work_size)
  br label %again
alone:
  call void %kernel(i64 %samples, ptr %in, ptr %in_strides, ptr %out, ptr %out_strides, ptr %work, ptr %counter, i64 %samples)
  br label %again
again:
  call void @PyEval_RestoreThread(ptr %owned)
  br label %finish
finish:
  br i1 %made_by_us, label %ours, label %theirs
theirs:
  call void @Py_IncRef(ptr %given)
  br label %let_go
let_go:
  %l = phi i64 [ 0, %theirs ], [ %l_next, %let_go_one ]
  %l_done = icmp eq i64 %l, %outputs
  br i1 %l_done, label %end, label %let_go_one
let_go_one:
  %l_next = add i64 %l, 1
  %l_at = getelementptr ptr, ptr %objects, i64 %l
  %l_object = load ptr, ptr %l_at
  call void @Py_DecRef(ptr %l_object)
  br label %let_go
ours:
  br i1 %several, label %fill, label %only
only:
  %result_alone = load ptr, ptr %objects
  br label %end
fill:
  %t = phi i64 [ 0, %ours ], [ %t_next, %fill_one ]
  %t_done = icmp eq i64 %t, %outputs
  br i1 %t_done, label %end, label %fill_one
fill_one:
  %t_next = add i64 %t, 1
  %t_at = getelementptr ptr, ptr %objects, i64 %t
  %t_object = load ptr, ptr %t_at
  %t_set = call i32 @PyTuple_SetItem(ptr %holder, i64 %t, ptr %t_object)
  br label %fill
end:
  %result = phi ptr [ %given, %let_go ], [ %result_alone, %only ], [ %holder, %fill ]
  call void @PyMem_RawFree(ptr %held)
  ret ptr %result
other:
  %answer = call ptr @PyObject_Vectorcall(ptr %behind, ptr %args, i64 %nargs, ptr %names)
  ret ptr %answer
}
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
