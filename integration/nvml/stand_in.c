/* Stands for libnvidia-ml.so.1: as many GPUs as STAND_IN_NVML says, each with the faults that it says, in words:
 *
 *   gpus=8          so many
 *   kind=t4         Tesla T4s: no MIG, no remapping, no fabric; kind=new: what no table knows yet; else H100s
 *   init=18         nvmlInit_v2 answers with this code; count=999: so does nvmlDeviceGetCount_v2
 *   bad=3:15        the handle of GPU 3 is refused with this code
 *   odd=1:4242      whatever GPU 1 is asked but its handle and UUID answers with this code
 *   hang=init       nvmlInit_v2 never comes back; hang=count, hang=processes: nor do these
 *   hang=5          nor does the handle of GPU 5
 *   die=init        the process ends in nvmlInit_v2
 *   full=1          its memory is in use; by=1:4711 by this process alone, else it names nobody
 *   exclusive=1     so is its mode; process 4711 has it, or that of by=
 *   fabric=1:2      the state of its registration; fabricstatus=23: how it ended
 *   mig=1           MIG is on; instances=1:2: with so many instances
 *   vgpu=1          it is a virtual machine's; licence=1: with a licence
 *   ecc=1 pending=1 idle=1    so it is with this GPU
 *
 * Built with -DOLD it lacks what came later than R450, with -DOLDEST even nvmlInit_v2. Written from nvml.h's
 * documentation (12.4 and 13.0). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct { char legacy[16]; unsigned domain, bus, device, id, subsystem; char id_text[32]; } pci_t;
typedef struct { unsigned long long total, free, used; } memory_t;
typedef struct { unsigned version; unsigned long long total, reserved, free, used; } memory2_t;
typedef struct { unsigned pid; unsigned long long used; unsigned gi, ci; } process_t;
typedef struct { unsigned id, scope; long long time, latency; int type, code; union { double d; unsigned u; unsigned long long ull; } value; } field_t;
typedef struct { unsigned version; unsigned char cluster[16]; int status; unsigned clique; unsigned char state; unsigned health; unsigned char summary; } fabric_t;
typedef struct { unsigned year; unsigned short month, day, hour, min, sec; unsigned char status; } expiry_t;
typedef struct { int code; unsigned state; char info[128], product[128]; unsigned enabled; expiry_t expiry; } feature_t;
typedef struct { int supported; unsigned count; feature_t features[3]; } features_t;
typedef struct { unsigned sm, ce, dec, enc, jpeg, ofa, gi, ci; unsigned long long memory; } attributes_t;

static int word(const char *name, long n) { /* name=n stands there, or for n < 0 what stands behind name= */
  const char *text = getenv("STAND_IN_NVML");
  char wanted[64];
  snprintf(wanted, sizeof wanted, n < 0 ? "%s=" : "%s=%ld", name, n);
  for (text = text ? text : ""; (text = strstr(text, wanted)); text++) {
    const char *all = getenv("STAND_IN_NVML");
    char end = text[strlen(wanted)];
    if (text > all && text[-1] != ' ') continue;
    if (n < 0) return atoi(text + strlen(wanted));
    if (!end || end == ' ') return 1;
    if (end == ':') return atoi(text + strlen(wanted) + 1);
  }
  return n < 0 ? -1 : 0;
}

static int has(const char *text) { const char *all = getenv("STAND_IN_NVML"); return all && strstr(all, text) != NULL; }
static void stay(void) { for (;;) pause(); }

#define GPU ((long)device & 0xff)
#define INSTANCE ((long)device >> 8 & 0xff)
#define ODD do { if (word("odd", GPU)) return word("odd", GPU); } while (0)
#define NOT_SUPPORTED 3

static int init(void) {
  if (has("hang=init")) stay();
  if (has("die=init")) abort();
  int code = word("init", -1);
  return code < 0 ? 0 : code;
}
int nvmlInit(void) { return init(); }
#ifndef OLDEST
int nvmlInit_v2(void) { return init(); }
#endif
int nvmlShutdown(void) { return 0; }
const char *nvmlErrorString(int code) { (void)code; return "stand-in"; }
int nvmlSystemGetDriverVersion(char *to, unsigned size) { snprintf(to, size, "%s", "550.163.01"); return 0; }
int nvmlSystemGetCudaDriverVersion_v2(int *to) { *to = 12040; return 0; }
int nvmlDeviceGetCount_v2(unsigned *to) {
  if (has("hang=count")) stay();
  int n = word("gpus", -1), code = word("count", -1);
  *to = n < 0 ? 2 : n;
  return code < 0 ? 0 : code;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned n, void **to) {
  if (word("hang", n)) stay();
  *to = (void *)(long)(0x10000 + n);
  return word("bad", n);
}
int nvmlDeviceGetUUID(void *device, char *to, unsigned size) {
  const char *kind = INSTANCE ? "MIG" : "GPU";
  snprintf(to, size, "%s-0000000%ld-0000-4000-8000-%012ld", kind, GPU, INSTANCE ? INSTANCE + 1 : 1);
  return 0;
}
int nvmlDeviceGetName(void *device, char *to, unsigned size) {
  ODD;
  const char *name = has("kind=t4") ? "Tesla T4" : has("kind=new") ? "NVIDIA Z900" : "NVIDIA H100 80GB HBM3";
  snprintf(to, size, "%s%s", name, INSTANCE ? " MIG 1g.10gb" : "");
  return 0;
}
int nvmlDeviceGetPciInfo_v3(void *device, pci_t *to) {
  ODD;
  memset(to, 0, sizeof *to);
  snprintf(to->id_text, sizeof to->id_text, "00000000:%02lX:00.0", GPU + 1);
  snprintf(to->legacy, sizeof to->legacy, "0000:%02lX:00.0", GPU + 1);
  return 0;
}
int nvmlDeviceGetMinorNumber(void *device, unsigned *to) { ODD; *to = GPU; return 0; }
int nvmlDeviceGetCudaComputeCapability(void *device, int *major, int *minor) {
  ODD;
  *major = has("kind=t4") ? 7 : has("kind=new") ? 99 : 9;
  *minor = has("kind=t4") ? 5 : has("kind=new") ? 7 : 0;
  return 0;
}
static void memory(long gpu, unsigned long long *total, unsigned long long *free) {
  *total = (has("kind=t4") ? 15ULL : 80ULL) << 30;
  *free = word("full", gpu) ? 1ULL << 30 : *total - (1ULL << 30);
}
int nvmlDeviceGetMemoryInfo(void *device, memory_t *to) { ODD; memory(GPU, &to->total, &to->free); to->used = to->total - to->free; return 0; }
int nvmlDeviceGetPersistenceMode(void *device, int *to) { ODD; *to = !word("idle", GPU); return 0; }
int nvmlDeviceGetComputeMode(void *device, int *to) { ODD; *to = word("exclusive", GPU) ? 3 : 0; return 0; }
int nvmlDeviceGetTotalEccErrors(void *device, int type, int counter, unsigned long long *to) {
  ODD;
  *to = type == 1 && counter == 0 && word("ecc", GPU) ? 2 : 0;
  return 0;
}
int nvmlDeviceGetRetiredPagesPendingStatus(void *device, int *to) { ODD; *to = 0; return has("kind=t4") ? 0 : NOT_SUPPORTED; }
int nvmlDeviceGetRetiredPages(void *device, int cause, unsigned *count, unsigned long long *to) {
  (void)cause; (void)to;
  ODD;
  *count = 0;
  return has("kind=t4") ? 0 : NOT_SUPPORTED;
}
int nvmlDeviceGetVirtualizationMode(void *device, int *to) { ODD; *to = word("vgpu", GPU) ? 2 : 0; return 0; }
#ifndef OLD
int nvmlDeviceGetRetiredPages_v2(void *device, int cause, unsigned *count, unsigned long long *to, unsigned long long *when) {
  (void)when;
  return nvmlDeviceGetRetiredPages(device, cause, count, to);
}
int nvmlDeviceGetMemoryInfo_v2(void *device, memory2_t *to) {
  ODD;
  memory(GPU, &to->total, &to->free);
  to->reserved = 512ULL << 20;
  to->used = to->total - to->free - to->reserved;
  return 0;
}
int nvmlDeviceGetFieldValues(void *device, int count, field_t *values) {
  ODD;
  for (int i = 0; i < count; i++) {
    values[i].type = 1;
    values[i].code = has("kind=t4") ? NOT_SUPPORTED : 0;
    values[i].value.ull = values[i].id == 144 && word("pending", GPU);
  }
  return 0;
}
int nvmlDeviceGetMigMode(void *device, unsigned *now, unsigned *next) {
  ODD;
  *now = *next = word("mig", GPU);
  return has("kind=t4") ? NOT_SUPPORTED : 0;
}
int nvmlDeviceGetMaxMigDeviceCount(void *device, unsigned *to) { (void)device; *to = 7; return 0; }
int nvmlDeviceGetMigDeviceHandleByIndex(void *device, unsigned n, void **to) {
  *to = (void *)((long)device | (long)(n + 1) << 8);
  return (int)n < word("instances", GPU) ? 0 : 6;
}
int nvmlDeviceGetAttributes_v2(void *device, attributes_t *to) {
  memset(to, 0, sizeof *to);
  to->memory = 9856;
  return INSTANCE ? 0 : NOT_SUPPORTED;
}
static int processes(int is_on, int pid, unsigned long long used, unsigned *count, process_t *to) {
  if (has("hang=processes")) stay();
  if (!is_on) { *count = 0; return 0; }
  if (*count < 1) { *count = 1; return 7; }
  *count = 1;
  to[0] = (process_t){.pid = pid, .used = used, .gi = ~0u, .ci = ~0u};
  return 0;
}
int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned *count, process_t *to) {
  ODD;
  int pid = word("by", GPU);
  return processes(pid || word("exclusive", GPU), pid ? pid : 4711, 70000ULL << 20, count, to);
}
int nvmlDeviceGetGraphicsRunningProcesses_v3(void *device, unsigned *count, process_t *to) { ODD; return processes(0, 0, 0, count, to); }
int nvmlDeviceGetMPSComputeRunningProcesses_v3(void *device, unsigned *count, process_t *to) { ODD; return processes(0, 0, 0, count, to); }
int nvmlDeviceGetGpuFabricInfoV(void *device, fabric_t *to) {
  ODD;
  if (to->version != (sizeof *to | 3 << 24)) return 25;
  if (has("kind=t4")) return NOT_SUPPORTED;
  int status = word("fabricstatus", -1);
  to->state = word("fabric", GPU);
  to->status = status < 0 ? 0 : status;
  return 0;
}
int nvmlDeviceGetGridLicensableFeatures_v4(void *device, features_t *to) {
  ODD;
  memset(to, 0, sizeof *to);
  to->supported = 1;
  to->count = 1;
  to->features[0].enabled = 1;
  to->features[0].state = word("licence", GPU);
  return 0;
}
#endif
