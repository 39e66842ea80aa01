/* Real processes for tests: started, waited for with a deadline, and never left behind.
 *
 * Deadlines are generous (PATIENCE_MS) and only say how long a broken test takes to fail;
 * no test measures time with them. Every failure is a cmocka failure of the calling test, so the
 * functions may only be used in the test's own process.
 */
#ifndef TESTS_LIB_PROCESS_H
#define TESTS_LIB_PROCESS_H

#include "lib/patience.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Runs body(userdata) in a new process, which exits with the result and dies with the test. */
pid_t process_fork(int (*body)(void *userdata), void *userdata);

/* Waits until the child has ended; returns its wait status. */
int process_wait(pid_t child);
/* Kills by pid (SIGKILL) and waits; a child that has ended already is fine. */
void process_end(pid_t child);

/* Whether the process exists and is no zombie. */
bool process_lives(pid_t pid);
/* The number behind a key of /proc/PID/status, in that base; -1: no such process or key. */
long process_status(pid_t pid, const char *key, int base);
/* A child of any of its threads; 0: it has none. */
pid_t process_child(pid_t pid);
/* Waits until it is not alive. */
void process_wait_gone(pid_t pid);
/* Waits until it is stopped by a signal. */
void process_wait_stopped(pid_t pid);
/* Kills the starter of a process, and waits until that process ends too. The process is stopped, as
 * if it hung, so it cannot notice. start() runs in its own process and returns the pid to watch. */
void process_must_die_with_starter(pid_t (*start)(void *userdata), void *userdata);

/* Waits until fd is readable or ended. */
void process_wait_readable(int fd);
/* Reads exactly `bytes`. */
void process_read(int fd, void *ret, size_t bytes);
/* Reads until the end of the stream, at most `bytes`; returns how many came. */
size_t process_read_all(int fd, void *ret, size_t bytes);

/* Ports of the loopback that were free a moment ago, each another, and none that another test was
 * given: until this process ends. */
void process_free_ports(int *ret, size_t count);
int process_free_port(void);
/* A listening socket on the loopback, on a port that was free. */
int process_listen(int *ret_port);
/* The next connection to it. */
int process_accept(int listener);

/* How many entries a folder has, "." and ".." left out. */
unsigned process_count_entries(const char *folder);
/* How many descriptors this process has open. */
unsigned process_count_descriptors(void);
/* Puts what a file holds there, and a NUL, if it has less than `bytes`; returns how much that is.
 */
size_t process_read_file(const char *path, void *ret, size_t bytes);
/* Makes that file, or replaces it. */
void process_write_file(const char *path, const void *bytes, size_t count);
/* A fresh folder, and its removal with all that is in it. */
void process_make_folder(char *ret, size_t ret_bytes);
void process_remove_folder(const char *folder);

#endif
