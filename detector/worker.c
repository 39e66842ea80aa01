#include "detector/worker.h"

#include "base/error.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

/* One that is in a session or a stage. */
struct display {
    struct session_id session;
    enum stage stage;
    UT_hash_handle hh;
    char name[];
};

const char *worker_event_name(enum worker_event_type type)
{
#define WORKER_EVENT_NAME(symbol, name, level) [symbol] = (name),
    static const char *const names[] = {WORKER_EVENTS(WORKER_EVENT_NAME)};
#undef WORKER_EVENT_NAME
    assert(type < WORKER_EVENT_COUNT);
    return names[type];
}

void worker_init(struct worker *worker, const struct worker_hooks *hooks, size_t queue_max)
{
    assert(queue_max >= 1 && hooks->entry_bytes >= sizeof(struct subscription));
    *worker =
        (struct worker){.hooks = *hooks, .outbox.waiting_max = queue_max, .unknown = json_object()};
}

void worker_fini(struct worker *worker)
{
    struct display *display = worker->displays, *next;

    HASH_CLEAR(hh, worker->displays);
    for (; display != NULL; display = next) {
        next = display->hh.next;
        free(display);
    }
    for (size_t i = 0; i < worker->subscription_count; i++) {
        subscription_free(worker->subscriptions[i]);
    }
    free(worker->subscriptions);
    outbox_fini(&worker->outbox);
    json_decref(worker->unknown);
    *worker = (struct worker){0};
}

static void emit(struct worker *worker, struct worker_event event)
{
    worker->hooks.event(worker->hooks.userdata, &event);
}

/* ---- sending ---- */

/* Sends and releases `text`; NULL (out of memory) counts as not sent. */
static bool send_text(struct worker *worker, uint64_t backend, char *text, uint64_t *ret_end)
{
    bool is_sent = text != NULL &&
                   worker->hooks.send(worker->hooks.userdata, backend, text, strlen(text), ret_end);
    free(text);
    return is_sent;
}

static void send_report(struct worker *worker, uint64_t backend)
{
    char *text =
        format_state_report(&worker->usage, worker->subscriptions, worker->subscription_count);

    /* A report that is not taken is no loss: the next heartbeat tells the same, only newer. */
    (void)send_text(worker, backend, text, NULL);
}

/* Hands over the oldest detection that waits. One that is late patches its session, where it has
 * one and anything to say; else it goes as one that was seen just now. */
static bool send_next(struct worker *worker, bool is_late)
{
    const struct detection *detection = outbox_next(&worker->outbox);
    json_t *patch = NULL;
    uint64_t end = 0;
    bool is_sent;

    if (detection == NULL) {
        return false;
    }
    if (is_late && detection->session.is_set) {
        patch = patch_of_detection(detection);
    }
    is_sent = send_text(worker, worker->owner,
                        patch != NULL ? format_patch_session(detection->session.id, patch)
                                      : format_image_detection(detection),
                        &end);
    if (is_sent) {
        outbox_hand_over(&worker->outbox, patch != NULL, end);
    }
    json_decref(patch);
    return is_sent;
}

void worker_flush(struct worker *worker)
{
    while (worker->owner != 0 && send_next(worker, true)) {
    }
}

/* ---- who the backend is ---- */

/* What the older one was handed and has not got is for the new one. */
static void set_owner(struct worker *worker, uint64_t backend)
{
    worker->counters.detections_dropped += outbox_recall(&worker->outbox);
    worker->owner = backend;
    emit(worker, (struct worker_event){.type = WORKER_OWNER_CHANGED, .backend = backend});
}

/* Its place, or how many there are. */
static size_t find_backend(const struct worker *worker, uint64_t backend)
{
    size_t i = 0;

    while (i < worker->backend_count && worker->backends[i] != backend) {
        i++;
    }
    return i;
}

static bool is_backend(const struct worker *worker, uint64_t backend)
{
    return find_backend(worker, backend) < worker->backend_count;
}

static bool forget_backend(struct worker *worker, uint64_t backend)
{
    size_t i = find_backend(worker, backend);

    if (i == worker->backend_count) {
        return false;
    }
    worker->backend_count--;
    memmove(&worker->backends[i], &worker->backends[i + 1],
            (worker->backend_count - i) * sizeof(worker->backends[0]));
    return true;
}

static void drop_oldest_waiting(struct worker *worker)
{
    uint64_t oldest =
        worker->backends[0] != worker->owner ? worker->backends[0] : worker->backends[1];

    (void)forget_backend(worker, oldest);
    worker->hooks.close(worker->hooks.userdata, oldest, WORKER_CLOSE_CROWDED,
                        "too many backends wait for this worker");
}

void worker_connected(struct worker *worker, uint64_t backend)
{
    assert(backend != 0);
    if (worker->backend_count == WORKER_BACKENDS_MAX) {
        drop_oldest_waiting(worker);
    }
    worker->backends[worker->backend_count++] = backend;
    send_report(worker, backend);
    if (worker->owner == 0) {
        set_owner(worker, backend);
        worker_flush(worker);
    }
}

void worker_disconnected(struct worker *worker, uint64_t backend)
{
    if (!forget_backend(worker, backend) || worker->owner != backend) {
        return;
    }
    set_owner(worker, worker->backend_count > 0 ? worker->backends[worker->backend_count - 1] : 0);
    worker_flush(worker);
}

static void take_over(struct worker *worker, uint64_t backend)
{
    uint64_t older = worker->owner;

    if (older == backend) {
        return;
    }
    (void)forget_backend(worker, older);
    worker->counters.takeovers++;
    worker->hooks.close(worker->hooks.userdata, older, WORKER_CLOSE_SUPERSEDED,
                        "another backend owns this worker now"); /* and its last receipts come */
    set_owner(worker, backend);
    worker_flush(worker);
}

/* ---- displays ---- */

/* Of that name, or of a subscription; NULL: in neither. */
static struct display *display_of(const struct worker *worker, const char *identifier)
{
    struct display *display;

    HASH_FIND(hh, worker->displays, identifier, strcspn(identifier, ";"), display);
    return display;
}

struct session_id worker_session(const struct worker *worker, const char *identifier)
{
    const struct display *display = display_of(worker, identifier);
    return display != NULL ? display->session : (struct session_id){0};
}

enum stage worker_stage(const struct worker *worker, const char *identifier)
{
    const struct display *display = display_of(worker, identifier);
    return display != NULL ? display->stage : STAGE_NONE;
}

/* NULL with the error: no room. */
static struct display *new_display(struct worker *worker, const char *name,
                                   struct baton_error *reterr)
{
    size_t bytes = strlen(name);
    struct display *display;

    if (HASH_COUNT(worker->displays) == WORKER_DISPLAYS_MAX) {
        (void)error_set(reterr, BATON_ETOOBIG,
                        "display \"%s\": %d displays have a session or stage already; clear one",
                        name, WORKER_DISPLAYS_MAX);
        return NULL;
    }
    display = calloc(1, sizeof(*display) + bytes + 1);
    if (display != NULL) {
        memcpy(display->name, name, bytes);
        HASH_ADD_KEYPTR(hh, worker->displays, display->name, bytes, display);
    }
    if (display == NULL || display->hh.tbl == NULL) {
        free(display);
        display = NULL;
        (void)error_set(reterr, BATON_ENOMEM, "out of memory for a display");
    }
    return display;
}

static int set_display(struct worker *worker, uint64_t backend, const struct command *command,
                       struct baton_error *reterr)
{
    bool is_session = command->type == COMMAND_SET_SESSION_ID, is_other;
    bool is_none = is_session ? !command->session.is_set : command->stage == STAGE_NONE;
    struct display *display = display_of(worker, command->display);

    if (display == NULL) {
        if (is_none) {
            return 0;
        }
        display = new_display(worker, command->display, reterr);
    }
    if (display == NULL) {
        return reterr->code;
    }
    if (is_session) {
        is_other = display->session.is_set != command->session.is_set ||
                   display->session.id != command->session.id;
        display->session = command->session;
    } else {
        is_other = display->stage != command->stage;
        display->stage = command->stage;
    }
    if (!display->session.is_set && display->stage == STAGE_NONE) { /* as good as unknown */
        HASH_DEL(worker->displays, display);
        free(display);
    }
    if (is_other) {
        emit(worker, (struct worker_event){.type = is_session ? WORKER_SESSION_CHANGED
                                                              : WORKER_STAGE_CHANGED,
                                           .backend = backend,
                                           .identifier = command->display,
                                           .session = command->session,
                                           .text = stage_name(command->stage)});
    }
    return 0;
}

/* ---- subscriptions ---- */

static bool same_text(const char *a, const char *b)
{
    return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

/* Where there is no stream, the pictures are those of the camera itself. */
static bool same_camera(const struct subscription *from, const struct subscription *to)
{
    return same_text(from->rtsp_url, to->rtsp_url) &&
           (to->rtsp_url[0] != '\0' || same_text(from->snapshot_url, to->snapshot_url));
}

unsigned subscription_changes(const struct subscription *from, const struct subscription *to)
{
    bool is_same_model =
        from->model_id == to->model_id && same_text(from->model_name, to->model_name);

    return (same_camera(from, to) ? 0 : CHANGE_CAMERA) |
           (same_text(from->snapshot_url, to->snapshot_url) ? 0 : CHANGE_SNAPSHOT) |
           (from->snapshot_interval_ms == to->snapshot_interval_ms ? 0 : CHANGE_INTERVAL) |
           (is_same_model ? 0 : CHANGE_MODEL) |
           (same_text(from->model_url, to->model_url) ? 0 : CHANGE_MODEL_URL) |
           (crop_equal(&from->crop, &to->crop) ? 0 : CHANGE_CROP);
}

/* Its place; NULL: there is none. A list is mostly sent again in its old order: `guess` is looked
 * at first. */
static struct subscription **find_entry(struct subscription **list, size_t count,
                                        const char *identifier, size_t guess)
{
    if (guess < count && strcmp(list[guess]->identifier, identifier) == 0) {
        return &list[guess];
    }
    for (size_t i = 0; i < count; i++) {
        if (strcmp(list[i]->identifier, identifier) == 0) {
            return &list[i];
        }
    }
    return NULL;
}

/* What is wanted and has an entry changes places with it. A refused subscription that runs already,
 * in its older form, goes on running in that form: it moves to the end of the list. */
static void exchange_entries(struct worker *worker, struct command *command)
{
    for (size_t i = 0; i < command->subscription_count; i++) {
        struct subscription *wanted = command->subscriptions[i];
        struct subscription **entry =
            find_entry(worker->subscriptions, worker->subscription_count, wanted->identifier, i);
        if (entry != NULL) {
            command->subscriptions[i] = *entry;
            *entry = wanted;
        }
    }
    for (size_t i = 0; i < command->rejection_count; i++) {
        const char *identifier = command->rejections[i].identifier;
        struct subscription **entry =
            find_entry(worker->subscriptions, worker->subscription_count, identifier, i);
        if (entry != NULL && find_entry(command->subscriptions, command->subscription_count,
                                        identifier, i) == NULL) {
            command->subscriptions[command->subscription_count++] = *entry;
            worker->subscription_count--;
            memmove(entry, entry + 1,
                    (size_t)(&worker->subscriptions[worker->subscription_count] - entry) *
                        sizeof(struct subscription *));
        }
    }
}

static void emit_subscription(struct worker *worker, enum worker_event_type type, uint64_t backend,
                              struct subscription *subscription, unsigned changes)
{
    emit(worker, (struct worker_event){.type = type,
                                       .backend = backend,
                                       .identifier = subscription->identifier,
                                       .subscription = subscription,
                                       .changes = changes});
}

static void emit_rejections(struct worker *worker, uint64_t backend, const struct command *command)
{
    for (size_t i = 0; i < command->rejection_count; i++) {
        worker->counters.subscriptions_refused++;
        emit(worker, (struct worker_event){.type = WORKER_SUBSCRIPTION_REFUSED,
                                           .backend = backend,
                                           .identifier = command->rejections[i].identifier,
                                           .error = &command->rejections[i].error});
    }
}

/* Takes what is wanted, but for its identifier, which is borrowed. Whether the camera is online
 * survives unless it is another one. */
static void update_entry(struct worker *worker, uint64_t backend, struct subscription *entry,
                         struct subscription *wanted)
{
    unsigned changes = subscription_changes(entry, wanted);
    struct subscription before = *entry;

    if (changes != 0) {
        *entry = *wanted;
        entry->identifier = before.identifier;
        entry->is_online = before.is_online && (changes & CHANGE_CAMERA) == 0;
        before.identifier = wanted->identifier;
        *wanted = before;
        emit_subscription(worker, WORKER_SUBSCRIPTION_UPDATED, backend, entry, changes);
    }
}

/* Tells of each difference: removals first (they free cameras), then the list in its order. What is
 * new becomes an entry, as it came; what is left is released with the command. */
static void set_subscription_list(struct worker *worker, uint64_t backend, struct command *command)
{
    struct subscription **list = command->subscriptions, **rest = worker->subscriptions;
    size_t wanted_count = command->subscription_count, rest_count;

    emit_rejections(worker, backend, command);
    exchange_entries(worker, command);
    rest_count = worker->subscription_count;
    worker->subscriptions = list;
    worker->subscription_count = command->subscription_count;
    command->subscriptions = rest;
    command->subscription_count = rest_count;
    for (size_t i = 0; i < rest_count; i++) {
        if (find_entry(list, worker->subscription_count, rest[i]->identifier, i) == NULL) {
            emit_subscription(worker, WORKER_SUBSCRIPTION_REMOVED, backend, rest[i], 0);
        }
    }
    for (size_t i = 0; i < wanted_count; i++) {
        struct subscription **wanted = find_entry(rest, rest_count, list[i]->identifier, i);
        if (wanted == NULL) {
            emit_subscription(worker, WORKER_SUBSCRIPTION_ADDED, backend, list[i], 0);
        } else {
            update_entry(worker, backend, list[i], *wanted);
        }
    }
    send_report(worker, backend);
}

/* A backend that has lost the worker to another one, and does not know it yet. */
static int fence(struct worker *worker, uint64_t backend, uint64_t epoch,
                 struct baton_error *reterr)
{
    int rc = error_set(reterr, BATON_ECONFLICT,
                       "a list of epoch %llu: a backend of epoch %llu owns or owned this worker; "
                       "if the backends' group was made anew, restart the worker",
                       (unsigned long long)epoch, (unsigned long long)worker->epoch);

    worker_disconnected(worker, backend);
    worker->hooks.close(worker->hooks.userdata, backend, WORKER_CLOSE_SUPERSEDED,
                        "a backend of a higher epoch owns this worker");
    return rc;
}

/* ---- messages ---- */

static void report_unknown(struct worker *worker, uint64_t backend, const char *name)
{
    if (json_object_get(worker->unknown, name) == NULL &&
        json_object_size(worker->unknown) < WORKER_UNKNOWN_MAX) {
        (void)json_object_set_new(worker->unknown, name, json_true());
        emit(worker, (struct worker_event){
                         .type = WORKER_MESSAGE_UNKNOWN, .backend = backend, .text = name});
    }
}

static int apply(struct worker *worker, uint64_t backend, struct command *command,
                 struct baton_error *reterr)
{
    switch (command->type) {
    case COMMAND_SET_SUBSCRIPTION_LIST:
        if (command->epoch != 0 && command->epoch < worker->epoch) {
            return fence(worker, backend, command->epoch, reterr);
        }
        worker->epoch = command->epoch != 0 ? command->epoch : worker->epoch;
        take_over(worker, backend);
        set_subscription_list(worker, backend, command);
        return 0;
    case COMMAND_SET_SESSION_ID:
    case COMMAND_SET_PROGRESSION_STAGE:
        take_over(worker, backend);
        return set_display(worker, backend, command, reterr);
    case COMMAND_REQUEST_STATE:
        send_report(worker, backend);
        return 0;
    case COMMAND_PATCH_SESSION_RESULT:
        worker->counters.patches_refused += !command->is_success;
        emit(worker, (struct worker_event){.type = command->is_success ? WORKER_PATCH_ANSWERED
                                                                       : WORKER_PATCH_REFUSED,
                                           .backend = backend,
                                           .session = command->session,
                                           .text = command->text});
        return 0;
    case COMMAND_UNKNOWN:
        report_unknown(worker, backend, command->name);
        return 0;
    }
    return 0;
}

static void emit_refusal(struct worker *worker, uint64_t backend, const struct baton_error *error)
{
    worker->counters.messages_refused++;
    emit(worker,
         (struct worker_event){.type = WORKER_MESSAGE_REFUSED, .backend = backend, .error = error});
}

int worker_receive(struct worker *worker, uint64_t backend, const char *bytes, size_t count)
{
    struct command command = {0};
    struct baton_error error = {0};
    int rc;

    if (!is_backend(worker, backend)) {
        return BATON_ECLOSED; /* superseded while its message was on the way */
    }
    worker->counters.messages++;
    rc = command_parse(bytes, count, worker->hooks.entry_bytes, &command, &error);
    if (rc == 0) {
        rc = apply(worker, backend, &command, &error);
    }
    command_fini(&command);
    if (rc != 0) {
        emit_refusal(worker, backend, &error);
    }
    return rc;
}

void worker_refuse(struct worker *worker, uint64_t backend, const char *reason)
{
    struct baton_error error = {0};

    if (is_backend(worker, backend)) {
        worker->counters.messages++;
        (void)error_set(&error, BATON_EPROTO, "%s", reason);
        emit_refusal(worker, backend, &error);
    }
}

void worker_tick(struct worker *worker, const struct usage *usage)
{
    worker->usage = *usage;
    for (size_t i = 0; i < worker->backend_count; i++) {
        send_report(worker, worker->backends[i]);
    }
    worker_flush(worker);
}

void worker_delivered(struct worker *worker, uint64_t backend, uint64_t arrived)
{
    bool was_patch;

    while (backend == worker->owner && outbox_delivered(&worker->outbox, arrived, &was_patch)) {
        *(was_patch ? &worker->counters.patches_sent : &worker->counters.detections_sent) += 1;
    }
}

int worker_detected(struct worker *worker, struct detection *detection, struct baton_error *reterr)
{
    int rc = detection_check(detection, reterr);
    bool is_first;

    if (rc != 0) {
        detection_fini(detection);
        return rc;
    }
    detection->session = worker_session(worker, detection->identifier);
    worker_flush(worker); /* none overtakes those that wait */
    is_first = worker->outbox.waiting == 0;
    worker->counters.detections_dropped += outbox_put(&worker->outbox, detection);
    if (worker->owner != 0 && is_first) {
        (void)send_next(worker, false);
    }
    return 0;
}

void worker_set_queue(struct worker *worker, size_t queue_max)
{
    worker->counters.detections_dropped += outbox_set_max(&worker->outbox, queue_max);
}

struct subscription *worker_find(const struct worker *worker, const char *identifier)
{
    struct subscription **entry =
        find_entry(worker->subscriptions, worker->subscription_count, identifier, 0);

    return entry != NULL ? *entry : NULL;
}

size_t worker_queued(const struct worker *worker)
{
    return worker->outbox.handed + worker->outbox.waiting;
}
