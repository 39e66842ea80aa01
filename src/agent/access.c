#include "agent/access.h"

#include <ctype.h>
#include <fnmatch.h>
#include <grp.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <utlist.h>

struct who {
    bool is_group;
    id_t id;
};

struct access {
    struct access *next;
    struct who *whos;
    size_t count;
    char pattern[];
};

/* ---- Rules ----------------------------------------------------------------------------------- */

static bool parse_number(id_t *ret, const char *text)
{
    char *end;
    unsigned long number = strtoul(text, &end, 10);

    *ret = (id_t)number;
    return isdigit((unsigned char)*text) && *end == '\0' && number < (id_t)-1;
}

/* By name first: a name may be of digits. */
static int find_who(struct who *ret, const char *text, const char *rule, struct baton_error *reterr)
{
    const char *name = text + (*text == '@');
    const struct passwd *user;
    const struct group *group;

    *ret = (struct who){.is_group = *text == '@'};
    /* cppcheck-suppress getgrnamCalled; the answer is read before anybody else asks */
    if (ret->is_group && (group = getgrnam(name))) {
        ret->id = group->gr_gid;
        return BATON_OK;
    }
    /* cppcheck-suppress getpwnamCalled; as above */
    if (!ret->is_group && (user = getpwnam(name))) {
        ret->id = user->pw_uid;
        return BATON_OK;
    }
    return parse_number(&ret->id, name)
               ? BATON_OK
               : error_set(reterr, BATON_EINVAL, "'%s': '%s': there is no such %s", rule, name,
                           ret->is_group ? "group" : "user");
}

static int add_all(struct access *access, char *list, const char *rule, struct baton_error *reterr)
{
    char *rest = NULL;
    int code = BATON_OK;

    for (char *word = strtok_r(list, ",", &rest); word && code == BATON_OK;
         word = strtok_r(NULL, ",", &rest)) {
        struct who *whos = reallocarray(access->whos, access->count + 1, sizeof(*whos));
        if (!whos) {
            return error_set(reterr, BATON_ENOMEM, "out of memory");
        }
        access->whos = whos;
        code = find_who(&whos[access->count++], word, rule, reterr);
    }
    return code;
}

/* A rule without anybody leaves the election to root and the agent's own user. */
int access_add(struct access **access, const char *rule, struct baton_error *reterr)
{
    const char *equals = strrchr(rule, '='); /* an election's name may have some */
    struct access *added;
    char *list;
    int code;

    if (!equals || equals == rule) {
        return error_set(reterr, BATON_EINVAL, "'%s': must be ELECTION=USER or ELECTION=@GROUP",
                         rule);
    }
    added = calloc(1, sizeof(*added) + (size_t)(equals - rule) + 1);
    list = strdup(equals + 1);
    code = added && list ? BATON_OK : error_set(reterr, BATON_ENOMEM, "out of memory");
    if (code == BATON_OK) {
        memcpy(added->pattern, rule, (size_t)(equals - rule));
        code = add_all(added, list, rule, reterr);
    }
    free(list);
    if (code == BATON_OK) {
        LL_APPEND(*access, added);
    } else {
        access_free(added);
    }
    return code;
}

void access_free(struct access *access)
{
    while (access) {
        struct access *next = access->next;
        free(access->whos);
        free(access);
        access = next;
    }
}

/* ---- Questions ------------------------------------------------------------------------------- */

static bool is_named(const struct access *rule, const struct local *local,
                     const struct local_peer *peer)
{
    for (size_t i = 0; i < rule->count; i++) {
        const struct who *who = &rule->whos[i];
        if (who->is_group ? local_peer_has_group(local, peer, who->id) : who->id == peer->uid) {
            return true;
        }
    }
    return false;
}

bool access_allows(const struct access *access, const char *election, const struct local *local,
                   const struct local_peer *peer)
{
    while (access && fnmatch(access->pattern, election, 0) != 0) {
        access = access->next;
    }
    return !access || peer->uid == 0 || peer->uid == geteuid() || is_named(access, local, peer);
}
