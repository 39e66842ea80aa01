/* `baton fleet status|workers|cameras|displays`: tables for people, JSON for programs. */
#include "cli/fleet.h"
#include "cli/print.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COLUMNS = 9, CELL_MAX = 96 };

/* A column: its head, and its cell of an item. */
struct column {
    const char *head; /* NULL: the end */
    void (*put)(const json_t *item, char *ret, size_t bytes);
};

static const char *text_of(const json_t *item, const char *key)
{
    const char *text = json_string_value(json_object_get(item, key));

    return text ? text : "";
}

static json_int_t number_of(const json_t *item, const char *key)
{
    return json_integer_value(json_object_get(item, key));
}

static void print_items(const json_t *items, const struct column *columns)
{
    size_t rows = json_array_size(items) + 1, width = 0;
    char(*cells)[CELL_MAX] = calloc(rows * COLUMNS, sizeof(*cells));
    const char **table = calloc(rows * COLUMNS + 1, sizeof(*table));

    while (columns[width].head) {
        width++;
    }
    for (size_t row = 0; cells && table && row < rows; row++) {
        for (size_t i = 0; i < width; i++) {
            char *cell = cells[row * COLUMNS + i];
            if (row == 0) {
                (void)snprintf(cell, CELL_MAX, "%s", columns[i].head);
            } else {
                columns[i].put(json_array_get(items, row - 1), cell, CELL_MAX);
            }
            table[row * (width + 1) + i] = cell;
        }
    }
    if (cells && table) {
        print_table(stdout, table);
    }
    free((void *)table);
    free(cells);
}

static int show(const struct invocation *invocation, struct fleet_link *link, const char *path,
                const struct column *columns)
{
    struct baton_error error = {0};
    json_t *items = NULL;
    int code = fleet_list(link, path, &items, &error);

    if (code) {
        return command_fail(invocation, &error);
    }
    if (options_flag(invocation->options, "json")) {
        print_json(stdout, items);
    } else {
        print_items(items, columns);
    }
    json_decref(items);
    return EXIT_OK;
}

static void put_id(const json_t *item, char *ret, size_t bytes)
{
    (void)snprintf(ret, bytes, "%s", text_of(item, "id"));
}

/* ---- Workers --------------------------------------------------------------------------------- */

static void put_worker_state(const json_t *item, char *ret, size_t bytes)
{
    bool is_online = json_is_true(json_object_get(item, "online"));

    (void)snprintf(ret, bytes, "%s%s%s%s", is_online ? "online" : "offline",
                   json_is_true(json_object_get(item, "draining")) ? ", draining" : "",
                   json_is_true(json_object_get(item, "cordoned")) ? ", cordoned" : "",
                   is_online && !json_is_true(json_object_get(item, "inSync")) ? ", not in sync"
                                                                               : "");
}

static void put_subscriptions(const json_t *item, char *ret, size_t bytes)
{
    json_int_t most = number_of(item, "maxSubscriptions");

    (void)snprintf(ret, bytes, most ? "%lld/%lld" : "%lld",
                   (long long)number_of(item, "subscriptions"), (long long)most);
}

static void put_share(const json_t *item, const char *key, char *ret, size_t bytes)
{
    const json_t *usage = json_object_get(item, "usage");

    ret[0] = '\0';
    if (json_is_object(usage)) {
        (void)snprintf(ret, bytes, "%.0f%%", json_number_value(json_object_get(usage, key)));
    }
}

static void put_cpu(const json_t *item, char *ret, size_t bytes)
{
    put_share(item, "cpu", ret, bytes);
}

static void put_gpu(const json_t *item, char *ret, size_t bytes)
{
    put_share(item, "gpu", ret, bytes);
}

static void put_owner(const json_t *item, char *ret, size_t bytes)
{
    (void)snprintf(ret, bytes, "%s", text_of(item, "owner"));
}

static void put_url(const json_t *item, char *ret, size_t bytes)
{
    (void)snprintf(ret, bytes, "%s", text_of(item, "url"));
}

static void put_labels(const json_t *item, char *ret, size_t bytes)
{
    (void)snprintf(ret, bytes, "%s", text_of(item, "labels"));
}

int fleet_workers(const struct invocation *invocation, struct fleet_link *link)
{
    static const struct column columns[] = {{"WORKER", put_id},
                                            {"STATE", put_worker_state},
                                            {"SUBSCRIPTIONS", put_subscriptions},
                                            {"CPU", put_cpu},
                                            {"GPU", put_gpu},
                                            {"OWNER", put_owner},
                                            {"URL", put_url},
                                            {"LABELS", put_labels},
                                            {NULL, NULL}};

    return show(invocation, link, "/api/workers", columns);
}

/* ---- Cameras and displays -------------------------------------------------------------------- */

static void put_camera(const json_t *item, char *ret, size_t bytes)
{
    (void)snprintf(ret, bytes, "%s", text_of(item, "camera"));
}

static void put_display(const json_t *item, char *ret, size_t bytes)
{
    (void)snprintf(ret, bytes, "%s", text_of(item, "display"));
}

static void put_model(const json_t *item, char *ret, size_t bytes)
{
    (void)snprintf(ret, bytes, "%lld", (long long)number_of(item, "model"));
}

static void put_worker(const json_t *item, char *ret, size_t bytes)
{
    (void)snprintf(ret, bytes, "%s", text_of(item, "worker"));
}

static void put_camera_state(const json_t *item, char *ret, size_t bytes)
{
    const char *worker = text_of(item, "worker");

    (void)snprintf(ret, bytes, "%s",
                   json_is_true(json_object_get(item, "paused"))   ? "paused"
                   : *worker == '\0'                               ? "not placed"
                   : json_is_true(json_object_get(item, "online")) ? "online"
                                                                   : "offline");
}

int fleet_cameras(const struct invocation *invocation, struct fleet_link *link)
{
    static const struct column columns[] = {{"CAMERA", put_camera},      {"DISPLAY", put_display},
                                            {"MODEL", put_model},        {"WORKER", put_worker},
                                            {"STATE", put_camera_state}, {NULL, NULL}};

    return show(invocation, link, "/api/subscriptions?live=1", columns);
}

static void put_name(const json_t *item, char *ret, size_t bytes)
{
    (void)snprintf(ret, bytes, "%s", text_of(item, "name"));
}

static void put_session(const json_t *item, char *ret, size_t bytes)
{
    const json_t *session = json_object_get(item, "sessionId");

    ret[0] = '\0';
    if (json_is_integer(session)) {
        (void)snprintf(ret, bytes, "%lld", (long long)json_integer_value(session));
    }
}

static void put_stage(const json_t *item, char *ret, size_t bytes)
{
    (void)snprintf(ret, bytes, "%s", text_of(item, "progressionStage"));
}

int fleet_displays(const struct invocation *invocation, struct fleet_link *link)
{
    static const struct column columns[] = {{"DISPLAY", put_id},
                                            {"NAME", put_name},
                                            {"SESSION", put_session},
                                            {"STAGE", put_stage},
                                            {NULL, NULL}};

    return show(invocation, link, "/api/displays?live=1", columns);
}

/* ---- The fleet as a whole -------------------------------------------------------------------- */

static void print_status(const json_t *status)
{
    const json_t *leader = json_object_get(status, "leader");
    const json_t *workers = json_object_get(status, "workers");
    const json_t *objects = json_object_get(status, "objects");
    const char *name = text_of(leader, "leader");

    printf("fleet          %s, as %s knows it%s\n", text_of(status, "fleet"),
           text_of(status, "process"),
           json_is_true(json_object_get(status, "ready")) ? "" : ", which still loads it");
    printf("leader         %s, epoch %lld\n", *name ? name : "none",
           (long long)number_of(leader, "epoch"));
    printf("workers        %lld, %lld online, %lld in sync, %lld cordoned, %lld draining\n",
           (long long)number_of(workers, "total"), (long long)number_of(workers, "online"),
           (long long)number_of(workers, "inSync"), (long long)number_of(workers, "cordoned"),
           (long long)number_of(workers, "draining"));
    printf("subscriptions  %lld, %lld not placed\n", (long long)number_of(objects, "subscriptions"),
           (long long)number_of(status, "unplaced"));
    printf("declared       %lld models, %lld cameras, %lld displays\n",
           (long long)number_of(objects, "models"), (long long)number_of(objects, "cameras"),
           (long long)number_of(objects, "displays"));
}

static void put_role(const json_t *item, char *ret, size_t bytes)
{
    (void)snprintf(ret, bytes, "%s%s", text_of(item, "role"),
                   json_is_true(json_object_get(item, "alive")) ? "" : ", silent");
}

static void put_owned(const json_t *item, char *ret, size_t bytes)
{
    (void)snprintf(ret, bytes, "%lld", (long long)number_of(item, "workers"));
}

int fleet_status(const struct invocation *invocation, struct fleet_link *link)
{
    static const struct column columns[] = {
        {"PROCESS", put_name}, {"ROLE", put_role}, {"WORKERS", put_owned}, {NULL, NULL}};
    struct baton_error error = {0};
    json_t *status = NULL, *processes = NULL;
    int code = fleet_ask(link, "GET", "/status", NULL, &status, &error);

    code = code ? code : fleet_list(link, "/api/processes", &processes, &error);
    if (code == BATON_OK && options_flag(invocation->options, "json")) {
        (void)json_object_set(status, "processes", processes);
        print_json(stdout, status);
    } else if (code == BATON_OK) {
        print_status(status);
        (void)putchar('\n');
        print_items(processes, columns);
    }
    json_decref(status);
    json_decref(processes);
    return code ? command_fail(invocation, &error) : EXIT_OK;
}
