/* A container's program: it does nothing, for an hour at most. */
#include <unistd.h>

int main(void) { return sleep(3600) ? 1 : 0; }
