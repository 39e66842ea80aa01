/* The worker's HTTP replies. */
#include "detector/service_int.h"

#include "base/error.h"
#include "detector/exposition.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void service_http_error(struct http_reply *reply, unsigned status, const char *message)
{
    json_t *object = json_pack("{s:s}", "error", message);
    char *text = object != NULL ? json_dumps(object, JSON_COMPACT) : NULL;

    reply->status = status;
    reply->type = "application/json";
    buffer_put_text(&reply->body, text != NULL ? text : "{\"error\":\"out of memory\"}");
    buffer_put_text(&reply->body, "\n");
    free(text);
    json_decref(object);
}

/* Pictures of another run of this program need other tags, and so do other shapes. */
static void tag(const struct service *service, const struct still *still,
                const struct image_shape *shape, const struct image_boxes *boxes,
                struct http_reply *reply)
{
    (void)snprintf(reply->etag, sizeof(reply->etag), "\"%llx-%llx-%x.%x.%x.%x.%x-%llx\"",
                   (unsigned long long)service->started_at.ns, (unsigned long long)still->number,
                   (unsigned)shape->rect[0], (unsigned)shape->rect[1], (unsigned)shape->rect[2],
                   (unsigned)shape->rect[3], (unsigned)shape->width,
                   boxes != NULL ? (unsigned long long)boxes->number : 0);
}

static void answer_image(struct service *service, const struct image *image,
                         struct http_reply *reply)
{
    reply->status = 200;
    reply->type = "image/jpeg";
    buffer_put(&reply->body, image->jpeg, image->bytes);
    service->images_served++;
}

static void answer_failure(struct http_reply *reply, int code, const char *message)
{
    reply->etag[0] = '\0';
    service_http_error(reply, code == BATON_EUNAVAILABLE ? 503 : 500, message);
    reply->retry_after_s = code == BATON_EUNAVAILABLE;
}

void service_http_encoded(struct service *service, uint64_t ticket, const struct image *image,
                          const struct baton_error *error)
{
    struct http_reply *reply = server_reply(service->server, ticket);

    if (reply == NULL) {
        return; /* the client has gone */
    }
    if (image != NULL) {
        answer_image(service, image, reply);
    } else {
        answer_failure(reply, error->code, error->message);
    }
    server_answer(service->server, ticket);
}

static void answer_jpeg(struct service *service, const struct http_question *question,
                        const struct subscription *subscription,
                        const struct camera_question *wanted, struct http_reply *reply)
{
    struct still *still = image_newest(service->images, subscription->identifier, wanted->source);
    struct image_boxes *boxes =
        wanted->has_boxes ? image_boxes(service->images, subscription->identifier, wanted->source)
                          : NULL;
    struct image_shape shape;
    struct image image;
    struct baton_error error = {0};
    int rc;

    if (still == NULL) {
        service_http_error(reply, 404,
                           wanted->source == IMAGE_SNAPSHOT
                               ? "no snapshot of this camera has arrived yet"
                               : "no frame of this camera has arrived yet");
        return;
    }
    image_shape(&shape, &still->frame, wanted->is_cropped ? &subscription->crop : NULL,
                wanted->width);
    tag(service, still, &shape, boxes, reply);
    if (question_has_tag(question->etag, reply->etag)) {
        reply->status = 304;
        reply->type = "image/jpeg";
        return;
    }
    rc = encoder_ask(service->encoder, still, &shape, boxes, question->ticket, &image, &error);
    if (rc == 0) {
        answer_image(service, &image, reply);
    } else if (rc == BATON_EBUSY) {
        reply->kind = REPLY_LATER;
    } else {
        answer_failure(reply, rc, error.message);
    }
}

static bool has_source(const struct subscription *subscription, enum image_source source)
{
    switch (source) {
    case IMAGE_STREAM:
        return subscription->rtsp_url[0] != '\0';
    case IMAGE_SNAPSHOT:
        return subscription->snapshot_url != NULL;
    default:
        return true;
    }
}

static void answer_camera(struct service *service, const struct http_question *question,
                          struct http_reply *reply)
{
    struct camera_question wanted;
    struct baton_error error = {0};
    const struct subscription *subscription;
    int rc = camera_question_parse(&wanted, question->path, question->query, &error);

    if (rc != 0) {
        service_http_error(reply, rc == BATON_ENOENT ? 404 : 400, error.message);
        return;
    }
    subscription = worker_find(service->worker, wanted.identifier);
    if (subscription == NULL) {
        service_http_error(reply, 404, "no such subscription");
        return;
    }
    if (!has_source(subscription, wanted.source)) {
        service_http_error(reply, 404,
                           wanted.source == IMAGE_STREAM
                               ? "this subscription has no stream: its rtspUrl is empty"
                               : "this subscription has no snapshots: it names no snapshotUrl");
        return;
    }
    if (wanted.is_stream) {
        service_stream_begin(service, &wanted, question->ticket, reply);
    } else {
        answer_jpeg(service, question, subscription, &wanted, reply);
    }
}

static const char *source_name(enum usage_source source)
{
    return source == USAGE_CGROUP_V2   ? "cgroup v2"
           : source == USAGE_CGROUP_V1 ? "cgroup v1"
                                       : "process";
}

/* Writes {"cameras": …} with names and states only; URLs are secrets. */
static json_t *cameras_json(const struct service *service)
{
    json_t *list = json_array();
    const struct subscription *subscription;
    bool is_online;

    for (size_t i = 0; (subscription = worker_subscription(service->worker, i, &is_online)) != NULL;
         i++) {
        const char *stage = stage_name(worker_stage(service->worker, subscription->identifier));
        struct session_id session = worker_session(service->worker, subscription->identifier);
        json_t *camera = json_pack(
            "{s:s, s:b, s:I, s:s, s:o, s:s?}", "subscriptionIdentifier", subscription->identifier,
            "online", (int)is_online, "modelId", (json_int_t)subscription->model_id, "modelName",
            subscription->model_name, "sessionId",
            session.is_set ? json_integer(session.id) : json_null(), "progressionStage", stage);
        if (camera != NULL && service->config.describe != NULL) {
            service->config.describe(service->config.userdata, subscription->identifier, camera);
        }
        (void)json_array_append_new(list, camera);
    }
    return list;
}

static void answer_status(struct service *service, struct http_reply *reply)
{
    const struct worker_counters *counters = worker_counters(service->worker);
    json_t *status = json_pack(
        "{s:b, s:b, s:I, s:{s:f, s:f, s:f, s:f, s:s, s:f, s:I, s:I},"
        " s:{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}, s:o}",
        "ready", (int)(service->drain == DRAIN_NOT), "hasBackend",
        (int)(worker_owner(service->worker) != 0), "connections",
        (json_int_t)server_connections(service->server), "usage", "cpu", service->usage.cpu,
        "memory", service->usage.memory, "gpu", service->usage.gpu, "gpuMemory",
        service->usage.gpu_memory, "of", source_name(service->meter.cpu_source), "cpus",
        usage_cpus(&service->meter), "memoryBytes",
        (json_int_t)(usage_memory_limit(&service->meter) & INT64_MAX), "gpus",
        (json_int_t)gpu_count(service->gpus), "counters", "messages",
        (json_int_t)counters->messages, "messagesRefused", (json_int_t)counters->messages_refused,
        "subscriptionsRefused", (json_int_t)counters->subscriptions_refused, "detectionsSent",
        (json_int_t)counters->detections_sent, "detectionsQueued",
        (json_int_t)worker_queued(service->worker), "detectionsDropped",
        (json_int_t)counters->detections_dropped, "patchesSent", (json_int_t)counters->patches_sent,
        "patchesRefused", (json_int_t)counters->patches_refused, "takeovers",
        (json_int_t)counters->takeovers, "cameras", cameras_json(service));
    char *text =
        status != NULL ? json_dumps(status, JSON_INDENT(2) | JSON_REAL_PRECISION(6)) : NULL;

    reply->status = 200;
    reply->type = "application/json";
    if (text == NULL) {
        service_http_error(reply, 500, "out of memory");
    } else {
        buffer_put_text(&reply->body, text);
        buffer_put_text(&reply->body, "\n");
    }
    free(text);
    json_decref(status);
}

static size_t count_online(const struct service *service)
{
    size_t online = 0;
    bool is_online;

    for (size_t i = 0; worker_subscription(service->worker, i, &is_online) != NULL; i++) {
        online += is_online;
    }
    return online;
}

static void answer_metrics(struct service *service, struct http_reply *reply)
{
    const struct worker_counters *counters = worker_counters(service->worker);
    const struct encoder_counters *encoder = encoder_counters(service->encoder);
    const struct worker *worker = service->worker;
    struct buffer *body = &reply->body;

    reply->status = 200;
    reply->type = "text/plain; version=0.0.4";
    exposition_single(body, "subscriptions", "gauge", "Subscriptions that run.",
                      (double)worker_subscription_count(worker));
    exposition_single(body, "subscriptions_online", "gauge", "Subscriptions whose frames arrive.",
                      (double)count_online(service));
    exposition_single(body, "backend_connected", "gauge", "1 while a backend owns this worker.",
                      worker_owner(worker) != 0);
    exposition_single(body, "connections", "gauge", "WebSocket connections.",
                      server_connections(service->server));
    exposition_single(body, "connections_refused_total", "counter", "Connections above the limit.",
                      (double)server_refused(service->server));
    exposition_single(body, "cpu_percent", "gauge", "CPU of what this process may use.",
                      service->usage.cpu);
    exposition_single(body, "memory_percent", "gauge", "Memory of what this process may use.",
                      service->usage.memory);
    exposition_single(body, "messages_total", "counter", "Messages of backends.",
                      (double)counters->messages);
    exposition_single(body, "messages_refused_total", "counter", "Messages that were not valid.",
                      (double)counters->messages_refused);
    exposition_single(body, "subscriptions_refused_total", "counter",
                      "Subscriptions that were not valid.",
                      (double)counters->subscriptions_refused);
    exposition_single(body, "detections_sent_total", "counter", "imageDetection messages.",
                      (double)counters->detections_sent);
    exposition_single(body, "patches_sent_total", "counter", "patchSession messages.",
                      (double)counters->patches_sent);
    exposition_single(body, "patches_refused_total", "counter",
                      "patchSession messages that the backend did not accept.",
                      (double)counters->patches_refused);
    exposition_single(body, "detections_queued", "gauge", "Detections that wait for a backend.",
                      (double)worker_queued(worker));
    exposition_single(body, "detections_dropped_total", "counter",
                      "Detections that a full queue lost.", (double)counters->detections_dropped);
    exposition_single(body, "takeovers_total", "counter", "Backends that another one superseded.",
                      (double)counters->takeovers);
    exposition_single(body, "images_served_total", "counter", "Images sent.",
                      (double)service->images_served);
    exposition_single(body, "stream_viewers", "gauge", "Who looks at a camera's stream.",
                      service_stream_count(service));
    exposition_single(body, "stream_parts_served_total", "counter", "Images sent in streams.",
                      (double)service->parts_served);
    exposition_single(body, "images_encoded_total", "counter", "JPEGs made.",
                      (double)encoder->made);
    exposition_single(body, "images_refused_total", "counter",
                      "JPEGs not made, because too many waited.", (double)encoder->refused);
    exposition_single(body, "images_waiting", "gauge", "JPEGs that wait or are under way.",
                      encoder->waiting);
    if (service->config.measure != NULL) {
        service->config.measure(service->config.userdata, body);
    }
}

static void answer_text(struct http_reply *reply, unsigned status, const char *text)
{
    reply->status = status;
    reply->type = "text/plain; charset=utf-8";
    buffer_put_text(&reply->body, text);
}

void service_http_answer(void *userdata, const struct http_question *question,
                         struct http_reply *reply)
{
    struct service *service = userdata;
    const char *path = question->path;

    if (camera_question_is_one(path)) {
        answer_camera(service, question, reply);
    } else if (strcmp(path, "/healthz") == 0) {
        answer_text(reply, 200, "ok\n");
    } else if (strcmp(path, "/readyz") == 0) {
        bool is_ready = service->drain == DRAIN_NOT;
        answer_text(reply, is_ready ? 200 : 503, is_ready ? "ready\n" : "draining\n");
    } else if (strcmp(path, "/metrics") == 0) {
        answer_metrics(service, reply);
    } else if (strcmp(path, "/status") == 0) {
        answer_status(service, reply);
    } else {
        service_http_error(reply, 404,
                           "no such page: there are /camera/{display;camera}/image and /stream, "
                           "/status, /metrics, /healthz and /readyz");
    }
}
