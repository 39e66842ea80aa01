#include "fleet/outlets/mqtt.h"

#include "base/addresses.h"
#include "base/backoff.h"
#include "fleet/outlets/mqtt_url.h"

#include <mosquitto.h>
#include <openssl/rand.h>
#include <openssl/ssl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    QOS = 1,
    UNCONFIRMED_MAX = 100,
    KEEPALIVE_S = 15, /* also until the broker's CONNACK */
    TICK_MS = 1000,
    TOPIC_MAX = 512,
    SHOWN_MAX = MQTT_HOST_MAX + 32,
};

enum phase { PHASE_WAITS, PHASE_RESOLVES, PHASE_CONNECTS, PHASE_UP };

struct mqtt {
    struct mqtt_config config;
    struct mqtt_url url;
    char shown[SHOWN_MAX];
    char *prefix, *status_topic;
    SSL_CTX *tls; /* NULL: in the clear */
    struct mosquitto *client;
    struct queue queue;
    unsigned unconfirmed; /* events that were published */
    int status_id;        /* of the packet that says "online": no event */
    enum phase phase;
    bool is_failing; /* it was told since the last connection */
    bool is_closing;
    unsigned failures;         /* in a row */
    uv_poll_t *poll;           /* of its socket; NULL: none */
    uv_timer_t timer;          /* the next attempt; then a tick */
    struct addresses *request; /* NULL, but while the phase is RESOLVES */
    unsigned holds;            /* the timer, a poll */
};

static void on_timer(uv_timer_t *timer);

/* ---- Its end --------------------------------------------------------------------------------- */

static void destroy(struct mqtt *mqtt)
{
    if (mqtt->client != NULL) {
        mosquitto_destroy(mqtt->client);
        (void)mosquitto_lib_cleanup();
    }
    SSL_CTX_free(mqtt->tls);
    free(mqtt->prefix);
    free(mqtt->status_topic);
    explicit_bzero(mqtt, sizeof(*mqtt));
    free(mqtt);
}

static void release(struct mqtt *mqtt)
{
    if (--mqtt->holds == 0) {
        mqtt->config.on_closed(mqtt->config.userdata);
        destroy(mqtt);
    }
}

static void on_timer_closed(uv_handle_t *handle)
{
    release(handle->data);
}

static void on_poll_closed(uv_handle_t *handle)
{
    struct mqtt *mqtt = handle->data;

    free(handle);
    release(mqtt);
}

static void stop_polling(struct mqtt *mqtt)
{
    if (mqtt->poll != NULL) {
        uv_close((uv_handle_t *)mqtt->poll, on_poll_closed);
        mqtt->poll = NULL;
    }
}

void mqtt_close(struct mqtt *mqtt)
{
    mqtt->is_closing = true;
    queue_clear(&mqtt->queue);
    stop_polling(mqtt);
    if (mqtt->request != NULL) {
        addresses_leave(mqtt->request);
    }
    uv_close((uv_handle_t *)&mqtt->timer, on_timer_closed);
}

/* ---- A connection ends ----------------------------------------------------------------------- */

static void lose(struct mqtt *mqtt, int code, const char *reason)
{
    struct baton_error error;
    uint32_t number = 0;
    span wait;

    if (mqtt->phase == PHASE_WAITS || mqtt->is_closing) {
        return;
    }
    stop_polling(mqtt);
    mqtt->phase = PHASE_WAITS;
    (void)RAND_bytes((unsigned char *)&number, sizeof(number)); /* 0 is a number, too */
    wait = backoff_after(++mqtt->failures, SPAN_S(RETRY_FIRST_S), SPAN_S(RETRY_MOST_S), number);
    (void)uv_timer_start(&mqtt->timer, on_timer, (uint64_t)(wait.ns / 1000000), 0);
    if (!mqtt->is_failing) {
        mqtt->is_failing = true;
        (void)error_set(&error, code, "%s", reason);
        mqtt->config.on_failed(mqtt->config.userdata, mqtt->shown, &error);
    }
}

/* What libmosquitto returns; false: the connection has ended. */
static bool is_fine(struct mqtt *mqtt, int result)
{
    if (result == MOSQ_ERR_SUCCESS) {
        return true;
    }
    lose(mqtt, BATON_EUNAVAILABLE, mosquitto_strerror(result));
    return false;
}

/* ---- Publishing ------------------------------------------------------------------------------ */

static void publish(struct mqtt *mqtt, struct message *message)
{
    char topic[TOPIC_MAX];

    (void)snprintf(topic, sizeof(topic), "%s/%s", mqtt->prefix, message->event);
    if (mosquitto_publish(mqtt->client, NULL, topic, (int)message->bytes, message->body, QOS,
                          false) == MOSQ_ERR_SUCCESS) {
        mqtt->unconfirmed++;
    } else {
        mqtt->config.counters->mqtt_dropped++;
    }
    message_unref(message);
}

static void on_poll(uv_poll_t *poll, int status, int events);

/* Passes on what may go out, and waits for what the connection waits for. */
static void proceed(struct mqtt *mqtt)
{
    while (mqtt->phase == PHASE_UP && mqtt->unconfirmed < UNCONFIRMED_MAX &&
           mqtt->queue.count > 0) {
        publish(mqtt, queue_take(&mqtt->queue));
    }
    if (mqtt->poll != NULL) {
        int events = UV_READABLE | (mosquitto_want_write(mqtt->client) ? UV_WRITABLE : 0);
        (void)uv_poll_start(mqtt->poll, events, on_poll);
    }
}

void mqtt_put(struct mqtt *mqtt, struct message *message)
{
    mqtt->config.counters->mqtt_dropped += !queue_put(&mqtt->queue, message);
    proceed(mqtt);
}

/* ---- What libmosquitto reports --------------------------------------------------------------- */

static void on_connect(struct mosquitto *client, void *userdata, int result)
{
    struct mqtt *mqtt = userdata;

    if (result != 0) {
        lose(mqtt, BATON_EAUTH, mosquitto_connack_string(result));
        return;
    }
    mqtt->phase = PHASE_UP;
    mqtt->failures = 0;
    mqtt->is_failing = false;
    mqtt->config.counters->mqtt_connections++;
    (void)mosquitto_publish(client, &mqtt->status_id, mqtt->status_topic, 6, "online", QOS, true);
}

static void on_publish(struct mosquitto *client, void *userdata, int id)
{
    struct mqtt *mqtt = userdata;

    (void)client;
    if (id == mqtt->status_id) {
        mqtt->status_id = 0;
    } else if (mqtt->unconfirmed > 0) {
        mqtt->unconfirmed--;
        mqtt->config.counters->mqtt_sent++;
    }
}

/* ---- A connection ---------------------------------------------------------------------------- */

static void on_poll(uv_poll_t *poll, int status, int events)
{
    struct mqtt *mqtt = poll->data;

    /* An error of the socket shows when it is read. */
    if ((status < 0 || (events & UV_READABLE) != 0) &&
        !is_fine(mqtt, mosquitto_loop_read(mqtt->client, 1))) {
        return;
    }
    if ((events & UV_WRITABLE) != 0 && !is_fine(mqtt, mosquitto_loop_write(mqtt->client, 1))) {
        return;
    }
    proceed(mqtt);
}

static void tick(struct mqtt *mqtt)
{
    if (is_fine(mqtt, mosquitto_loop_misc(mqtt->client))) {
        proceed(mqtt);
    }
}

static int start_polling(struct mqtt *mqtt)
{
    uv_poll_t *poll = malloc(sizeof(*poll));
    int code = poll != NULL ? uv_poll_init(mqtt->config.loop, poll, mosquitto_socket(mqtt->client))
                            : UV_ENOMEM;

    if (code != 0) {
        free(poll);
        return code;
    }
    poll->data = mqtt;
    mqtt->poll = poll;
    mqtt->holds++;
    return 0;
}

static void connect_to(struct mqtt *mqtt, const char *address)
{
    int code = mosquitto_connect_async(mqtt->client, address, mqtt->url.port, KEEPALIVE_S);

    mqtt->phase = PHASE_CONNECTS;
    if (!is_fine(mqtt, code)) {
        return;
    }
    code = start_polling(mqtt);
    if (code != 0) {
        lose(mqtt, BATON_EUNAVAILABLE, uv_strerror(code));
        return;
    }
    (void)uv_timer_start(&mqtt->timer, on_timer, TICK_MS, TICK_MS);
    proceed(mqtt);
}

/* Each attempt takes the next address of the name. */
static const struct addrinfo *choose(const struct addrinfo *found, unsigned number)
{
    const struct addrinfo *one = found;

    for (; number > 0; number--) {
        one = one->ai_next != NULL ? one->ai_next : found;
    }
    return one;
}

static void on_resolved(void *userdata, struct addrinfo *found, const char *fault)
{
    struct mqtt *mqtt = userdata;
    char address[INET6_ADDRSTRLEN] = "";

    mqtt->request = NULL;
    if (found == NULL) {
        lose(mqtt, BATON_EUNAVAILABLE, fault);
        return;
    }
    (void)uv_ip_name(choose(found, mqtt->failures)->ai_addr, address, sizeof(address));
    freeaddrinfo(found);
    connect_to(mqtt, address);
}

static void resolve(struct mqtt *mqtt)
{
    int code = addresses_ask(&mqtt->request, mqtt->config.loop, mqtt->url.host, mqtt->url.port,
                             on_resolved, mqtt);

    mqtt->phase = PHASE_RESOLVES;
    if (code != 0) {
        lose(mqtt, BATON_EUNAVAILABLE, uv_strerror(code));
    }
}

static void on_timer(uv_timer_t *timer)
{
    struct mqtt *mqtt = timer->data;

    if (mqtt->phase == PHASE_WAITS) {
        resolve(mqtt);
    } else {
        tick(mqtt);
    }
}

/* ---- Its beginning --------------------------------------------------------------------------- */

/* libmosquitto gets an address, and would name that as the server. */
static void on_handshake(const SSL *tls, int where, int result)
{
    const struct mqtt *mqtt = SSL_CTX_get_app_data(SSL_get_SSL_CTX(tls));

    (void)result;
    if ((where & SSL_CB_HANDSHAKE_START) != 0) {
        (void)SSL_set_tlsext_host_name((SSL *)tls, mqtt->url.host);
    }
}

static int set_tls(struct mqtt *mqtt)
{
    X509_VERIFY_PARAM *wanted;

    mqtt->tls = SSL_CTX_new(TLS_client_method());
    if (mqtt->tls == NULL || SSL_CTX_set_default_verify_paths(mqtt->tls) != 1) {
        return MOSQ_ERR_TLS;
    }
    (void)SSL_CTX_set_min_proto_version(mqtt->tls, TLS1_2_VERSION);
    SSL_CTX_set_verify(mqtt->tls, SSL_VERIFY_PEER, NULL);
    wanted = SSL_CTX_get0_param(mqtt->tls);
    if (X509_VERIFY_PARAM_set1_ip_asc(wanted, mqtt->url.host) != 1) {
        if (X509_VERIFY_PARAM_set1_host(wanted, mqtt->url.host, 0) != 1) {
            return MOSQ_ERR_NOMEM;
        }
        (void)SSL_CTX_set_app_data(mqtt->tls, mqtt);
        SSL_CTX_set_info_callback(mqtt->tls, on_handshake);
    }
    (void)mosquitto_int_option(mqtt->client, MOSQ_OPT_SSL_CTX_WITH_DEFAULTS, 0);
    return mosquitto_void_option(mqtt->client, MOSQ_OPT_SSL_CTX, mqtt->tls);
}

static int set_up(struct mqtt *mqtt)
{
    static const char offline[] = "offline";
    const struct mqtt_url *url = &mqtt->url;
    struct mosquitto *client = mqtt->client;
    int code = MOSQ_ERR_SUCCESS;

    mosquitto_connect_callback_set(client, on_connect);
    mosquitto_publish_callback_set(client, on_publish);
    (void)mosquitto_int_option(client, MOSQ_OPT_SEND_MAXIMUM, UNCONFIRMED_MAX + 1);
    if (url->user[0] != '\0') {
        code = mosquitto_username_pw_set(client, url->user,
                                         url->password[0] != '\0' ? url->password : NULL);
    }
    if (code == MOSQ_ERR_SUCCESS && url->is_tls) {
        code = set_tls(mqtt);
    }
    return code == MOSQ_ERR_SUCCESS ? mosquitto_will_set(client, mqtt->status_topic,
                                                         sizeof(offline) - 1, offline, QOS, true)
                                    : code;
}

static int check_topic(const struct mqtt *mqtt, struct baton_error *reterr)
{
    size_t bytes = strlen(mqtt->status_topic);

    if (bytes < TOPIC_MAX - MESSAGE_EVENT_MAX && mqtt->prefix[0] != '\0' &&
        mosquitto_pub_topic_check(mqtt->status_topic) == MOSQ_ERR_SUCCESS) {
        return BATON_OK;
    }
    return error_set(reterr, BATON_EINVAL,
                     "--mqtt-topic: %s: must be a topic without '+' and '#', of at most %d bytes",
                     mqtt->status_topic, TOPIC_MAX - MESSAGE_EVENT_MAX - 1);
}

static int prepare(struct mqtt *mqtt, struct baton_error *reterr)
{
    int code;

    if (asprintf(&mqtt->status_topic, "%s/process/%s", mqtt->config.prefix, mqtt->config.process) <
        0) {
        mqtt->status_topic = NULL;
    }
    mqtt->prefix = strdup(mqtt->config.prefix);
    if (mqtt->status_topic == NULL || mqtt->prefix == NULL) {
        return error_set(reterr, BATON_ENOMEM, "out of memory for MQTT");
    }
    code = check_topic(mqtt, reterr);
    if (code != BATON_OK) {
        return code;
    }
    (void)mosquitto_lib_init();
    mqtt->client = mosquitto_new(NULL, true, mqtt);
    if (mqtt->client == NULL) {
        (void)mosquitto_lib_cleanup();
        return error_set(reterr, BATON_ENOMEM, "out of memory for MQTT");
    }
    code = set_up(mqtt);
    return code == MOSQ_ERR_SUCCESS
               ? BATON_OK
               : error_set(reterr, BATON_EINVAL, "--mqtt: %s", mosquitto_strerror(code));
}

int mqtt_open(struct mqtt **ret, const struct mqtt_config *config, struct baton_error *reterr)
{
    struct mqtt *mqtt = calloc(1, sizeof(*mqtt));
    int code;

    if (mqtt == NULL) {
        return error_set(reterr, BATON_ENOMEM, "out of memory for MQTT");
    }
    mqtt->config = *config;
    code = mqtt_url_parse(&mqtt->url, config->url, reterr);
    code = code != BATON_OK ? error_wrap(reterr, "--mqtt") : prepare(mqtt, reterr);
    if (code != BATON_OK) {
        destroy(mqtt);
        return code;
    }
    (void)snprintf(mqtt->shown, sizeof(mqtt->shown), "%s://%s:%d",
                   mqtt->url.is_tls ? "mqtts" : "mqtt", mqtt->url.host, mqtt->url.port);
    mqtt->holds = 1;
    (void)uv_timer_init(config->loop, &mqtt->timer); /* cannot fail */
    mqtt->timer.data = mqtt;
    resolve(mqtt);
    *ret = mqtt;
    return BATON_OK;
}
