/* This node's use of its guardian, which certifies the node's death to the peers and names the
 * heir. */
#include "guardian/guardian.h"
#include "provider/raft/node.h"

#include <string.h>

static void on_warning(void *userdata, const struct baton_error *error)
{
    struct node *node = userdata;

    log_warning(node->logger, "guardian", LOG_STR("problem", error->message));
    event_error(node, error->code, error);
    event_deliver(node);
}

static void poison(void *cell)
{
    lease_cell_poison(cell);
}

/* A failure is only a warning: without a guardian everything works, but after a crash peers on
 * other hosts wait for the lease's end. */
void guard_begin(struct node *node)
{
    struct guardian_options options = {
        .loop = node->loop,
        .certificate = {.cluster = node->cluster,
                        .node = node->id,
                        .incarnation = node->incarnation},
        .kills_outliving = node->options.kills_outliving,
        .on_warning = on_warning,
        .userdata = node,
    };
    struct baton_error error;

    if (!node->options.wants_guardian) {
        return;
    }
    memcpy(options.certificate.secret, node->secret, sizeof(options.certificate.secret));
    if (guardian_start(&node->guardian, &options, &error) != BATON_OK) {
        node->guardian = NULL;
        log_warning(node->logger, "no-guardian", LOG_STR("reason", error.message));
        event_error(node, error.code, &error);
        return;
    }
    if (node->election->cell &&
        guardian_arm(node->guardian, poison, node->election->cell, &error) != BATON_OK) {
        log_warning(node->logger, "not-armed", LOG_STR("reason", error.message));
    }
    guard_follow_membership(node);
    if (node->has_victims) {
        guardian_set_victims(node->guardian, &node->victims);
    }
}

void guard_follow_membership(struct node *node)
{
    const struct raft_configuration *members = raft_get_configuration(node->raft);
    struct guardian_peer peers[RAFT_MEMBERS_MAX];
    size_t count = 0;

    if (!node->guardian) {
        return;
    }
    for (size_t i = 0; i < members->count; i++) {
        if (members->members[i].id != node->id && members->members[i].address[0]) {
            peers[count++] = (struct guardian_peer){.node = members->members[i].id,
                                                    .address = members->members[i].address};
        }
    }
    guardian_set_peers(node->guardian, peers, count);
}

void guard_publish(struct node *node, const struct raft_lease *lease)
{
    if (node->guardian) {
        guardian_publish(node->guardian, lease->held ? lease->end : (instant){0});
    }
}

void guard_set_heir(struct node *node, raft_id heir)
{
    if (node->guardian) {
        guardian_set_heir(node->guardian, heir);
    }
}

void guard_set_victims(struct provider *provider, const struct victims *victims)
{
    struct node *node = (struct node *)provider;

    node->has_victims = victims != NULL;
    if (victims) {
        node->victims = *victims;
    }
    if (node->guardian) {
        guardian_set_victims(node->guardian, victims);
    }
}

static void on_stopped(void *userdata)
{
    node_release(userdata);
}

void guard_end(struct node *node)
{
    struct guardian *guardian = node->guardian;

    if (guardian) {
        node->guardian = NULL;
        node->open_handles++;
        guardian_stop(guardian, on_stopped, node);
    }
}
