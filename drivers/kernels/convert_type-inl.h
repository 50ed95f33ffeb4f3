/* REDUCE and OUTER_STEP of one source type that is folded in f32, four elements at a time.
 * convert.h includes this once a type, with
 *   TYPE  the type's name, of which the names here are made; `block` is block-scaled int8 */

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#define OF_TYPE(name) JOIN(name##_, TYPE)

/* The fold of elements i to i + n - 1; result.x beyond n means nothing. */
PENSTOCK_FUNCTION f32x4 OF_TYPE(fold_quad)(memory_t memory, const reduce_arguments* a,
                                           weights_t weights, u64 i, u32 n) {
  const u32 scaled = (a->weighted != 0 || a->redop == FOLD_PREMUL_SUM) ? 1 : 0;
  f32x4 value = {{0, 0, 0, 0}};
  for (u32 s = 0; s < a->n_src; ++s) {
    f32x4 next =
        OF_TYPE(load_quad)(penstock_at(memory, a->src[s]), i, n, a->block, a->aligned, a->wide);
    if (scaled != 0) {
      const f32 multiplier = f32_of_bits((u32)(a->weighted != 0 ? weights[s] : a->scale));
      PENSTOCK_UNROLL
      for (u32 k = 0; k < 4; ++k) next.x[k] = mul_f32(next.x[k], multiplier);
    }
    if (s == 0) {
      value = next;
      continue;
    }
    switch (a->redop) {
      case FOLD_PROD:
        PENSTOCK_UNROLL
        for (u32 k = 0; k < 4; ++k) value.x[k] = mul_f32(value.x[k], next.x[k]);
        break;
      case FOLD_MIN:
        PENSTOCK_UNROLL
        for (u32 k = 0; k < 4; ++k) value.x[k] = min_f32(value.x[k], next.x[k]);
        break;
      case FOLD_MAX:
        PENSTOCK_UNROLL
        for (u32 k = 0; k < 4; ++k) value.x[k] = max_f32(value.x[k], next.x[k]);
        break;
      default:
        PENSTOCK_UNROLL
        for (u32 k = 0; k < 4; ++k) value.x[k] = add_f32(value.x[k], next.x[k]);
        break;
    }
  }
  if (a->redop == FOLD_AVG) {
    PENSTOCK_UNROLL
    for (u32 k = 0; k < 4; ++k) value.x[k] = mul_f32(value.x[k], f32_of_bits((u32)a->factor));
  }
  return value;
}

/* A work item makes a record: it folds all of it to find the scale, and again to round. A record
 * that is reduced in place is read up to a code before that code is written, and its scale last. */
PENSTOCK_FUNCTION void OF_TYPE(make_record)(memory_t memory, const reduce_arguments* a,
                                            weights_t weights, u64 record) {
  const u32 block = a->block;
  const u64 first = record * block;
  const u32 n = a->count - first < block ? (u32)(a->count - first) : block;
  f32 largest = 0.0f;
  for (u32 j = 0; j < n; j += 4) {
    const u32 m = n - j < 4 ? n - j : 4;
    const f32x4 value = OF_TYPE(fold_quad)(memory, a, weights, first + j, m);
    for (u32 k = 0; k < m; ++k) {
      const f32 magnitude = block_magnitude(value.x[k]);
      if (magnitude > largest) largest = magnitude;
    }
  }
  const f32 scale = block_scale(largest);
  const f32 reciprocal = div_f32(1.0f, scale);
  const u64 start = record * (BLOCK_SCALE_BYTES + block);
  for (u32 j = 0; j < block; j += 4) {
    const u32 m = j >= n ? 0 : n - j < 4 ? n - j : 4;
    u32 codes = 0;
    if (m != 0) {
      const f32x4 value = OF_TYPE(fold_quad)(memory, a, weights, first + j, m);
      for (u32 k = 0; k < m; ++k) codes |= block_code(value.x[k], reciprocal) << (8 * k);
    }
    for (u32 d = 0; d < a->n_dst; ++d)
      store_4(penstock_at(memory, a->dst[d]) + start, 1 + j / 4, codes, a->wide);
  }
  for (u32 d = 0; d < a->n_dst; ++d)
    store_4(penstock_at(memory, a->dst[d]) + start, 0, bits_of_f32(scale), a->wide);
}

PENSTOCK_KERNEL_WEIGHTED(OF_TYPE(penstock_convert), reduce_arguments) {
  PENSTOCK_ENTER_WEIGHTED(reduce_arguments);
  const u64 items = PENSTOCK_ITEMS;
  if (arguments.out_type == TYPE_INT8) {
    const u64 records = (arguments.count + arguments.block - 1) / arguments.block;
    for (u64 r = PENSTOCK_ITEM; r < records; r += items)
      OF_TYPE(make_record)(memory, &arguments, weights, r);
    return;
  }
  const u64 quads = (arguments.count + 3) / 4;
  for (u64 q = PENSTOCK_ITEM; q < quads; q += items) {
    const u64 i = 4 * q;
    const u32 n = arguments.count - i < 4 ? (u32)(arguments.count - i) : 4;
    const f32x4 value = OF_TYPE(fold_quad)(memory, &arguments, weights, i, n);
    for (u32 d = 0; d < arguments.n_dst; ++d)
      store_quad(arguments.out_type, penstock_at(memory, arguments.dst[d]), i, n, value,
                 arguments.aligned, arguments.wide);
  }
}

PENSTOCK_KERNEL(OF_TYPE(penstock_outer_step), outer_step_arguments) {
  PENSTOCK_ENTER(outer_step_arguments);
  const u64 items = PENSTOCK_ITEMS;
  const u64 quads = (arguments.count + 3) / 4;
  const u32 aligned = arguments.aligned;
  const u32 wide = arguments.wide;
  const f32 factor = f32_of_bits(arguments.factor);
  const f32 rate = f32_of_bits(arguments.learning_rate);
  const f32 mu = f32_of_bits(arguments.momentum_factor);
  const target_t momentum = penstock_at(memory, arguments.momentum);
  const target_t values = penstock_at(memory, arguments.parameters);
  for (u64 q = PENSTOCK_ITEM; q < quads; q += items) {
    const u64 i = 4 * q;
    const u32 n = arguments.count - i < 4 ? (u32)(arguments.count - i) : 4;
    f32x4 sum = OF_TYPE(load_quad)(penstock_at(memory, arguments.src[0]), i, n, arguments.block,
                                   aligned, wide);
    for (u32 s = 1; s < arguments.n_src; ++s) {
      const f32x4 next = OF_TYPE(load_quad)(penstock_at(memory, arguments.src[s]), i, n,
                                            arguments.block, aligned, wide);
      PENSTOCK_UNROLL
      for (u32 k = 0; k < 4; ++k) sum.x[k] = add_f32(sum.x[k], next.x[k]);
    }
    f32x4 m = load_quad_f32(momentum, i, n, 0, aligned, wide);
    f32x4 p = load_quad_f32(values, i, n, 0, aligned, wide);
    PENSTOCK_UNROLL
    for (u32 k = 0; k < 4; ++k) {
      const f32 g = mul_f32(sum.x[k], factor);
      m.x[k] = add_f32(mul_f32(mu, m.x[k]), g);
      const f32 direction = add_f32(mul_f32(mu, m.x[k]), g);
      p.x[k] = sub_f32(p.x[k], mul_f32(rate, direction));
    }
    store_quad_f32(momentum, i, n, m, aligned, wide);
    store_quad_f32(values, i, n, p, aligned, wide);
  }
}

#undef OF_TYPE
#undef JOIN
#undef JOIN_
#undef TYPE
