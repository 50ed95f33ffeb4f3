/* REDUCE where the result has another type or either is block-scaled int8, and OUTER_STEP: kernels
 * penstock_convert_<type> and penstock_outer_step_<type>, named after the sources' type. */
#ifndef PENSTOCK_DRIVERS_KERNELS_CONVERT_H_
#define PENSTOCK_DRIVERS_KERNELS_CONVERT_H_

#include "penstock/drivers/kernels/operand.h"

PENSTOCK_KERNELS_BEGIN

#define TYPE f32
#include "penstock/drivers/kernels/convert_type-inl.h"
#define TYPE f16
#include "penstock/drivers/kernels/convert_type-inl.h"
#define TYPE bf16
#include "penstock/drivers/kernels/convert_type-inl.h"
#define TYPE f8e4m3
#include "penstock/drivers/kernels/convert_type-inl.h"
#define TYPE f8e5m2
#include "penstock/drivers/kernels/convert_type-inl.h"
#define TYPE block
#include "penstock/drivers/kernels/convert_type-inl.h"

PENSTOCK_KERNELS_END
#endif
