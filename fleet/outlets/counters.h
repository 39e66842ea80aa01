/* What the outlets count, for /metrics. */
#ifndef FLEET_OUTLETS_COUNTERS_H
#define FLEET_OUTLETS_COUNTERS_H

#include <stdint.h>

/* X(field, what it counts) */
#define OUTLETS_COUNTERS(X)                                                                        \
    X(webhook_sent, "events that a webhook accepted")                                              \
    X(webhook_retries, "requests to a webhook that repeated one that failed")                      \
    X(webhook_failed, "events that a webhook refused, or did not accept after all retries")        \
    X(webhook_dropped, "events that a webhook never got because newer ones waited")                \
    X(mqtt_sent, "events that the MQTT broker confirmed")                                          \
    X(mqtt_dropped, "events that the MQTT broker never got because newer ones waited")             \
    X(mqtt_connections, "connections to the MQTT broker")

#define OUTLETS_COUNTER(field, text) uint64_t field;
struct outlets_counters {
    OUTLETS_COUNTERS(OUTLETS_COUNTER)
};
#undef OUTLETS_COUNTER

#endif
