/* An election on several independent servers: the core's commands go to all of them, and their
 * answers come back as one, by lease/majority. */
#include "provider/redis/client.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct quorum {
    struct majority majority;
    char holders[MAJORITY_MAX][BATON_NAME_MAX]; /* by each server */
};

/* An order to a server, until its reply. */
struct sent_order {
    struct registration *registration;
    struct majority_order order;
};

static void obey(struct registration *registration, const struct majority_update *update);

int quorum_begin(struct registration *registration)
{
    int count = registration->client->server_count;

    if (count > 1) {
        registration->quorum = calloc(1, sizeof(*registration->quorum));
        if (!registration->quorum) {
            return BATON_ENOMEM;
        }
        majority_init(&registration->quorum->majority, count);
    }
    return BATON_OK;
}

void quorum_end(struct registration *registration)
{
    free(registration->quorum);
    registration->quorum = NULL;
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

static void on_published(void *userdata, uint64_t tag, const redisReply *reply, instant sent)
{
    (void)userdata;
    (void)tag;
    (void)reply; /* a process that misses the notice checks later */
    (void)sent;
}

/* A single server's grant is not announced: it would make the others meet there. */
static void report_taken(struct registration *registration, uint64_t epoch)
{
    char notice[BATON_NAME_MAX + 40];
    char wake[KEY_MAX];

    (void)snprintf(notice, sizeof(notice), "taken %llu %s", (unsigned long long)epoch,
                   registration->client->id);
    registration_wake(registration, wake);
    (void)client_publish(registration->client, wake, notice, strlen(notice), on_published, NULL);
}

static void answer_core(struct registration *registration, const struct majority_update *update)
{
    struct lease_input input = {.type = LEASE_IN_REPLY,
                                .reply = {.request = update->request,
                                          .outcome = update->outcome,
                                          .epoch = update->epoch,
                                          .left = update->left}};

    if (update->outcome == LEASE_GRANTED && registration->quorum->majority.type == LEASE_TAKE) {
        report_taken(registration, update->epoch);
    }
    if (update->like >= 0) {
        registration_take_holder(registration, registration->quorum->holders[update->like],
                                 update->epoch);
    }
    registration_step(registration, &input);
}

static void on_answer(void *userdata, uint64_t tag, const redisReply *reply, instant sent)
{
    struct sent_order *sent_order = userdata;
    struct registration *registration = sent_order->registration;
    struct client *client = registration->client;
    struct quorum *quorum = registration->quorum;
    struct lock_answer answer = {.reply = {.outcome = LEASE_NO_ANSWER}};
    struct majority_update update;
    (void)tag;
    (void)sent; /* the core counts from the step that asked, which is earlier */

    client_enter(client);
    if (reply && sent_order->order.type < MAJORITY_RELEASE) {
        if (parse_lock(&answer, reply)) {
            registration_understood(registration, REQUEST_LOCK);
            lock_check(registration, &answer);
        } else {
            registration_misunderstood(registration, REQUEST_LOCK, reply);
        }
    }
    answer.reply.holder = number_of(answer.holder);
    if (answer.reply.outcome == LEASE_HELD) {
        memcpy(quorum->holders[sent_order->order.server], answer.holder, BATON_NAME_MAX);
    }
    majority_answer(&quorum->majority, &sent_order->order, &answer.reply, &update);
    free(sent_order);
    obey(registration, &update);
    if (update.is_answered) {
        answer_core(registration, &update);
    }
    registration_unref(registration);
    client_exit(client);
}

static bool send_order(struct registration *registration, const struct majority_order *order)
{
    struct sent_order *sent_order = malloc(sizeof(*sent_order));

    if (!sent_order) {
        return false;
    }
    *sent_order = (struct sent_order){.registration = registration, .order = *order};
    registration->references++;
    if (registration_send(registration, order->server, order, on_answer, sent_order, 0) !=
        BATON_OK) {
        registration_unref(registration);
        free(sent_order);
        return false;
    }
    return true;
}

/* An unreachable server counts as a reply. That decides nothing while more than half of the servers
 * are reachable; otherwise the core's timeout is the reply. */
static void obey(struct registration *registration, const struct majority_update *update)
{
    static const struct majority_reply silence = {.outcome = LEASE_NO_ANSWER};
    struct majority_update more;

    for (int i = 0; i < update->order_count; i++) {
        if (!send_order(registration, &update->orders[i])) {
            majority_answer(&registration->quorum->majority, &update->orders[i], &silence, &more);
            for (int j = 0; j < more.order_count; j++) { /* releases the grants */
                (void)send_order(registration, &more.orders[j]);
            }
        }
    }
}

int quorum_run(struct registration *registration, const struct lease_command *command)
{
    struct majority_update update;

    majority_begin(&registration->quorum->majority, command, &update);
    obey(registration, &update);
    return BATON_OK;
}
