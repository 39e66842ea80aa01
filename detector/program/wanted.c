#include "detector/program/wanted.h"

#include "base/error.h"
#include "detector/model/address.h"

#include <stdlib.h>
#include <string.h>

static bool is_same(const char *a, const char *b)
{
    return (!a && !b) || (a && b && strcmp(a, b) == 0);
}

static enum wanted_change compare(const struct wanted *from, const struct wanted *to)
{
    if (from->model_id == to->model_id && is_same(from->name, to->name)) {
        if (is_same(from->url, to->url)) {
            return WANTED_SAME;
        }
        if (from->identity && is_same(from->identity, to->identity)) {
            return WANTED_SIGNATURE;
        }
    }
    return WANTED_OTHER;
}

int wanted_set(struct wanted *wanted, const struct subscription *subscription,
               enum wanted_change *ret)
{
    struct wanted before = *wanted;
    char *name = strdup(subscription->model_name);
    char *url = strdup(subscription->model_url);
    char *identity = NULL;

    if (!name || !url ||
        address_identity(&identity, subscription->model_id, url, NULL) == BATON_ENOMEM) {
        free(name);
        free(url);
        return BATON_ENOMEM;
    }
    *wanted = (struct wanted){
        .model_id = subscription->model_id, .name = name, .url = url, .identity = identity};
    *ret = compare(&before, wanted);
    wanted_fini(&before);
    return 0;
}

void wanted_fini(struct wanted *wanted)
{
    free(wanted->name);
    free(wanted->url);
    free(wanted->identity);
    *wanted = (struct wanted){0};
}
