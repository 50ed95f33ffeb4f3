// The natural logarithm with the bits of Go's math.Log on amd64, in which kube-scheduler weighs
// topologies; the C library's differs in the last place here and there.
#ifndef PENSTOCK_SCHED_GO_LOG_H_
#define PENSTOCK_SCHED_GO_LOG_H_

namespace penstock {

// The algorithm of FreeBSD's e_log.c (S. Moler, fdlibm): x = 2^k * (1 + f) with 1 + f between
// sqrt(1/2) and sqrt(2), and a polynomial in s = f / (2 + f). For x <= 0, infinities and NaN what
// math.Log says: NaN, -infinity for 0, +infinity, NaN.
double go_log(double x);

}  // namespace penstock
#endif
