/* Events that leave the fleet: to webhooks and to an MQTT broker.
 *
 *   outlets_event ─────┐                  ┌──▶ webhook.h
 *   outlets_detection ─┴─▶ wanted? ─JSON──┤
 *                                         └──▶ mqtt.h
 *
 *   {"event":"camera-offline","at":"2024-01-02T03:04:05.678Z","fleet":"fleet","process":"a",
 *    "id":"5f0c…-17", and the event's own fields}
 *
 * Each outlet has a queue with a maximum, and none of them holds up the caller. Every process of
 * the fleet has outlets: the caller passes each event in one process only.
 *
 * The loop's thread only.
 */
#ifndef FLEET_OUTLETS_OUTLETS_H
#define FLEET_OUTLETS_OUTLETS_H

#include "base/error.h"
#include "fleet/outlets/counters.h"

#include <jansson.h>
#include <stddef.h>
#include <uv.h>

struct outlets; /* opaque */

/* Texts are borrowed until the loop has ended what outlets_close() began. */
struct outlets_config {
    uv_loop_t *loop;
    const char *fleet, *process; /* names */
    const char *const *webhooks; /* URLs; ends with NULL */
    const char *webhook_secret;  /* NULL: requests are not signed */
    const char *webhook_events;  /* event_names.h */
    const char *mqtt;            /* URL of the broker; NULL: none */
    const char *mqtt_topic;      /* before "/EVENT"; NULL: "baton/" and the fleet's name */
    const char *mqtt_events;
    /* An outlet fails; comes once until it succeeds again. `outlet` is its URL, masked. */
    void (*on_failed)(void *userdata, const char *outlet, const struct baton_error *error);
    void *userdata;
};

/* BATON_EINVAL names the wrong option; BATON_ENOMEM. */
int outlets_open(struct outlets **ret, const struct outlets_config *config,
                 struct baton_error *reterr);
/* Fields are borrowed. */
void outlets_event(struct outlets *outlets, const char *name, const json_t *fields);
/* A line as fleet/detections/line.h has it. */
void outlets_detection(struct outlets *outlets, const char *line, size_t bytes);
const struct outlets_counters *outlets_counters(const struct outlets *outlets);
/* What waits is lost. The memory ends in the loop; no callback comes. NULL is nothing. */
void outlets_close(struct outlets *outlets);

#endif
