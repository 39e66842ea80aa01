/* Threads that mostly sleep, and must answer at once when they are woken. */
#ifndef BASE_PROMPT_H
#define BASE_PROMPT_H

/* Asks the kernel (Linux 6.12 and later) for short turns of the calling thread, soon, instead of
 * long ones, later: its share of the processor stays the same. What it starts inherits that. Older
 * kernels ignore it, and whoever has chosen a policy keeps it. Needs no privilege. */
void thread_be_prompt(void);

#endif
