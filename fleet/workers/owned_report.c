#include "fleet/workers/owners_int.h"

#include "base/error.h"

/* The head of a line that speaks of a worker; NULL: out of memory. */
static json_t *line_of(const struct owned *owned, const char *type)
{
    return json_pack("{s:s, s:s, s:s, s:I}", "type", type, "worker", owned->worker, "process",
                     owned->owners->process, "epoch", (json_int_t)owned->epoch);
}

static void put_counters(json_t *line, const struct link *link)
{
    const struct link_counters *counters = link_counters(link);

    (void)json_object_set_new(line, "detections", json_integer((json_int_t)counters->detections));
    (void)json_object_set_new(line, "reconnects", json_integer((json_int_t)counters->reconnects));
    (void)json_object_set_new(line, "stalls", json_integer((json_int_t)counters->stalls));
    (void)json_object_set_new(line, "refused", json_integer((json_int_t)counters->refused));
}

void owned_tell(void *userdata, const char *name, json_t *fields)
{
    struct owned *owned = userdata;
    const struct owners_callbacks *callbacks = &owned->owners->config.callbacks;
    json_t *line = line_of(owned, name);

    if (fields == NULL || json_object_update(line, fields) != 0) {
        json_decref(line);
        json_decref(fields);
        return;
    }
    (void)json_object_set_new(fields, "worker", json_string(owned->worker));
    (void)json_object_set_new(fields, "process", json_string(owned->owners->process));
    (void)publisher_put(&owned->owners->events, line);
    callbacks->on_event(callbacks->userdata, name, fields);
}

/* The fields of the protocol alone: others could be ours. */
static json_t *report_line(const struct owned *owned, const json_t *report, bool has_cameras)
{
    static const char *const keys[] = {"cpuUsage", "memoryUsage", "gpuUsage", "gpuMemoryUsage",
                                       "cameraConnections"};
    json_t *line = line_of(owned, "stateReport");
    size_t count = sizeof(keys) / sizeof(keys[0]) - !has_cameras;

    (void)json_object_set_new(line, "inSync", json_boolean(link_is_in_sync(owned->link)));
    (void)json_object_set_new(line, "revision",
                              json_integer((json_int_t)link_revision(owned->link)));
    put_counters(line, owned->link);
    for (size_t i = 0; i < count; i++) {
        json_t *value = json_object_get(report, keys[i]);
        if (value != NULL) {
            (void)json_object_set(line, keys[i], value);
        }
    }
    return line;
}

void owned_report(void *userdata, json_t *report)
{
    struct owned *owned = userdata;
    struct publisher *responses = &owned->owners->responses;

    if (!publisher_put(responses, report_line(owned, report, true))) {
        (void)publisher_put(responses, report_line(owned, report, false));
    }
}

void owned_synced(struct owned *owned)
{
    json_t *line = line_of(owned, "workerInSync");

    (void)json_object_set_new(line, "revision",
                              json_integer((json_int_t)link_revision(owned->link)));
    (void)publisher_put(&owned->owners->responses, line);
}

/* Of being online, the report that made it so tells, right behind this. */
void owned_online(void *userdata, bool is_online, const char *reason)
{
    struct owned *owned = userdata;
    json_t *line;

    if (is_online) {
        owned_tell(owned, "worker-online", json_object());
        return;
    }
    line = line_of(owned, "workerOffline");
    (void)json_object_set_new(line, "reason", json_string(reason));
    (void)publisher_put(&owned->owners->responses, line);
    owned_tell(owned, "worker-offline", json_pack("{s:s}", "reason", reason));
}

void owned_detection(void *userdata, json_t *message)
{
    const struct owned *owned = userdata;
    const struct owners_callbacks *callbacks = &owned->owners->config.callbacks;

    callbacks->on_detection(callbacks->userdata, owned->worker, message);
}

void owned_patch(void *userdata, json_t *message, uint64_t ticket)
{
    const struct owned *owned = userdata;
    const struct owners_callbacks *callbacks = &owned->owners->config.callbacks;

    callbacks->on_patch_session(callbacks->userdata, owned->worker, message, ticket);
}
