/* REDUCE of one element type whose result has the same type. reduce.h includes this once a type,
 * with
 *   TYPE      the type's name, of which the names here are made
 *   FOLD      the type of the fold, and in FOLD_NAME its name
 *   SIZE      bytes of an element, PER_PACK elements of 16 bytes
 *   BITS      the type of an element's bits as they are loaded
 *   IN, OUT   from an element's bits to FOLD and back; OUT may leave bits above the element's
 *   OF_BITS   FOLD from the low bits of a u64
 *   AVERAGE   of a sum and reduce_arguments.factor
 *
 * A work item folds pack after pack: the first source's, then the others in the order given, four
 * of them loaded before the first is used. */

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#define OF_TYPE(name) JOIN(name##_, TYPE)
#define OF_FOLD(name) JOIN(name##_, FOLD_NAME)
#define OF_SIZE(name) JOIN(name##_, SIZE)

PENSTOCK_FUNCTION FOLD OF_TYPE(fold_step)(u32 redop, FOLD so_far, FOLD next) {
  switch (redop) {
    case FOLD_PROD:
      return OF_FOLD(mul)(so_far, next);
    case FOLD_MIN:
      return OF_FOLD(min)(so_far, next);
    case FOLD_MAX:
      return OF_FOLD(max)(so_far, next);
    default:
      return OF_FOLD(add)(so_far, next);
  }
}

/* What one source brings is multiplied by `multiplier` where `scaled`. */
PENSTOCK_FUNCTION void OF_TYPE(fold_pack)(u32 redop, FOLD* value, pack next, u32 scaled,
                                          FOLD multiplier) {
  if (scaled != 0) {
    PENSTOCK_UNROLL
    for (u32 i = 0; i < PER_PACK; ++i) {
      const FOLD product = OF_FOLD(mul)(IN(OF_SIZE(pack_get)(next, i)), multiplier);
      value[i] = OF_FOLD(add)(value[i], product);
    }
    return;
  }
  switch (redop) {
    case FOLD_PROD:
      PENSTOCK_UNROLL
      for (u32 i = 0; i < PER_PACK; ++i)
        value[i] = OF_FOLD(mul)(value[i], IN(OF_SIZE(pack_get)(next, i)));
      break;
    case FOLD_MIN:
      PENSTOCK_UNROLL
      for (u32 i = 0; i < PER_PACK; ++i)
        value[i] = OF_FOLD(min)(value[i], IN(OF_SIZE(pack_get)(next, i)));
      break;
    case FOLD_MAX:
      PENSTOCK_UNROLL
      for (u32 i = 0; i < PER_PACK; ++i)
        value[i] = OF_FOLD(max)(value[i], IN(OF_SIZE(pack_get)(next, i)));
      break;
    default:
      PENSTOCK_UNROLL
      for (u32 i = 0; i < PER_PACK; ++i)
        value[i] = OF_FOLD(add)(value[i], IN(OF_SIZE(pack_get)(next, i)));
      break;
  }
}

PENSTOCK_KERNEL_WEIGHTED(OF_TYPE(penstock_reduce), reduce_arguments) {
  PENSTOCK_ENTER_WEIGHTED(reduce_arguments);
  const u32 redop = arguments.redop;
  const u32 n_src = arguments.n_src;
  const u32 weighted = arguments.weighted;
  const u32 scaled = (weighted != 0 || redop == FOLD_PREMUL_SUM) ? 1 : 0;
  const u32 average = redop == FOLD_AVG ? 1 : 0;
  const FOLD scale = OF_BITS(arguments.scale);
  const u64 items = PENSTOCK_ITEMS;
  const u64 body = arguments.head * SIZE;

  for (u64 p = PENSTOCK_ITEM; p < arguments.packs; p += items) {
    const u64 at = body + 16 * p;
    FOLD value[PER_PACK];
    const pack first = load_pack(penstock_at(memory, arguments.src[0]) + at);
    const FOLD multiplier = weighted != 0 ? OF_BITS(weights[0]) : scale;
    PENSTOCK_UNROLL
    for (u32 i = 0; i < PER_PACK; ++i) {
      value[i] = IN(OF_SIZE(pack_get)(first, i));
      if (scaled != 0) value[i] = OF_FOLD(mul)(value[i], multiplier);
    }
    u32 s = 1;
    for (; s + 4 <= n_src; s += 4) {
      pack next[4];
      PENSTOCK_UNROLL
      for (u32 k = 0; k < 4; ++k)
        next[k] = load_pack(penstock_at(memory, arguments.src[s + k]) + at);
      PENSTOCK_UNROLL
      for (u32 k = 0; k < 4; ++k) OF_TYPE(fold_pack)
      (redop, value, next[k], scaled, weighted != 0 ? OF_BITS(weights[s + k]) : scale);
    }
    for (; s < n_src; ++s) OF_TYPE(fold_pack)
    (redop, value, load_pack(penstock_at(memory, arguments.src[s]) + at), scaled,
     weighted != 0 ? OF_BITS(weights[s]) : scale);
    pack result = {{0, 0, 0, 0}};
    PENSTOCK_UNROLL
    for (u32 i = 0; i < PER_PACK; ++i) {
      if (average != 0) value[i] = AVERAGE(value[i], arguments.factor);
      OF_SIZE(pack_put)(&result, i, OUT(value[i]));
    }
    for (u32 d = 0; d < arguments.n_dst; ++d)
      store_pack(penstock_at(memory, arguments.dst[d]) + at, result);
  }

  const u64 singles = arguments.count - PER_PACK * arguments.packs;
  for (u64 e = PENSTOCK_ITEM; e < singles; e += items) {
    const u64 at = e < arguments.head ? e : e + PER_PACK * arguments.packs;
    FOLD value = IN(OF_SIZE(load)(penstock_at(memory, arguments.src[0]), at, arguments.aligned));
    if (scaled != 0) value = OF_FOLD(mul)(value, weighted != 0 ? OF_BITS(weights[0]) : scale);
    for (u32 s = 1; s < n_src; ++s) {
      FOLD next = IN(OF_SIZE(load)(penstock_at(memory, arguments.src[s]), at, arguments.aligned));
      if (scaled != 0) next = OF_FOLD(mul)(next, weighted != 0 ? OF_BITS(weights[s]) : scale);
      value = OF_TYPE(fold_step)(redop, value, next);
    }
    if (average != 0) value = AVERAGE(value, arguments.factor);
    const BITS result = (BITS)OUT(value);
    for (u32 d = 0; d < arguments.n_dst; ++d)
      OF_SIZE(store)(penstock_at(memory, arguments.dst[d]), at, result, arguments.aligned);
  }
}

#undef OF_SIZE
#undef OF_FOLD
#undef OF_TYPE
#undef JOIN
#undef JOIN_
#undef AVERAGE
#undef OF_BITS
#undef OUT
#undef IN
#undef BITS
#undef PER_PACK
#undef SIZE
#undef FOLD_NAME
#undef FOLD
#undef TYPE
