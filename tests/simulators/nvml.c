/* A stand-in for NVIDIA's libnvidia-ml.so.1: the functions that eeio calls, for three GPUs.
 *
 * GPU 0 counts energy, GPU 1 reports power only, GPU 2 neither. A test sets the values and the
 * status that readings return (0: success, 15: the GPU is lost). */

#include <string.h>

enum { SUCCESS = 0, INVALID_ARGUMENT = 2, NOT_SUPPORTED = 3, NOT_FOUND = 6, GPUS = 3 };

unsigned long long energy_mj = 1000;
unsigned int power_mw = 75250, gpu_count = 2, opened;
int status;

static int numbers[GPUS] = {0, 1, 2};
static const char *names[GPUS] = {"Stand-in V100", "Stand-in P40", "Stand-in part"};
static const char *uuids[GPUS] = {"GPU-a", "GPU-b", "GPU-c"};

int nvmlInitWithFlags(unsigned int flags) { opened++; return flags ? INVALID_ARGUMENT : SUCCESS; }
int nvmlShutdown(void) { opened--; return SUCCESS; }
const char *nvmlErrorString(int result) { return result == 15 ? "GPU is lost" : "an error"; }
int nvmlDeviceGetCount_v2(unsigned int *count) { *count = gpu_count; return SUCCESS; }

int nvmlDeviceGetHandleByIndex_v2(unsigned int index, void **device) {
	if (index >= gpu_count) return INVALID_ARGUMENT;
	*device = &numbers[index];
	return SUCCESS;
}

int nvmlDeviceGetHandleByUUID(const char *uuid, void **device) {
	for (int i = 0; i < GPUS; i++)
		if (!strcmp(uuid, uuids[i])) { *device = &numbers[i]; return SUCCESS; }
	return NOT_FOUND;
}

static int copied(const char *text, char *to, unsigned int length) {
	strncpy(to, text, length - 1);
	return SUCCESS;
}

int nvmlDeviceGetName(int *device, char *to, unsigned int length) {
	return copied(names[*device], to, length);
}

int nvmlDeviceGetUUID(int *device, char *to, unsigned int length) {
	return copied(uuids[*device], to, length);
}

int nvmlDeviceGetTotalEnergyConsumption(int *device, unsigned long long *mj) {
	*mj = energy_mj;
	return *device ? NOT_SUPPORTED : status;
}

int nvmlDeviceGetPowerUsage(int *device, unsigned int *mw) {
	*mw = power_mw;
	return *device == 2 ? NOT_SUPPORTED : status;
}
