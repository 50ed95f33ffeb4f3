/* REDUCE where the result has the type of the sources: kernels penstock_reduce_<type>. */
#ifndef PENSTOCK_DRIVERS_KERNELS_REDUCE_H_
#define PENSTOCK_DRIVERS_KERNELS_REDUCE_H_

#include "penstock/drivers/kernels/operand.h"

PENSTOCK_KERNELS_BEGIN

#define TYPE int8
#define FOLD i32
#define FOLD_NAME i32
#define SIZE 1
#define PER_PACK 16
#define BITS u32
#define IN(bits) ((i32)(i8)(bits))
#define OUT(value) ((u32)(value))
#define OF_BITS(bits) ((i32)(bits))
#define AVERAGE(sum, factor) ((i32)(i8)(sum) / (i32)(factor))
#include "penstock/drivers/kernels/reduce_type-inl.h"

#define TYPE uint8
#define FOLD u32
#define FOLD_NAME u32
#define SIZE 1
#define PER_PACK 16
#define BITS u32
#define IN(bits) (bits)
#define OUT(value) (value)
#define OF_BITS(bits) ((u32)(bits))
#define AVERAGE(sum, factor) (((sum)&0xff) / (u32)(factor))
#include "penstock/drivers/kernels/reduce_type-inl.h"

#define TYPE int32
#define FOLD i32
#define FOLD_NAME i32
#define SIZE 4
#define PER_PACK 4
#define BITS u32
#define IN(bits) ((i32)(bits))
#define OUT(value) ((u32)(value))
#define OF_BITS(bits) ((i32)(bits))
#define AVERAGE(sum, factor) ((sum) / (i32)(factor))
#include "penstock/drivers/kernels/reduce_type-inl.h"

#define TYPE uint32
#define FOLD u32
#define FOLD_NAME u32
#define SIZE 4
#define PER_PACK 4
#define BITS u32
#define IN(bits) (bits)
#define OUT(value) (value)
#define OF_BITS(bits) ((u32)(bits))
#define AVERAGE(sum, factor) ((sum) / (u32)(factor))
#include "penstock/drivers/kernels/reduce_type-inl.h"

#define TYPE int64
#define FOLD i64
#define FOLD_NAME i64
#define SIZE 8
#define PER_PACK 2
#define BITS u64
#define IN(bits) ((i64)(bits))
#define OUT(value) ((u64)(value))
#define OF_BITS(bits) ((i64)(bits))
#define AVERAGE(sum, factor) ((sum) / (i64)(factor))
#include "penstock/drivers/kernels/reduce_type-inl.h"

#define TYPE uint64
#define FOLD u64
#define FOLD_NAME u64
#define SIZE 8
#define PER_PACK 2
#define BITS u64
#define IN(bits) (bits)
#define OUT(value) (value)
#define OF_BITS(bits) (bits)
#define AVERAGE(sum, factor) ((sum) / (factor))
#include "penstock/drivers/kernels/reduce_type-inl.h"

#define TYPE f32
#define FOLD f32
#define FOLD_NAME f32
#define SIZE 4
#define PER_PACK 4
#define BITS u32
#define IN(bits) f32_of_bits(bits)
#define OUT(value) bits_of_f32(canonical_f32(value))
#define OF_BITS(bits) f32_of_bits((u32)(bits))
#define AVERAGE(sum, factor) mul_f32(sum, f32_of_bits((u32)(factor)))
#include "penstock/drivers/kernels/reduce_type-inl.h"

#define TYPE f16
#define FOLD f32
#define FOLD_NAME f32
#define SIZE 2
#define PER_PACK 8
#define BITS u32
#define IN(bits) widen_f16(bits)
#define OUT(value) narrow_f16(value)
#define OF_BITS(bits) f32_of_bits((u32)(bits))
#define AVERAGE(sum, factor) mul_f32(sum, f32_of_bits((u32)(factor)))
#include "penstock/drivers/kernels/reduce_type-inl.h"

#define TYPE bf16
#define FOLD f32
#define FOLD_NAME f32
#define SIZE 2
#define PER_PACK 8
#define BITS u32
#define IN(bits) widen_bf16(bits)
#define OUT(value) narrow_bf16(value)
#define OF_BITS(bits) f32_of_bits((u32)(bits))
#define AVERAGE(sum, factor) mul_f32(sum, f32_of_bits((u32)(factor)))
#include "penstock/drivers/kernels/reduce_type-inl.h"

#define TYPE f8e4m3
#define FOLD f32
#define FOLD_NAME f32
#define SIZE 1
#define PER_PACK 16
#define BITS u32
#define IN(bits) widen_f8e4m3(bits)
#define OUT(value) narrow_f8e4m3(value)
#define OF_BITS(bits) f32_of_bits((u32)(bits))
#define AVERAGE(sum, factor) mul_f32(sum, f32_of_bits((u32)(factor)))
#include "penstock/drivers/kernels/reduce_type-inl.h"

#define TYPE f8e5m2
#define FOLD f32
#define FOLD_NAME f32
#define SIZE 1
#define PER_PACK 16
#define BITS u32
#define IN(bits) widen_f8e5m2(bits)
#define OUT(value) narrow_f8e5m2(value)
#define OF_BITS(bits) f32_of_bits((u32)(bits))
#define AVERAGE(sum, factor) mul_f32(sum, f32_of_bits((u32)(factor)))
#include "penstock/drivers/kernels/reduce_type-inl.h"

#if PENSTOCK_HAS_F64
#define TYPE f64
#define FOLD f64
#define FOLD_NAME f64
#define SIZE 8
#define PER_PACK 2
#define BITS u64
#define IN(bits) f64_of_bits(bits)
#define OUT(value) bits_of_f64(canonical_f64(value))
#define OF_BITS(bits) f64_of_bits(bits)
#define AVERAGE(sum, factor) mul_f64(sum, f64_of_bits(factor))
#include "penstock/drivers/kernels/reduce_type-inl.h"
#endif

PENSTOCK_KERNELS_END
#endif
