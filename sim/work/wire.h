/* The queue of events, and what travels: messages, requests, replies, notices. */
#ifndef SIM_WORK_WIRE_H
#define SIM_WORK_WIRE_H

#include "sim/work/yard.h"

/* Borrowed until the next push. It is the caller's to fill in, but for .at. */
struct yard_event *yard_push(struct yard *yard, enum yard_event_kind kind, int64_t at);
/* For a process in its present life. */
struct yard_event *yard_push_process(struct yard *yard, const struct yard_process *process,
                                     enum yard_event_kind kind, int64_t at);
/* Schedules the event again; it is left without its references. */
void yard_push_again(struct yard *yard, struct yard_event *event, int64_t at);
/* The references of the event are the caller's: yard_event_fini(). */
bool yard_pop(struct yard *yard, struct yard_event *ret);
void yard_event_fini(struct yard_event *event);
/* Drops all that is scheduled. */
void yard_drain(struct yard *yard);

struct yard_value *yard_value_new(const void *data, size_t bytes);
struct yard_value *yard_value_ref(struct yard_value *value); /* NULL allowed, as below */
void yard_value_unref(struct yard_value *value);

/* Reads what the buffer has, as a receiver does. A core's message that cannot be read is a
 * violation. */
struct yard_letter *yard_letter_new(struct yard *yard, const void *data, size_t bytes);
void yard_letter_unref(struct yard_letter *letter);
/* A process sends it to another one: it arrives late, twice, or not at all. */
void yard_deliver(struct yard *yard, const struct yard_process *from, const struct yard_process *to,
                  enum yard_event_kind kind, struct yard_letter *letter);

/* How long something takes to travel. */
int64_t yard_way(struct yard *yard);
/* When something that leaves now arrives, if a cut of `process` (NULL: none) holds it up;
 * INT64_MAX: it is lost. */
int64_t yard_arrival(struct yard *yard, const struct yard_process *process);

instant yard_local(const struct yard *yard, const struct yard_process *process);
int64_t yard_unix_ms(const struct yard *yard, const struct yard_process *process);

#endif
