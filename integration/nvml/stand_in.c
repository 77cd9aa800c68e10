/* Stands for libnvidia-ml.so.1: as many GPUs as STAND_IN_NVML says, each with the faults that it says, in words:
 *
 *   gpus=8          so many
 *   init=18         nvmlInit_v2 answers with this code
 *   bad=3:15        the handle of GPU 3 is refused with this code
 *   hang=init       nvmlInit_v2 never comes back; hang=5: nor does the handle of GPU 5
 *   die=init        the process ends in nvmlInit_v2
 *   ecc=1 mig=1 exclusive=1 full=1 pending=1 idle=1    so it is with this GPU
 *
 * Built with -DOLD it lacks what came later than R450. Written from nvml.h's documentation (12.4). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct { char legacy[16]; unsigned domain, bus, device, id, subsystem; char id_text[32]; } pci_t;
typedef struct { unsigned long long total, free, used; } memory_t;
typedef struct { unsigned version; unsigned long long total, reserved, free, used; } memory2_t;
typedef struct { unsigned pid; unsigned long long used; unsigned gi, ci; } process_t;
typedef struct { unsigned id, scope; long long time, latency; int type, code; union { double d; unsigned u; unsigned long long ull; } value; } field_t;

static int word(const char *name, long n) { /* name=n stands there, or for n < 0 what stands behind name= */
  const char *text = getenv("STAND_IN_NVML");
  char wanted[64];
  snprintf(wanted, sizeof wanted, n < 0 ? "%s=" : "%s=%ld", name, n);
  for (text = text ? text : ""; (text = strstr(text, wanted)); text++) {
    char end = text[strlen(wanted)];
    if (n < 0) return atoi(text + strlen(wanted));
    if (!end || end == ' ') return 1;
    if (end == ':') return atoi(text + strlen(wanted) + 1);
  }
  return n < 0 ? -1 : 0;
}

static int has(const char *text) { const char *all = getenv("STAND_IN_NVML"); return all && strstr(all, text) != NULL; }
static void stay(void) { for (;;) pause(); }

int nvmlInit_v2(void) {
  if (has("hang=init")) stay();
  if (has("die=init")) abort();
  int code = word("init", -1);
  return code < 0 ? 0 : code;
}
int nvmlShutdown(void) { return 0; }
const char *nvmlErrorString(int code) { (void)code; return "stand-in"; }
int nvmlSystemGetDriverVersion(char *to, unsigned size) { snprintf(to, size, "%s", "550.163.01"); return 0; }
int nvmlSystemGetCudaDriverVersion_v2(int *to) { *to = 12040; return 0; }
int nvmlDeviceGetCount_v2(unsigned *to) { int n = word("gpus", -1); *to = n < 0 ? 2 : n; return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned n, void **to) {
  if (word("hang", n)) stay();
  *to = (void *)(long)(n + 1);
  return word("bad", n);
}
#define GPU ((long)device - 1)
int nvmlDeviceGetUUID(void *device, char *to, unsigned size) {
  snprintf(to, size, "GPU-0000000%ld-0000-4000-8000-000000000001", GPU);
  return 0;
}
int nvmlDeviceGetName(void *device, char *to, unsigned size) { (void)device; snprintf(to, size, "NVIDIA H100 80GB HBM3"); return 0; }
int nvmlDeviceGetPciInfo_v3(void *device, pci_t *to) {
  memset(to, 0, sizeof *to);
  snprintf(to->id_text, sizeof to->id_text, "00000000:%02lX:00.0", GPU + 1);
  snprintf(to->legacy, sizeof to->legacy, "0000:%02lX:00.0", GPU + 1);
  return 0;
}
int nvmlDeviceGetMinorNumber(void *device, unsigned *to) { *to = GPU; return 0; }
int nvmlDeviceGetCudaComputeCapability(void *device, int *major, int *minor) { (void)device; *major = 9; *minor = 0; return 0; }
static void memory(long gpu, unsigned long long *total, unsigned long long *free) {
  *total = 80ULL << 30;
  *free = word("full", gpu) ? 1ULL << 30 : 79ULL << 30;
}
int nvmlDeviceGetMemoryInfo(void *device, memory_t *to) { memory(GPU, &to->total, &to->free); to->used = to->total - to->free; return 0; }
int nvmlDeviceGetPersistenceMode(void *device, int *to) { *to = !word("idle", GPU); return 0; }
int nvmlDeviceGetComputeMode(void *device, int *to) { *to = word("exclusive", GPU) ? 3 : 0; return 0; }
int nvmlDeviceGetTotalEccErrors(void *device, int type, int counter, unsigned long long *to) {
  *to = type == 1 && counter == 0 && word("ecc", GPU) ? 2 : 0;
  return 0;
}
int nvmlDeviceGetRetiredPagesPendingStatus(void *device, int *to) { (void)device; (void)to; return 3; }
#ifndef OLD
int nvmlDeviceGetMemoryInfo_v2(void *device, memory2_t *to) { memory(GPU, &to->total, &to->free); to->used = to->total - to->free; return 0; }
int nvmlDeviceGetFieldValues(void *device, int count, field_t *values) {
  for (int i = 0; i < count; i++) {
    values[i].type = 1;
    values[i].code = 0;
    values[i].value.ull = values[i].id == 144 && word("pending", GPU);
  }
  return 0;
}
int nvmlDeviceGetMigMode(void *device, unsigned *now, unsigned *next) { *now = *next = word("mig", GPU); return 0; }
int nvmlDeviceGetMaxMigDeviceCount(void *device, unsigned *to) { (void)device; *to = 7; return 0; }
int nvmlDeviceGetMigDeviceHandleByIndex(void *device, unsigned n, void **to) { (void)device; (void)n; (void)to; return 6; }
int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned *count, process_t *to) {
  if (!word("exclusive", GPU)) { *count = 0; return 0; }
  if (*count < 1) { *count = 1; return 7; }
  *count = 1;
  to[0] = (process_t){.pid = 4711, .used = 1 << 20, .gi = ~0u, .ci = ~0u};
  return 0;
}
#endif
