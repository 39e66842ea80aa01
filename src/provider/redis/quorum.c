/* An election on several independent servers: the core's commands go to all of them, and their
 * answers come back as one, by lease/majority. */
#include "provider/redis/client.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct quorum {
    struct majority majority;
    char holders[MAJORITY_MAX][BATON_NAME_MAX]; /* as each server says */
};

/* An order on its way. */
struct trip {
    struct seat *seat;
    struct majority_order order;
};

static void obey(struct seat *seat, const struct majority_update *update);

int quorum_begin(struct seat *seat)
{
    int count = seat->client->server_count;

    if (count > 1) {
        seat->quorum = calloc(1, sizeof(*seat->quorum));
        if (!seat->quorum) {
            return BATON_ENOMEM;
        }
        majority_init(&seat->quorum->majority, count);
    }
    return BATON_OK;
}

void quorum_end(struct seat *seat)
{
    free(seat->quorum);
    seat->quorum = NULL;
}

/* FNV-1a: the majority only compares them. */
static uint64_t number_of(const char *id)
{
    uint64_t hash = 14695981039346656037u;

    for (; *id; id++) {
        hash = (hash ^ (unsigned char)*id) * 1099511628211u;
    }
    return hash;
}

static void on_told(void *userdata, uint64_t tag, const redisReply *reply, instant sent)
{
    (void)userdata;
    (void)tag;
    (void)reply; /* who misses it looks in its turn */
    (void)sent;
}

/* One server's grant is no news, and would make the others meet there. */
static void tell_taken(struct seat *seat, uint64_t epoch)
{
    char notice[BATON_NAME_MAX + 40];
    char wake[KEY_MAX];

    (void)snprintf(notice, sizeof(notice), "taken %llu %s", (unsigned long long)epoch,
                   seat->client->id);
    seat_wake(seat, wake);
    (void)client_publish(seat->client, wake, notice, strlen(notice), on_told, NULL);
}

static void answer_core(struct seat *seat, const struct majority_update *update)
{
    struct lease_input input = {.type = LEASE_IN_REPLY,
                                .reply = {.request = update->request,
                                          .outcome = update->outcome,
                                          .epoch = update->epoch,
                                          .left = update->left}};

    if (update->outcome == LEASE_GRANTED && seat->quorum->majority.type == LEASE_TAKE) {
        tell_taken(seat, update->epoch);
    }
    if (update->like >= 0) {
        seat_take_holder(seat, seat->quorum->holders[update->like], update->epoch);
    }
    seat_step(seat, &input);
}

static void on_answer(void *userdata, uint64_t tag, const redisReply *reply, instant sent)
{
    struct trip *trip = userdata;
    struct seat *seat = trip->seat;
    struct client *client = seat->client;
    struct quorum *quorum = seat->quorum;
    struct lock_answer answer = {.reply = {.outcome = LEASE_NO_ANSWER}};
    struct majority_update update;
    (void)tag;
    (void)sent; /* the core counts from the step that asked, which is before */

    client_enter(client);
    if (reply && trip->order.type < MAJORITY_RELEASE) {
        if (parse_lock(&answer, reply)) {
            seat_understood(seat, ERRAND_LOCK);
            lock_judge(seat, &answer);
        } else {
            seat_misunderstood(seat, ERRAND_LOCK, reply);
        }
    }
    answer.reply.holder = number_of(answer.holder);
    if (answer.reply.outcome == LEASE_HELD) {
        memcpy(quorum->holders[trip->order.server], answer.holder, BATON_NAME_MAX);
    }
    majority_answer(&quorum->majority, &trip->order, &answer.reply, &update);
    free(trip);
    obey(seat, &update);
    if (update.is_answered) {
        answer_core(seat, &update);
    }
    seat_unref(seat);
    client_exit(client);
}

static bool send_order(struct seat *seat, const struct majority_order *order)
{
    struct trip *trip = malloc(sizeof(*trip));

    if (!trip) {
        return false;
    }
    *trip = (struct trip){.seat = seat, .order = *order};
    seat->references++;
    if (seat_send(seat, order->server, order, on_answer, trip, 0) != BATON_OK) {
        seat_unref(seat);
        free(trip);
        return false;
    }
    return true;
}

/* A server that cannot be reached has answered already. That alone decides nothing while more than
 * half of them can be reached; when they cannot, the core's own timeout is the answer. */
static void obey(struct seat *seat, const struct majority_update *update)
{
    static const struct majority_reply silence = {.outcome = LEASE_NO_ANSWER};
    struct majority_update more;

    for (int i = 0; i < update->order_count; i++) {
        if (!send_order(seat, &update->orders[i])) {
            majority_answer(&seat->quorum->majority, &update->orders[i], &silence, &more);
            for (int j = 0; j < more.order_count; j++) { /* what was granted is given back */
                (void)send_order(seat, &more.orders[j]);
            }
        }
    }
}

int quorum_run(struct seat *seat, const struct lease_command *command)
{
    struct majority_update update;

    majority_begin(&seat->quorum->majority, command, &update);
    obey(seat, &update);
    return BATON_OK;
}
