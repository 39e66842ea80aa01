/* Threads that nobody joins. */
#ifndef BASE_THREAD_H
#define BASE_THREAD_H

/* The thread handles no signal of the process, and ends when `body` returns. Returns 0 or an errno
 * of pthread_create(3): then there is no thread. Any thread may call it. */
int thread_start_detached(void *(*body)(void *userdata), void *userdata);

#endif
