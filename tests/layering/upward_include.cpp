// Must not compile with what penstock_base offers: comm stands above base.
#include "penstock/comm/comm.h"

int main() {}
