/* /metrics, in the text format of Prometheus. Every name begins with baton_fleet_. */
#include "fleet/http/events.h"
#include "fleet/http/handlers.h"

#include "member/election.h"
#include "web/exposition.h"

#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

enum { METRICS_MAX = 4 << 20 };

#define PREFIX "baton_fleet_"

/* Of a table of counters: its field, and what it counts. */
static void counter(struct buffer *out, const char *part, const char *field, const char *text,
                    uint64_t value)
{
    char name[80], help[160];

    (void)snprintf(name, sizeof(name), PREFIX "%s_%s_total", part, field);
    (void)snprintf(help, sizeof(help), "Count of %s.", text);
    exposition_single(out, name, "counter", help, (double)value);
}

/* ---- The parts ------------------------------------------------------------------------------- */

static void put_election(const struct fleet_http *http, struct buffer *out)
{
    const struct election *election = master_election(http->parts.master);
    struct baton_member leader;
    uint64_t epoch;
    bool leads = master_leads(http->parts.master, NULL);
    span left = election_lease_left(election);

    election_leader(election, &leader, &epoch);
    exposition_single(out, PREFIX "is_leader", "gauge", "1 while this process leads the fleet.",
                      leads);
    exposition_single(out, PREFIX "has_leader", "gauge", "1 while this process knows a leader.",
                      leader.name[0] != '\0');
    exposition_single(out, PREFIX "epoch", "gauge",
                      "Epoch of the latest leadership that this process knows.", (double)epoch);
    exposition_single(out, PREFIX "processes", "gauge",
                      "Processes of the fleet, as this one knows them.",
                      (double)master_process_count(http->parts.master));
    exposition_single(out, PREFIX "lease_left_seconds", "gauge",
                      "Time that is left of this process's lease.",
                      !leads                 ? 0
                      : left.ns == INT64_MAX ? INFINITY
                                             : (double)left.ns / 1e9);
}

static void put_objects(const struct fleet_http *http, struct buffer *out)
{
    const struct fleet_state *state = http->parts.state;

    exposition_single(out, PREFIX "ready", "gauge", "1 once the shared state is loaded.",
                      fleet_state_is_ready(state));
    exposition_family(out, PREFIX "objects", "gauge", "Declared objects, by kind.");
    for (int kind = 0; kind < FLEET_KINDS; kind++) {
        buffer_printf(out, PREFIX "objects{kind=\"%s\"} %zu\n",
                      fleet_kind_name((enum fleet_kind)kind),
                      fleet_state_count(state, (enum fleet_kind)kind));
    }
    exposition_single(out, PREFIX "unplaced", "gauge", "Subscriptions that no worker has.",
                      (double)fleet_state_unplaced_count(state));
}

static void put_workers(const struct fleet_http *http, struct buffer *out)
{
    const struct fleet_worker *worker = NULL;
    size_t online = 0, offline = 0, behind = 0, assigned = 0;

    while ((worker = fleet_state_next_worker(http->parts.state, worker)) != NULL) {
        const struct worker_live *live = worker_table_find(http->parts.table, worker->id);
        const struct fleet_assigned *list = fleet_state_assigned(http->parts.state, worker->id);
        bool is_online = live != NULL && live->is_online;

        online += is_online;
        offline += !is_online;
        behind += is_online && !live->is_in_sync;
        assigned += list != NULL ? list->count : 0;
    }
    exposition_family(out, PREFIX "workers", "gauge", "Workers, by whether they are online.");
    buffer_printf(
        out, PREFIX "workers{state=\"online\"} %zu\n" PREFIX "workers{state=\"offline\"} %zu\n",
        online, offline);
    exposition_single(out, PREFIX "workers_not_in_sync", "gauge",
                      "Workers that are online and do not report the list that they were sent.",
                      (double)behind);
    exposition_single(out, PREFIX "workers_owned", "gauge",
                      "Workers that this process is connected to.",
                      (double)owners_count(http->parts.owners));
    exposition_single(out, PREFIX "subscriptions_assigned", "gauge",
                      "Subscriptions that a worker has.", (double)assigned);
}

static const struct {
    const char *name, *help;
    size_t at; /* in struct worker_live */
} of_worker[] = {
    {PREFIX "worker_detections_total", "Detections that the worker sent.",
     offsetof(struct worker_live, detections)},
    {PREFIX "worker_reconnects_total", "Connections to the worker after the first.",
     offsetof(struct worker_live, reconnects)},
    {PREFIX "worker_stalls_total", "Times that messages waited because the worker did not read.",
     offsetof(struct worker_live, stalls)},
    {PREFIX "worker_refused_total", "Messages of the worker that were refused.",
     offsetof(struct worker_live, refused)},
};

/* Of the workers that this process is connected to: another process has the others. */
static void put_each_worker(const struct fleet_http *http, struct buffer *out)
{
    for (size_t i = 0; i < sizeof(of_worker) / sizeof(of_worker[0]); i++) {
        const struct fleet_worker *worker = NULL;

        exposition_family(out, of_worker[i].name, "counter", of_worker[i].help);
        while ((worker = fleet_state_next_worker(http->parts.state, worker)) != NULL) {
            const struct worker_live *live = worker_table_find(http->parts.table, worker->id);
            uint64_t value;

            if (live != NULL && owners_owns(http->parts.owners, worker->id)) {
                memcpy(&value, (const char *)live + of_worker[i].at, sizeof(value));
                buffer_printf(out, "%s{worker=\"%s\"} %" PRIu64 "\n", of_worker[i].name, worker->id,
                              value);
            }
        }
    }
}

static void put_counters(const struct fleet_http *http, struct buffer *out)
{
    const struct fleet_state_counters *state = fleet_state_counters(http->parts.state);
    const struct master_counters *master = master_counters(http->parts.master);
    const struct displays_counters *displays = displays_counters(http->parts.displays);
    const struct detections_counters *detections = detections_counters(http->parts.detections);
    const struct commands_counters *commands = commands_counters(http->parts.commands);
    const struct outlets_counters *outlets = outlets_counters(http->parts.outlets);

#define STATE(field, text) counter(out, "state", #field, text, state->field);
    FLEET_STATE_COUNTERS(STATE)
#undef STATE
#define MASTER(field, text) counter(out, "master", #field, text, master->field);
    MASTER_COUNTERS(MASTER)
#undef MASTER
#define DISPLAYS(field, text) counter(out, "displays", #field, text, displays->field);
    DISPLAYS_COUNTERS(DISPLAYS)
#undef DISPLAYS
#define DETECTIONS(field, text) counter(out, "detections", #field, text, detections->field);
    DETECTIONS_COUNTERS(DETECTIONS)
#undef DETECTIONS
#define COMMANDS(field, text) counter(out, "commands", #field, text, commands->field);
    COMMANDS_COUNTERS(COMMANDS)
#undef COMMANDS
#define OUTLETS(field, text) counter(out, "outlets", #field, text, outlets->field);
    OUTLETS_COUNTERS(OUTLETS)
#undef OUTLETS
}

/* ---- This API -------------------------------------------------------------------------------- */

const double http_bounds_s[] = {0.001, 0.005, 0.025, 0.1, 0.5, 2, 10, INFINITY};

static void put_http(const struct fleet_http *http, struct buffer *out)
{
    const struct counts *counters = &http->counters;

    exposition_family(out, PREFIX "http_requests_total", "counter",
                      "Answers, by the class of their status.");
    for (int class = 2; class < HTTP_CLASSES; class ++) {
        buffer_printf(out, PREFIX "http_requests_total{class=\"%dxx\"} %" PRIu64 "\n", class,
                      counters->by_class[class]);
    }
    exposition_single(out, PREFIX "http_too_many_total", "counter",
                      "Requests that exceeded the rate of an address.", (double)counters->too_many);
    exposition_single(out, PREFIX "events_total", "counter", "Events that followers could get.",
                      (double)counters->events);
    exposition_single(out, PREFIX "followers", "gauge", "Clients that follow the events.",
                      (double)events_followers(http->events));
    exposition_single(out, PREFIX "followers_cut_total", "counter",
                      "Followers that read too slowly and were cut off.",
                      (double)counters->followers_cut);
    exposition_single(out, PREFIX "images_total", "counter",
                      "Pictures that workers were asked for.", (double)counters->images);
    exposition_single(out, PREFIX "images_cached_total", "counter",
                      "Pictures that were sent again.", (double)counters->images_cached);
    exposition_family(out, PREFIX "http_request_duration_seconds", "histogram",
                      "Time from a request to its answer.");
    exposition_histogram(out, PREFIX "http_request_duration_seconds", NULL, http_bounds_s,
                         &counters->times);
}

void metrics_get(struct call *call)
{
    const struct fleet_http *http = call->http;
    struct buffer out;

    buffer_init(&out, METRICS_MAX);
    exposition_family(&out, PREFIX "build_info", "gauge", "1; the version is in the label.");
    buffer_printf(&out, PREFIX "build_info{version=\"%s\"} 1\n", http->parts.version);
    exposition_single(&out, PREFIX "uptime_seconds", "gauge", "Time since this process began.",
                      (double)instant_since(clock_now(), http->started).ns / 1e9);
    put_election(http, &out);
    put_objects(http, &out);
    put_workers(http, &out);
    put_each_worker(http, &out);
    put_counters(http, &out);
    put_http(http, &out);
    if (out.failed) {
        call_refuse(call, 503, NULL, "out of memory");
    } else {
        call_bytes(call, 200, EXPOSITION_TYPE, out.data, out.bytes);
    }
    buffer_fini(&out);
}
