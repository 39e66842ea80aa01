#include "fleet/outlets/outlets.h"

#include "base/buffer.h"
#include "base/json_text.h"
#include "fleet/outlets/event_names.h"
#include "fleet/outlets/mqtt.h"
#include "fleet/outlets/webhook.h"

#include <inttypes.h>
#include <openssl/rand.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define DETECTION "detection"

enum { WEBHOOKS_MAX = 32, AT_ROOM = 32, PREFIX_ROOM = 64, ID_ROOM = 48, ENVELOPE_MAX = 1024 };

struct outlets {
    struct outlets_config config;
    struct outlets_counters counters;
    event_names webhook_events, mqtt_events;
    struct tls *tls; /* of webhooks by https */
    struct webhook *webhooks[WEBHOOKS_MAX];
    size_t webhook_count;
    struct mqtt *mqtt;  /* NULL: none */
    uint64_t run, told; /* the parts of an event's id */
    bool is_closing;
    unsigned holds; /* outlets that are not closed, and the caller */
};

/* ---- What is sent ---------------------------------------------------------------------------- */

static void put_at(char ret[static AT_ROOM])
{
    struct timespec now;
    struct tm parts;
    size_t used;

    (void)clock_gettime(CLOCK_REALTIME, &now);
    (void)gmtime_r(&now.tv_sec, &parts);
    used = strftime(ret, AT_ROOM, "%Y-%m-%dT%H:%M:%S", &parts);
    (void)snprintf(ret + used, AT_ROOM - used, ".%03ldZ", now.tv_nsec / 1000000);
}

static bool is_wanted(const struct outlets *outlets, const char *name)
{
    return !outlets->is_closing &&
           event_names_have(outlets->webhook_events | outlets->mqtt_events, name);
}

static void put_all(struct outlets *outlets, struct message *message)
{
    if (message == NULL) {
        return; /* out of memory */
    }
    if (event_names_have(outlets->webhook_events, message->event)) {
        for (size_t i = 0; i < outlets->webhook_count; i++) {
            webhook_put(outlets->webhooks[i], message);
        }
    }
    if (event_names_have(outlets->mqtt_events, message->event)) {
        mqtt_put(outlets->mqtt, message);
    }
    message_unref(message);
}

/* NULL: out of memory. */
static struct message *event_message(struct outlets *outlets, const char *name,
                                     const json_t *fields)
{
    char at[AT_ROOM], id[ID_ROOM];
    struct message *message = NULL;
    json_t *whole;
    char *text;

    put_at(at);
    (void)snprintf(id, sizeof(id), "%016" PRIx64 "-%" PRIu64, outlets->run, ++outlets->told);
    whole = json_pack("{s:s, s:s, s:s, s:s, s:s}", "event", name, "at", at, "fleet",
                      outlets->config.fleet, "process", outlets->config.process, "id", id);
    text = whole != NULL && json_object_update(whole, (json_t *)fields) == 0
               ? json_text(whole, JSON_COMPACT)
               : NULL;
    if (text != NULL) {
        message = message_new(name, text, strlen(text));
    }
    free(text);
    json_decref(whole);
    return message;
}

void outlets_event(struct outlets *outlets, const char *name, const json_t *fields)
{
    if (is_wanted(outlets, name)) {
        put_all(outlets, event_message(outlets, name, fields));
    }
}

/* The line has the process and a key, which is the id; it is not parsed. */
void outlets_detection(struct outlets *outlets, const char *line, size_t bytes)
{
    struct buffer text;
    char at[AT_ROOM];

    if (!is_wanted(outlets, DETECTION)) {
        return;
    }
    put_at(at);
    buffer_init(&text, ENVELOPE_MAX + bytes);
    buffer_printf(&text, "{\"event\":\"" DETECTION "\",\"at\":\"%s\",\"fleet\":\"%s\",", at,
                  outlets->config.fleet);
    buffer_put(&text, line + 1, bytes - 1);
    if (!text.failed) {
        put_all(outlets, message_new(DETECTION, (const char *)text.data, text.bytes));
    }
    buffer_fini(&text);
}

/* ---- Life ------------------------------------------------------------------------------------ */

static void release(void *userdata)
{
    struct outlets *outlets = userdata;

    if (--outlets->holds == 0) {
        tls_free(outlets->tls);
        free(outlets);
    }
}

static void on_failed(void *userdata, const char *shown, const struct baton_error *error)
{
    struct outlets *outlets = userdata;

    outlets->config.on_failed(outlets->config.userdata, shown, error);
}

static int open_webhook(struct outlets *outlets, const char *url, struct baton_error *reterr)
{
    const struct webhook_config config = {.loop = outlets->config.loop,
                                          .url = url,
                                          .secret = outlets->config.webhook_secret,
                                          .tls = outlets->tls,
                                          .counters = &outlets->counters,
                                          .on_failed = on_failed,
                                          .on_closed = release,
                                          .userdata = outlets};
    int code = webhook_open(&outlets->webhooks[outlets->webhook_count], &config, reterr);

    if (code == BATON_OK) {
        outlets->webhook_count++;
        outlets->holds++;
    }
    return code;
}

static int open_webhooks(struct outlets *outlets, struct baton_error *reterr)
{
    const struct tls_client_options tls = {.ca_file = NULL};
    const char *const *urls = outlets->config.webhooks;
    int code = event_names_parse(&outlets->webhook_events, outlets->config.webhook_events, reterr);

    if (code != BATON_OK) {
        return error_wrap(reterr, "--webhook-events");
    }
    if (urls[0] == NULL) {
        outlets->webhook_events = 0;
        return BATON_OK;
    }
    code = tls_new_client(&outlets->tls, &tls, reterr);
    for (size_t i = 0; code == BATON_OK && urls[i] != NULL; i++) {
        code = i < WEBHOOKS_MAX ? open_webhook(outlets, urls[i], reterr)
                                : error_set(reterr, BATON_EINVAL,
                                            "--webhook: at most %d are allowed", WEBHOOKS_MAX);
    }
    return code;
}

static int open_mqtt(struct outlets *outlets, struct baton_error *reterr)
{
    char prefix[PREFIX_ROOM];
    struct mqtt_config config = {.loop = outlets->config.loop,
                                 .url = outlets->config.mqtt,
                                 .prefix = outlets->config.mqtt_topic,
                                 .process = outlets->config.process,
                                 .counters = &outlets->counters,
                                 .on_failed = on_failed,
                                 .on_closed = release,
                                 .userdata = outlets};
    event_names events;
    int code = event_names_parse(&events, outlets->config.mqtt_events, reterr);

    if (code != BATON_OK) {
        return error_wrap(reterr, "--mqtt-events");
    }
    if (config.url == NULL) {
        return BATON_OK;
    }
    if (config.prefix == NULL) {
        (void)snprintf(prefix, sizeof(prefix), "baton/%s", outlets->config.fleet);
        config.prefix = prefix;
    }
    code = mqtt_open(&outlets->mqtt, &config, reterr);
    if (code == BATON_OK) {
        outlets->mqtt_events = events;
        outlets->holds++;
    }
    return code;
}

int outlets_open(struct outlets **ret, const struct outlets_config *config,
                 struct baton_error *reterr)
{
    struct outlets *outlets = calloc(1, sizeof(*outlets));
    int code;

    if (outlets == NULL || RAND_bytes((unsigned char *)&outlets->run, sizeof(outlets->run)) != 1) {
        free(outlets);
        return error_set(reterr, BATON_ENOMEM, "out of memory, or of random numbers");
    }
    outlets->config = *config;
    outlets->holds = 1;
    code = open_webhooks(outlets, reterr);
    code = code ? code : open_mqtt(outlets, reterr);
    if (code != BATON_OK) {
        outlets_close(outlets);
        return code;
    }
    *ret = outlets;
    return BATON_OK;
}

const struct outlets_counters *outlets_counters(const struct outlets *outlets)
{
    return &outlets->counters;
}

void outlets_close(struct outlets *outlets)
{
    if (outlets == NULL) {
        return;
    }
    outlets->is_closing = true;
    for (size_t i = 0; i < outlets->webhook_count; i++) {
        webhook_close(outlets->webhooks[i]);
    }
    if (outlets->mqtt != NULL) {
        mqtt_close(outlets->mqtt);
    }
    release(outlets);
}
