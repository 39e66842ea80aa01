/* A model of the Redis server. */
#ifndef SIM_LEASE_SERVER_H
#define SIM_LEASE_SERVER_H

#include "sim/lease/contest.h"

void server_begin(struct contest *contest);
/* Carries out the script of a request. */
struct lease_input server_serve(struct contest *contest, const struct contest_request *request);
void server_happen(struct contest *contest, const struct contest_event *event);
/* The data that the new process has. */
enum server_memory { SERVER_HAS_ALL, SERVER_HAS_NOTHING, SERVER_HAS_OLD_COPY, SERVER_WAS_REPLICA };
void server_fail(struct contest *contest, enum server_memory memory);
void server_copied(struct contest *contest);
/* A visitor, which knows only the key, takes the lock if it is free, or gives it back. */
void server_visit(struct contest *contest);
void server_visitor_leaves(struct contest *contest);
void server_set_rate(struct contest *contest);
void server_clock_back(struct contest *contest);
int64_t server_ms(struct contest *contest);

#endif
