#include "fleet/workers/discovery_int.h"

#include "base/addresses.h"
#include "base/errand.h"

#include <arpa/nameser.h>
#include <netdb.h>
#include <resolv.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EVERY_S = 10, ANSWER_BYTES = 65536, TRIES = 2, TRY_S = 2 };

struct name {
    struct discovery *discovery;
    char *text;
    struct discovery_url url;
    struct discovered *found;
    size_t count;
    bool is_known; /* it was resolved once */
    unsigned failures;
    struct addresses *addresses; /* the request that is under way, by the kind; NULL: none */
    struct service *service;
};

/* A request for a service's records. */
struct service {
    struct errand errand;
    struct name *name;
    int answer_bytes, answer_error;
    uint8_t answer[ANSWER_BYTES];
    char host[];
};

struct discovery {
    struct discovery_config config;
    struct name *names;
    size_t count;
    struct discovered *told;
    size_t told_count;
    bool was_told, was_whole;
    uv_timer_t timer;
};

static void discovery_free(struct discovery *discovery)
{
    for (size_t i = 0; i < discovery->count; i++) {
        free(discovery->names[i].text);
        free(discovery->names[i].found);
    }
    free(discovery->names);
    free(discovery->told);
    free(discovery);
}

/* ---- The set --------------------------------------------------------------------------------- */

static int compare(const void *a, const void *b)
{
    const struct discovered *one = a, *other = b;

    return strcmp(one->id, other->id);
}

static size_t sum_of(const struct discovery *discovery)
{
    size_t sum = 0;

    for (size_t i = 0; i < discovery->count; i++) {
        sum += discovery->names[i].count;
    }
    return sum;
}

static size_t merge(const struct discovery *discovery, struct discovered *all)
{
    size_t count = 0, kept = 0;

    for (size_t i = 0; i < discovery->count; i++) {
        for (size_t j = 0; j < discovery->names[i].count; j++) {
            all[count++] = discovery->names[i].found[j];
        }
    }
    qsort(all, count, sizeof(*all), compare);
    for (size_t i = 0; i < count; i++) {
        if (kept < DISCOVERY_FOUND_MAX && (kept == 0 || strcmp(all[kept - 1].id, all[i].id) != 0)) {
            all[kept++] = all[i];
        }
    }
    return kept;
}

static bool is_told(const struct discovery *discovery, const struct discovered *all, size_t count,
                    bool is_whole)
{
    bool is_same =
        discovery->was_told && discovery->was_whole == is_whole && discovery->told_count == count;

    for (size_t i = 0; is_same && i < count; i++) {
        is_same = strcmp(discovery->told[i].url, all[i].url) == 0;
    }
    return is_same;
}

static void tell(struct discovery *discovery)
{
    struct discovered *all = calloc(sum_of(discovery) + 1, sizeof(*all));
    bool is_whole = true;
    size_t count;

    for (size_t i = 0; i < discovery->count; i++) {
        is_whole &= discovery->names[i].is_known;
        if (discovery->names[i].failures == 0 && !discovery->names[i].is_known) {
            free(all);
            return; /* it is being tried for the first time */
        }
    }
    if (all == NULL) {
        return; /* the next look tells */
    }
    count = merge(discovery, all);
    if (is_told(discovery, all, count, is_whole)) {
        free(all);
        return;
    }
    free(discovery->told);
    discovery->told = all;
    discovery->told_count = count;
    discovery->was_told = true;
    discovery->was_whole = is_whole;
    discovery->config.on_change(discovery->config.userdata, all, count, is_whole);
}

/* ---- Answers --------------------------------------------------------------------------------- */

static void fail(struct name *name, const char *reason)
{
    const struct discovery_config *config = &name->discovery->config;
    struct baton_error error;

    name->failures++;
    if ((name->failures & (name->failures - 1)) == 0) {
        (void)error_set(&error, BATON_EUNAVAILABLE, "workers of %s://%s: %s", name->url.scheme,
                        name->url.host, reason);
        config->on_failed(config->userdata, name->text, &error);
    }
}

/* Takes the array. */
static void succeed(struct name *name, struct discovered *found, size_t count)
{
    free(name->found);
    name->found = found;
    name->count = count;
    name->is_known = true;
    name->failures = 0;
}

/* ---- Addresses ------------------------------------------------------------------------------- */

static size_t count_of(const struct addrinfo *list, int family)
{
    size_t count = 0;

    for (const struct addrinfo *at = list; at != NULL; at = at->ai_next) {
        count += at->ai_family == family;
    }
    return count < DISCOVERY_FOUND_MAX ? count : DISCOVERY_FOUND_MAX;
}

static void take_addresses(struct name *name, const struct addrinfo *list)
{
    int family = count_of(list, AF_INET) > 0 ? AF_INET : AF_INET6;
    size_t most = count_of(list, family), count = 0;
    struct discovered *found = calloc(most + 1, sizeof(*found));
    char address[INET6_ADDRSTRLEN];

    if (found == NULL) {
        fail(name, "out of memory");
        return;
    }
    for (const struct addrinfo *at = list; at != NULL && count < most; at = at->ai_next) {
        if (at->ai_family == family && getnameinfo(at->ai_addr, at->ai_addrlen, address,
                                                   sizeof(address), NULL, 0, NI_NUMERICHOST) == 0) {
            count +=
                discovery_found(&found[count], name->url.scheme, address, (unsigned)name->url.port);
        }
    }
    succeed(name, found, count);
}

static void on_addresses(void *userdata, struct addrinfo *list, const char *fault)
{
    struct name *name = userdata;

    name->addresses = NULL;
    if (list != NULL) {
        take_addresses(name, list);
        freeaddrinfo(list);
    } else {
        fail(name, fault);
    }
    tell(name->discovery);
}

/* ---- Services -------------------------------------------------------------------------------- */

static void ask_service(struct errand *errand)
{
    struct service *service = (struct service *)errand;
    struct __res_state resolver;

    memset(&resolver, 0, sizeof(resolver));
    service->answer_bytes = -1;
    service->answer_error = NETDB_INTERNAL;
    if (res_ninit(&resolver) != 0) {
        return;
    }
    resolver.retry = TRIES;
    resolver.retrans = TRY_S;
    service->answer_bytes = res_nquery(&resolver, service->host, ns_c_in, ns_t_srv, service->answer,
                                       sizeof(service->answer));
    service->answer_error = resolver.res_h_errno;
    res_nclose(&resolver);
}

/* A record: priority, weight, port, target (RFC 2782). All count the same: the plan weighs. */
static bool take_record(const struct name *name, ns_msg *message, int index,
                        struct discovered *found)
{
    char target[NS_MAXDNAME];
    ns_rr record;

    return ns_parserr(message, ns_s_an, index, &record) == 0 && ns_rr_type(record) == ns_t_srv &&
           ns_rr_rdlen(record) > 6 &&
           ns_name_uncompress(ns_msg_base(*message), ns_msg_end(*message), ns_rr_rdata(record) + 6,
                              target, sizeof(target)) >= 0 &&
           strlen(target) <= WEB_URL_HOST_MAX && target[0] != '\0' && strcmp(target, ".") != 0 &&
           discovery_found(found, name->url.scheme, target, ns_get16(ns_rr_rdata(record) + 4));
}

static void take_answer(struct name *name, const struct service *service)
{
    struct discovered *found;
    size_t count = 0;
    ns_msg message;

    if (ns_initparse(service->answer, service->answer_bytes, &message) != 0) {
        fail(name, "the name server's answer cannot be read");
        return;
    }
    found = calloc((size_t)ns_msg_count(message, ns_s_an) + 1, sizeof(*found));
    if (found == NULL) {
        fail(name, "out of memory");
        return;
    }
    for (int i = 0; i < ns_msg_count(message, ns_s_an); i++) {
        count += take_record(name, &message, i, &found[count]);
    }
    if (count > 0) {
        succeed(name, found, count);
    } else {
        fail(name, "it has no SRV records");
        free(found);
    }
}

static void on_service(struct errand *errand)
{
    struct service *service = (struct service *)errand;
    struct name *name = service->name;

    name->service = NULL;
    if (service->answer_bytes >= 0) {
        take_answer(name, service);
    } else {
        fail(name, hstrerror(service->answer_error));
    }
    tell(name->discovery);
}

static void free_service(struct errand *errand)
{
    free(errand);
}

static int begin_service(struct name *name)
{
    size_t bytes = strlen(name->url.host) + 1;
    struct service *service = malloc(sizeof(*service) + bytes);
    int code;

    if (service == NULL) {
        return UV_ENOMEM;
    }
    service->errand = (struct errand){.run = ask_service, .done = on_service, .free = free_service};
    service->name = name;
    memcpy(service->host, name->url.host, bytes);
    code = errand_begin(&service->errand, name->discovery->config.loop);
    if (code == 0) {
        name->service = service;
    }
    return code;
}

/* ---- Looking --------------------------------------------------------------------------------- */

static void look(struct name *name)
{
    int code = 0;

    if (name->addresses != NULL || name->service != NULL) {
        return;
    }
    if (name->url.kind == DISCOVERY_ADDRESSES) {
        code = addresses_ask(&name->addresses, name->discovery->config.loop, name->url.host,
                             name->url.port, on_addresses, name);
    } else if (name->url.kind != DISCOVERY_STATIC) {
        code = begin_service(name);
    }
    if (code != 0) {
        fail(name, uv_strerror(code));
    }
}

static void on_timer(uv_timer_t *timer)
{
    struct discovery *discovery = timer->data;

    for (size_t i = 0; i < discovery->count; i++) {
        look(&discovery->names[i]);
    }
    tell(discovery);
}

/* ---- Life ------------------------------------------------------------------------------------ */

static void on_timer_closed(uv_handle_t *timer)
{
    discovery_free(timer->data);
}

static void leave(const struct name *name)
{
    if (name->addresses != NULL) {
        addresses_leave(name->addresses);
    }
    if (name->service != NULL) {
        errand_leave(&name->service->errand);
    }
}

void discovery_close(struct discovery *discovery)
{
    if (discovery != NULL) {
        for (size_t i = 0; i < discovery->count; i++) {
            leave(&discovery->names[i]);
        }
        uv_close((uv_handle_t *)&discovery->timer, on_timer_closed);
    }
}

static int add(struct discovery *discovery, const char *text, struct baton_error *reterr)
{
    struct name *name = &discovery->names[discovery->count];
    int code = discovery_url_parse(&name->url, text, reterr);

    if (code != BATON_OK) {
        return code;
    }
    discovery->count++;
    name->discovery = discovery;
    name->text = strdup(text);
    if (name->url.kind == DISCOVERY_STATIC) {
        name->found = calloc(1, sizeof(*name->found));
    }
    if (name->text == NULL || (name->url.kind == DISCOVERY_STATIC && name->found == NULL)) {
        return error_set(reterr, BATON_ENOMEM, "out of memory for a worker's URL");
    }
    if (name->url.kind == DISCOVERY_STATIC) {
        discovery_id(text, name->found->id);
        (void)snprintf(name->found->url, sizeof(name->found->url), "%s", text);
        name->found->source = "static";
        name->count = 1;
        name->is_known = true;
    }
    return BATON_OK;
}

int discovery_open(struct discovery **ret, const struct discovery_config *config,
                   struct baton_error *reterr)
{
    struct discovery *discovery = calloc(1, sizeof(*discovery));
    span every = config->every.ns > 0 ? config->every : SPAN_S(EVERY_S);
    uint64_t every_ms = (uint64_t)every.ns / 1000000;
    int code = BATON_OK;

    if (config->count > DISCOVERY_NAMES_MAX) {
        code = error_set(reterr, BATON_EINVAL, "%zu URLs of workers: at most %d", config->count,
                         DISCOVERY_NAMES_MAX);
    } else if (discovery == NULL ||
               (discovery->names = calloc(config->count + 1, sizeof(*discovery->names))) == NULL) {
        code = error_set(reterr, BATON_ENOMEM, "out of memory for the workers' URLs");
    }
    for (size_t i = 0; code == BATON_OK && i < config->count; i++) {
        code = add(discovery, config->urls[i], reterr);
    }
    if (code != BATON_OK) {
        if (discovery != NULL) {
            discovery_free(discovery);
        }
        return code;
    }
    discovery->config = *config;
    discovery->config.urls = NULL;                        /* they are the caller's */
    (void)uv_timer_init(config->loop, &discovery->timer); /* cannot fail */
    discovery->timer.data = discovery;
    (void)uv_timer_start(&discovery->timer, on_timer, 0, every_ms > 0 ? every_ms : 1);
    *ret = discovery;
    return BATON_OK;
}
