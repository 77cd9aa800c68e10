/* The program of the containers: `exit N`, `signal N`, `cat`, `fds`, `tty`, `wait`. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	char buffer[4096];
	ssize_t n;
	int fd;

	if (argc < 2)
		return 99;
	if (!strcmp(argv[1], "exit"))
		return atoi(argv[2]);
	/* process 1 of a namespace is spared by its own signals: for a container in the host's */
	if (!strcmp(argv[1], "signal"))
		kill(getpid(), atoi(argv[2]));
	if (!strcmp(argv[1], "cat"))
		while ((n = read(0, buffer, sizeof buffer)) > 0)
			if (write(1, buffer, n) != n)
				return 97;
	if (!strcmp(argv[1], "fds"))
		for (fd = 3; fd < 10; fd++)
			if ((n = read(fd, buffer, sizeof buffer)) > 0)
				printf("%d: %.*s\n", fd, (int)n, buffer);
	if (!strcmp(argv[1], "tty"))
		printf("%d%d%d\n", isatty(0), isatty(1), isatty(2));
	if (!strcmp(argv[1], "wait"))
		for (;;)
			pause();
	return 0;
}
