/* Loaded before the programs that serve the disks: their memory is never swapped out.
 *
 * One of the disks is swap space. A server whose own page lies there would wait for itself to bring it back, and with it
 * every program that swaps.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

__attribute__ ((constructor)) static void
lock_memory (void)
{
  /* What is touched is locked; the stacks of threads are not filled for it. */
  if (mlockall (MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT) == -1) {
    perror ("mlockall");
    exit (EXIT_FAILURE);
  }
}
