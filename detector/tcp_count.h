/* How many bytes went over a TCP connection, as the system counts them. A room of its own: the
 * kernel's header, which knows the count, does not go with the C library's. */
#ifndef DETECTOR_TCP_COUNT_H
#define DETECTOR_TCP_COUNT_H

#include <stdbool.h>
#include <stdint.h>

/* Those that the other side's system has said it has. False: this system does not count. */
bool tcp_count_taken(int fd, uint64_t *ret);

/* What that will be once it has all that was written until now. */
bool tcp_count_written(int fd, uint64_t *ret);

#endif
