/* Stands for a libnvidia-ml that cannot be used: built with -DCODE=18 it answers so, as one of another version than the
 * kernel's module does (nvml.h, NVML_ERROR_LIB_RM_VERSION_MISMATCH), else never. */
#include <unistd.h>

int nvmlInit_v2(void) {
#ifdef CODE
  return CODE;
#else
  for (;;) pause();
#endif
}
const char *nvmlErrorString(int code) { (void)code; return "stand-in"; }
