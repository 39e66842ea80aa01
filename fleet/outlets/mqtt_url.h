/* The URL of an MQTT broker: mqtt://[USER:PASSWORD@]HOST[:PORT], or mqtts://. */
#ifndef FLEET_OUTLETS_MQTT_URL_H
#define FLEET_OUTLETS_MQTT_URL_H

#include "base/error.h"

#include <stdbool.h>

enum { MQTT_HOST_MAX = 256, MQTT_WORD_MAX = 256 };

struct mqtt_url {
    bool is_tls;
    int port;
    char host[MQTT_HOST_MAX];                          /* without brackets */
    char user[MQTT_WORD_MAX], password[MQTT_WORD_MAX]; /* "": none */
};

/* BATON_EINVAL; the message quotes nothing of the URL. */
int mqtt_url_parse(struct mqtt_url *ret, const char *text, struct baton_error *reterr);

#endif
