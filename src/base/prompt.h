/* Threads that mostly sleep, and must answer at once when they are woken. */
#ifndef BASE_PROMPT_H
#define BASE_PROMPT_H

/* Asks the kernel (Linux 6.12 and later) to run the calling thread sooner, in shorter time slices:
 * its share of the processor stays the same. Threads and processes that it starts inherit this.
 * Older kernels ignore it, and a thread with a scheduling policy of its own keeps it. Needs no
 * privilege.
 */
void thread_be_prompt(void);

#endif
