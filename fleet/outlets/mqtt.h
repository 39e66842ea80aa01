/* Events to an MQTT broker (3.1.1), by libmosquitto on our loop.
 *
 *   PREFIX/EVENT          the event, QoS 1
 *   PREFIX/process/NAME   "online" or "offline", retained; the latter is the connection's last will
 *
 *   mqtt_put ──▶ queue ──connected, few unconfirmed──▶ publish ──PUBACK──▶ sent
 *
 *   WAITS ──timer──▶ RESOLVES ──an address──▶ CONNECTS ──CONNACK──▶ UP
 *     ▲                 │ no such name           │ refused, late       │
 *     └──── backoff.h ──┴────────────────────────┴─────────────────────┘ ended
 *
 * Names are resolved here, for libmosquitto would block. What the broker has not confirmed when
 * a connection ends is published again on the next one.
 *
 * The loop's thread only.
 */
#ifndef FLEET_OUTLETS_MQTT_H
#define FLEET_OUTLETS_MQTT_H

#include "fleet/outlets/counters.h"
#include "fleet/outlets/queue.h"

#include "base/error.h"

#include <uv.h>

struct mqtt; /* opaque */

/* Texts are copied; the counters outlive it. */
struct mqtt_config {
    uv_loop_t *loop;
    const char *url;     /* mqtt_url.h */
    const char *prefix;  /* of the topics */
    const char *process; /* this process's name */
    struct outlets_counters *counters;
    /* The first failure after a connection; nothing in it is secret. */
    void (*on_failed)(void *userdata, const char *shown, const struct baton_error *error);
    void (*on_closed)(void *userdata); /* once, after mqtt_close() */
    void *userdata;
};

/* BATON_EINVAL names the option and quotes nothing of the URL; BATON_ENOMEM. */
int mqtt_open(struct mqtt **ret, const struct mqtt_config *config, struct baton_error *reterr);
void mqtt_put(struct mqtt *mqtt, struct message *message);
/* At once: what waits is lost, and the broker publishes the last will. */
void mqtt_close(struct mqtt *mqtt);

#endif
