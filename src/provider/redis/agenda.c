/* The deadlines of all registrations: a heap over one timer of the loop. */
#include "provider/redis/client.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_CAPACITY = 16 };

static instant due_of(const struct registration *registration)
{
    return instant_min(registration->deadline, registration->beat);
}

static void put(struct agenda *agenda, uint32_t at, struct turn turn)
{
    agenda->heap[at] = turn;
    turn.registration->place = at + 1;
}

static void rise(struct agenda *agenda, uint32_t at)
{
    struct turn turn = agenda->heap[at];

    while (at > 0 && instant_before(turn.due, agenda->heap[(at - 1) / 2].due)) {
        put(agenda, at, agenda->heap[(at - 1) / 2]);
        at = (at - 1) / 2;
    }
    put(agenda, at, turn);
}

static void sink(struct agenda *agenda, uint32_t at)
{
    struct turn turn = agenda->heap[at];

    for (;;) {
        uint32_t next = 2 * at + 1;
        if (next + 1 < agenda->count &&
            instant_before(agenda->heap[next + 1].due, agenda->heap[next].due)) {
            next++;
        }
        if (next >= agenda->count || !instant_before(agenda->heap[next].due, turn.due)) {
            break;
        }
        put(agenda, at, agenda->heap[next]);
        at = next;
    }
    put(agenda, at, turn);
}

/* ---- The timer ------------------------------------------------------------------------------- */

static void on_due(uv_timer_t *timer);

static void arm(struct client *client)
{
    struct agenda *agenda = &client->agenda;
    instant due = agenda->count > 0 ? agenda->heap[0].due : INSTANT_NEVER;
    span left;

    if (agenda->is_running || client->is_closing || due.ns == agenda->armed.ns) {
        return;
    }
    agenda->armed = due;
    left = instant_since(due, clock_now());
    if (due.ns == INSTANT_NEVER.ns) {
        (void)uv_timer_stop(&agenda->timer);
    } else {
        uv_update_time(client->loop);
        (void)uv_timer_start(&agenda->timer, on_due,
                             left.ns > 0 ? (uint64_t)left.ns / 1000000 + 1 : 0, 0);
    }
}

/* Runs all registrations that are due in one turn of the loop, so that their requests leave in one
 * write. A registration that is due again by then waits for the next turn. */
static void on_due(uv_timer_t *timer)
{
    struct client *client = timer->data;
    struct agenda *agenda = &client->agenda;
    instant now = clock_now();

    client_enter(client);
    agenda->is_running = true;
    agenda->armed = INSTANT_NEVER;
    for (uint32_t left = agenda->count; left > 0 && agenda->count > 0; left--) {
        if (instant_before(now, agenda->heap[0].due)) {
            break;
        }
        registration_due(agenda->heap[0].registration, now);
    }
    enrol_beat_now(client);
    agenda->is_running = false;
    arm(client);
    client_exit(client);
}

/* ---- Registrations --------------------------------------------------------------------------- */

static void on_timer_closed(uv_handle_t *handle)
{
    struct client *client = handle->data;

    free(client->agenda.heap);
    client->agenda.heap = NULL;
    client_release(client);
}

void agenda_init(struct client *client)
{
    (void)uv_timer_init(client->loop, &client->agenda.timer);
    client->agenda.timer.data = client;
    client->agenda.armed = INSTANT_NEVER;
    client->open_handles++;
}

void agenda_fini(struct client *client)
{
    uv_close((uv_handle_t *)&client->agenda.timer, on_timer_closed);
}

int agenda_add(struct registration *registration)
{
    struct agenda *agenda = &registration->client->agenda;

    if (agenda->count == agenda->capacity) {
        uint32_t wanted = agenda->capacity > 0 ? 2 * agenda->capacity : FIRST_CAPACITY;
        struct turn *grown = realloc(agenda->heap, wanted * sizeof(*grown));
        if (!grown) {
            return BATON_ENOMEM;
        }
        agenda->heap = grown;
        agenda->capacity = wanted;
    }
    put(agenda, agenda->count++, (struct turn){due_of(registration), registration});
    rise(agenda, agenda->count - 1);
    arm(registration->client);
    return BATON_OK;
}

/* Most steps postpone one of the two deadlines, or move the one that is not the next. */
void agenda_change(struct registration *registration)
{
    struct agenda *agenda = &registration->client->agenda;
    instant due = due_of(registration);
    uint32_t at = registration->place - 1;

    if (registration->place == 0 || agenda->heap[at].due.ns == due.ns) {
        return;
    }
    if (instant_before(due, agenda->heap[at].due)) {
        agenda->heap[at].due = due;
        rise(agenda, at);
    } else {
        agenda->heap[at].due = due;
        sink(agenda, at);
    }
    arm(registration->client);
}

void agenda_remove(struct registration *registration)
{
    struct agenda *agenda = &registration->client->agenda;
    uint32_t at = registration->place - 1;
    struct turn last;

    if (registration->place == 0) {
        return;
    }
    registration->place = 0;
    last = agenda->heap[--agenda->count];
    if (last.registration != registration) {
        put(agenda, at, last);
        rise(agenda, at);
        sink(agenda, last.registration->place - 1);
    }
    arm(registration->client);
}
