/* Stands for libcuda.so.1: cuInit answers with the code STAND_IN_CUDA, or never (hang). */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int cuInit(unsigned flags) {
  (void)flags;
  const char *says = getenv("STAND_IN_CUDA");
  while (says && !strcmp(says, "hang")) pause();
  return says ? atoi(says) : 0;
}
