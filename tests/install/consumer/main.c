#include <penstock/penstock.h>
#include <stdio.h>
#include <string.h>

int main(void) {
  const char* ok = penstock_status_name(PENSTOCK_OK);
  if (ok == NULL || strlen(ok) == 0 || strlen(penstock_version_string()) == 0) return 1;
  printf("%s %s\n", penstock_version_string(), ok);
  return 0;
}
