#include "member/addition.h"

#include "base/value.h"

#include <string.h>

/* A join that was interrupted leaves a learner behind, and the same command completes it. */
static bool is_interrupted(const struct addition *added, const struct baton_member *now)
{
    return now->kind == BATON_MEMBER_LEARNER && !added->has_kind && !added->has_weight &&
           !added->has_priority;
}

void addition_keep(void *userdata, int code, const struct baton_member *members, size_t count)
{
    struct addition *added = userdata;
    struct baton_member *ret = &added->member;
    for (size_t i = 0; !code && i < count; i++) {
        const struct baton_member *now = &members[i];
        if (strcmp(now->name, ret->name) == 0) {
            bool voted = now->kind != BATON_MEMBER_LEARNER;
            ret->kind = added->has_kind || is_interrupted(added, now) ? ret->kind : now->kind;
            bool votes = ret->kind != BATON_MEMBER_LEARNER;
            ret->weight = added->has_weight || votes != voted ? ret->weight : now->weight;
            ret->priority = added->has_priority ? ret->priority : now->priority;
        }
    }
}

static int take_kind(const char *word, enum baton_member_kind *ret, struct baton_error *reterr)
{
    for (int kind = BATON_MEMBER_VOTER; kind <= BATON_MEMBER_LEARNER; kind++) {
        if (strcmp(word, baton_member_kind_name((enum baton_member_kind)kind)) == 0) {
            *ret = (enum baton_member_kind)kind;
            return 0;
        }
    }
    return error_set(reterr, BATON_EINVAL, "'/%s': must be /voter, /witness or /learner", word);
}

/* One of *WEIGHT, ^PRIORITY and /KIND. */
static int take_mark(struct addition *added, char mark, const char *word,
                     struct baton_error *reterr)
{
    struct baton_member *member = &added->member;
    int64_t number = 0;
    bool *has = mark == '*'   ? &added->has_weight
                : mark == '^' ? &added->has_priority
                              : &added->has_kind;
    if (*has) {
        return error_set(reterr, BATON_EINVAL, "'%c%s': %c is given twice", mark, word, mark);
    }
    *has = true;
    if (mark == '/') {
        return take_kind(word, &member->kind, reterr);
    }
    int64_t limit = 1000000;
    int code = value_number(word, mark == '*' ? 0 : -limit, limit, &number, reterr);
    if (!code && mark == '*') {
        member->weight = (uint32_t)number;
    } else if (!code) {
        member->priority = (int32_t)number;
    }
    return code ? error_wrap(reterr, mark == '*' ? "weight" : "priority") : 0;
}

/* The same marks as behind a --peer. */
static int take_marks(struct addition *added, const char *at, struct baton_error *reterr)
{
    int code = 0;
    while (*at && !code) {
        char word[32] = "";
        size_t length = strcspn(at + 1, "*^/");
        if (length >= sizeof(word)) {
            return error_set(reterr, BATON_EINVAL, "'%.32s…': neither a number nor a kind", at);
        }
        memcpy(word, at + 1, length);
        code = take_mark(added, *at, word, reterr);
        at += 1 + length;
    }
    if (!added->has_weight && added->member.kind == BATON_MEMBER_LEARNER) {
        added->member.weight = 0;
    }
    return code;
}

int addition_parse(const char *text, struct addition *ret, struct baton_error *reterr)
{
    const char *equals = strchr(text, '=');
    const char *address = equals ? equals + 1 : "";
    size_t length = strcspn(address, "*^/");
    char host[BATON_ADDRESS_MAX];
    int port;
    if (!equals || equals == text || equals - text >= BATON_NAME_MAX ||
        length >= BATON_ADDRESS_MAX) {
        return error_set(reterr, BATON_EINVAL,
                         "'%s': must be NAME=HOST:PORT[*WEIGHT][^PRIORITY][/KIND]", text);
    }
    *ret = (struct addition){.member.weight = 1};
    memcpy(ret->member.name, text, (size_t)(equals - text));
    memcpy(ret->member.id, ret->member.name, sizeof(ret->member.id));
    memcpy(ret->member.address, address, length);
    int code = value_address(ret->member.address, false, host, sizeof(host), &port, reterr);
    return code ? code : take_marks(ret, address + length, reterr);
}
