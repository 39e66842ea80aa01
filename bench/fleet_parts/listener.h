/* A client of /events that measures how old each detection is when it comes. */
#ifndef BENCH_FLEET_LISTENER_H
#define BENCH_FLEET_LISTENER_H

#include <stdint.h>
#include <uv.h>

/* Connects to 127.0.0.1:port, and ends the program if that fails. One at a time. */
void listener_open(uv_loop_t *loop, unsigned port);

uint64_t listener_heard(void);
/* Of those since the latest call: ages in ms; 0 if there were none. */
void listener_ages(double *ret_p50, double *ret_p99, double *ret_max);

#endif
