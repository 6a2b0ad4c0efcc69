/* Lets OpenIPMI's ipmi_sim answer DCMI's Get Power Reading (DCMI 1.5, table 6-16), which it does not
 * know by itself. In its configuration file:
 *
 *     loadlib "/path/of/dcmi.so" "/path/of/watts"
 *
 * The watts, a decimal number, are read from that file at each question. Compile with
 * `cc -shared -fPIC`; the declarations are those of OpenIPMI/mcserv.h, so that its
 * headers need not be there. */

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

typedef void handler(void *mc, void *message, unsigned char *answer, unsigned int *length,
		     void *data);
void ipmi_emu_register_group_extension_handler(uint8_t extension, handler *function, void *data);

enum { DCMI = 0xdc, INVALID_COMMAND = 0xc1, ACTIVE = 0x40, PERIOD_MS = 1000 };

static char watts_path[4096];

static unsigned char *put(unsigned char *place, uint32_t value, int bytes)
{
	for (int k = 0; k < bytes; k++)
		*place++ = (unsigned char)(value >> (8 * k));
	return place;
}

static void power_reading(void *mc, void *message, unsigned char *answer, unsigned int *length,
			  void *data)
{
	(void)mc, (void)message, (void)data;
	unsigned watts;
	FILE *file = fopen(watts_path, "r");
	const int found = file != NULL && fscanf(file, "%u", &watts) == 1;
	if (file != NULL)
		fclose(file);
	if (!found) {
		answer[0] = INVALID_COMMAND;
		*length = 1;
		return;
	}
	unsigned char *end = put(answer, 0, 1);
	end = put(end, DCMI, 1);
	end = put(end, watts, 2);	/* current */
	end = put(end, watts, 2);	/* minimum */
	end = put(end, watts, 2);	/* maximum */
	end = put(end, watts, 2);	/* average */
	end = put(end, (uint32_t)time(NULL), 4);
	end = put(end, PERIOD_MS, 4);
	end = put(end, ACTIVE, 1);
	*length = (unsigned)(end - answer);
}

int ipmi_sim_module_print_version(void *sys, char *options)
{
	(void)sys, (void)options;
	return 0;
}

int ipmi_sim_module_init(void *sys, char *options)
{
	(void)sys;
	snprintf(watts_path, sizeof watts_path, "%s", options);
	ipmi_emu_register_group_extension_handler(DCMI, power_reading, NULL);
	return 0;
}
