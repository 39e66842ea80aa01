/* The deadlines of all registrations: a heap over one timer of the loop. */
#include "provider/redis/client.h"

static instant due_of(const struct registration *registration)
{
    return instant_min(registration->deadline, registration->beat);
}

/* ---- The timer ------------------------------------------------------------------------------- */

static void on_due(uv_timer_t *timer);

static void arm(struct client *client, uint64_t least_ms)
{
    struct agenda *agenda = &client->agenda;
    instant due = deadlines_next(&agenda->turns);
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
                             left.ns > 0 ? (uint64_t)left.ns / 1000000 + 1 : least_ms, 0);
    }
}

/* Runs all registrations that are due in one turn of the loop, so that their requests leave in one
 * write. One that is due again by then waits for 1 ms: a timer of 0 ms would fire again before the
 * loop looks at its sockets. */
static void on_due(uv_timer_t *timer)
{
    struct client *client = timer->data;
    struct agenda *agenda = &client->agenda;
    instant now = clock_now();

    client_enter(client);
    agenda->is_running = true;
    agenda->armed = INSTANT_NEVER;
    for (uint32_t left = agenda->turns.count;
         left > 0 && !instant_before(now, deadlines_next(&agenda->turns)); left--) {
        registration_due(DEADLINE_OF(struct registration, turn, deadlines_first(&agenda->turns)),
                         now);
    }
    enrol_beat_now(client);
    agenda->is_running = false;
    arm(client, 1);
    client_exit(client);
}

/* ---- Registrations --------------------------------------------------------------------------- */

static void on_timer_closed(uv_handle_t *handle)
{
    struct client *client = handle->data;

    deadlines_fini(&client->agenda.turns);
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
    struct client *client = registration->client;
    int code = deadlines_add(&client->agenda.turns, &registration->turn, due_of(registration));

    arm(client, 0);
    return code;
}

/* Most steps postpone one of the two deadlines, or move the one that is not the next. */
void agenda_change(struct registration *registration)
{
    struct client *client = registration->client;

    if (registration->turn.place != 0) {
        deadlines_change(&client->agenda.turns, &registration->turn, due_of(registration));
        arm(client, 0);
    }
}

void agenda_remove(struct registration *registration)
{
    struct client *client = registration->client;

    deadlines_remove(&client->agenda.turns, &registration->turn);
    arm(client, 0);
}
