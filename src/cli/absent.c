#include "cli/absent.h"

#include "member/members.h"

#include <stdio.h>
#include <string.h>

struct count {
    uint64_t all, here; /* votes */
    char names[BATON_ERROR_MESSAGE_MAX / 2];
};

static void on_members(void *userdata, int code, const struct baton_member *members, size_t count)
{
    struct count *votes = userdata;

    for (size_t i = 0; code == BATON_OK && i < count; i++) {
        const struct baton_member *member = &members[i];
        size_t used = strlen(votes->names);
        votes->all += member->weight;
        votes->here += member->is_alive ? member->weight : 0;
        if (member->weight > 0 && !member->is_alive) {
            (void)snprintf(votes->names + used, sizeof(votes->names) - used, "%s%s at %s",
                           used ? ", " : "", member->name, member->address);
        }
    }
}

/* A provider whose members vote knows them itself, and answers before the call returns. */
bool absent_voters(struct member *member, struct election *election, char *ret, size_t bytes)
{
    struct count votes = {.all = 0};

    if (!member_has(member, PROVIDER_OPERATE) ||
        members_list(election, on_members, &votes, NULL) != BATON_OK ||
        votes.here > votes.all / 2 || !votes.names[0]) {
        return false;
    }
    (void)snprintf(ret, bytes, "%llu of %llu votes %s here, and %llu are needed; no answer from %s",
                   (unsigned long long)votes.here, (unsigned long long)votes.all,
                   votes.here == 1 ? "is" : "are", (unsigned long long)votes.all / 2 + 1,
                   votes.names);
    return true;
}
