/* A container's program: for an hour at most it does nothing but keep open what its argument names, as a CUDA program
 * keeps its GPU. */
#include <fcntl.h>
#include <unistd.h>

int main(int count, char **arguments) {
  if (count > 1 && open(arguments[1], O_RDWR) < 0) return 2;
  return sleep(3600) ? 1 : 0;
}
